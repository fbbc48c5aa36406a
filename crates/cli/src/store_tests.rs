use super::{Spec, open};
use crate::config::Settings;

#[test]
fn a_store_is_a_directory_unless_it_says_otherwise() {
    let cases = [
        ("/a/b", Spec::Directory("/a/b".into())),
        ("./sqlite", Spec::Directory("./sqlite".into())),
        ("./odd:name", Spec::Directory("./odd:name".into())),
        ("/a/odd:name", Spec::Directory("/a/odd:name".into())),
        ("sqlite:/a/b.db", Spec::Sqlite("/a/b.db".into())),
        ("sqlite:b.db", Spec::Sqlite("b.db".into())),
        ("memory:", Spec::Memory),
    ];
    for (store, spec) in cases {
        assert_eq!(Spec::parse(store).unwrap(), spec);
    }
    for store in [
        "sqlite:",
        "memory:a",
        "postgres://host/db",
        "postgresql://host/db",
        "memory",
        "sqlite",
        "sqlit:a.db",
        "~nobody/s",
    ] {
        assert!(Spec::parse(store).is_err(), "{store}");
    }
}

#[test]
fn durability_is_one_of_two_in_any_store() {
    for store in ["/nowhere/at/all", "memory:"] {
        for (name, fits) in [("append", true), ("flush", true), ("never", false)] {
            let settings = Settings {
                store: Some(store.to_owned()),
                durability: Some(name.to_owned()),
                ..Settings::default()
            };
            assert_eq!(open(&settings).is_ok(), fits, "{store} with {name}");
        }
    }
}

#[test]
fn a_store_in_a_file_is_where_the_file_says() {
    let named = |store| Spec::named_in(std::path::Path::new("/etc/tk"), store);
    let cases = [
        ("s", "/etc/tk/s"),
        ("sqlite:s.db", "sqlite:/etc/tk/s.db"),
        ("/s", "/s"),
        ("sqlite:/s.db", "sqlite:/s.db"),
        ("~/s", "~/s"),
        ("memory:", "memory:"),
        ("memory", "memory"),
    ];
    for (store, expected) in cases {
        assert_eq!(named(store), expected);
    }
}
