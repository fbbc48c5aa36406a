use std::path::Path;

use super::{BadPath, is_blank, resolve};

#[test]
fn dots_are_collapsed_and_white_space_is_trimmed() {
    for (path, file) in [
        ("/a/cache.sqlite", "/a/cache.sqlite"),
        (" \u{feff}/a/b/../cache.sqlite\n", "/a/cache.sqlite"),
        ("/a/./b/../../../../cache.SQLite", "/cache.SQLite"),
        ("/a//transcript-cache.sqlite", "/a/transcript-cache.sqlite"),
    ] {
        assert_eq!(resolve(Path::new(path)).unwrap(), Path::new(file), "{path:?}");
    }
    let here = std::env::current_dir().unwrap();
    assert_eq!(resolve(Path::new("b/../c.sqlite")).unwrap(), here.join("c.sqlite"));
}

#[test]
fn other_suffixes_and_the_databases_of_others_are_refused() {
    for path in ["/a/cache.db", "/a/cache", "/a/.sqlite", "/a/cache.sqlite/..", "/a/cache.sqlite3"]
    {
        assert!(matches!(resolve(Path::new(path)), Err(BadPath::Suffix)), "{path}");
    }
    for path in ["/a/session-index.sqlite", "/a/b/../Message-Queue.SQLITE", "session-INDEX.sqlite"]
    {
        assert!(matches!(resolve(Path::new(path)), Err(BadPath::Reserved)), "{path}");
    }
}

#[test]
fn white_space_says_nothing() {
    assert!(is_blank(Path::new("")) && is_blank(Path::new(" \t\u{feff}")));
    assert!(!is_blank(Path::new("x")));
}
