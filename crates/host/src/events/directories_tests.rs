use std::os::unix::fs::symlink;

use super::{Directories, MAX_KNOWN};

#[test]
fn a_link_is_where_it_leads() {
    let root = tempfile::tempdir().unwrap();
    let real = root.path().canonicalize().unwrap().join("real");
    std::fs::create_dir(&real).unwrap();
    symlink(&real, root.path().join("link")).unwrap();
    let directories = Directories::default();
    for spelling in ["link", "link/", "real/../link", "real"] {
        let path = root.path().join(spelling);
        assert_eq!(&*directories.real(path.to_str().unwrap()), real.to_str().unwrap());
    }
}

#[test]
fn what_is_not_here_is_as_it_is_called() {
    let directories = Directories::default();
    assert_eq!(&*directories.real("/no/such/place/"), "/no/such/place");
    assert_eq!(&*directories.real("/no/such/place"), "/no/such/place");
    assert_eq!(&*directories.real("/"), "/");
    assert_eq!(&*directories.real(""), "");
}

#[test]
fn what_comes_into_being_is_found() {
    let root = tempfile::tempdir().unwrap();
    let link = root.path().join("link");
    let directories = Directories::default();
    let link = link.to_str().unwrap();
    assert_eq!(&*directories.real(link), link);
    symlink("/", link).unwrap();
    assert_eq!(&*directories.real(link), "/");
}

#[test]
fn not_everything_is_remembered() {
    let root = tempfile::tempdir().unwrap();
    let directories = Directories::default();
    for number in 0..MAX_KNOWN + 10 {
        let path = format!("{}{}", root.path().display(), "/.".repeat(number % 200 + 1));
        directories.real(&path);
        directories.real(&format!("{path}{}", "/".repeat(number / 200)));
    }
    assert!(directories.known.lock().unwrap().len() <= MAX_KNOWN);
}
