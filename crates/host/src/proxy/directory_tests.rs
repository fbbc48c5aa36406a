use super::{Directories, MAX_KNOWN};

#[tokio::test]
async fn a_link_has_a_real_path_and_other_things_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (real, link) = (base.join("real"), base.join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let directories = Directories::default();
    let real_of = async |path: &str| directories.real(path).await;

    assert_eq!(real_of(link.to_str().unwrap()).await.as_deref(), real.to_str());
    let roundabout = format!("{}/../real/", link.display());
    assert_eq!(real_of(&roundabout).await.as_deref(), real.to_str());
    for same in [real.to_str().unwrap(), "", "/no/such/place", "relative?", "\0"] {
        assert_eq!(real_of(same).await, None, "{same:?}");
    }
}

#[tokio::test]
async fn a_directory_is_looked_up_once_for_all_who_ask() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (real, link) = (base.join("real"), base.join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let directories = Directories::default();
    let link_text = link.to_str().unwrap();
    let (one, other) = tokio::join!(directories.real(link_text), directories.real(link_text));
    assert_eq!((one.as_deref(), other.as_deref()), (real.to_str(), real.to_str()));
    // What is remembered is not looked at again.
    std::fs::remove_file(&link).unwrap();
    assert_eq!(directories.real(link_text).await.as_deref(), real.to_str());
    assert_eq!(directories.known.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn few_directories_are_remembered() {
    let directories = Directories::default();
    for number in 0..3 * MAX_KNOWN {
        directories.real(&format!("/no/such/{number}")).await;
        assert!(directories.known.lock().unwrap().len() <= MAX_KNOWN);
    }
}

#[tokio::test]
async fn a_relative_directory_is_left_to_the_server() {
    let directories = Directories::default();
    for relative in [".", "..", "src", "./src/", "src/.."] {
        assert_eq!(directories.real(relative).await, None, "{relative}");
    }
}
