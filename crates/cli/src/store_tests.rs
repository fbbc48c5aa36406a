use super::Spec;

#[test]
fn a_store_is_a_directory_unless_it_says_otherwise() {
    let cases = [
        ("/a/b", Spec::Directory("/a/b".into())),
        ("sqlite", Spec::Directory("sqlite".into())),
        ("sqlite:/a/b.db", Spec::Sqlite("/a/b.db".into())),
        ("sqlite:b.db", Spec::Sqlite("b.db".into())),
        ("memory:", Spec::Memory),
    ];
    for (store, spec) in cases {
        assert_eq!(Spec::parse(store).unwrap(), spec);
    }
    for store in ["sqlite:", "memory:a", "postgres://host/db", "postgresql://host/db"] {
        assert!(Spec::parse(store).is_err(), "{store}");
    }
}
