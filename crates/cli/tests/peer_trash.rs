//! What is in the trash does not exist for DSH's published session persistence.

mod support;

use support::{Bench, peer::Peer, turn};

#[test]
fn the_peer_lists_a_root_with_a_trash_unchanged() {
    for encoding in ["zstd", "none"] {
        let bench = Bench::new();
        let ok = |args: &[&str]| {
            let output = bench.run(args);
            assert!(output.status.success(), "{output:?}");
        };
        for id in ["kept", "gone"] {
            let append = ["--compression", encoding, "append", id, "--create", "--cwd", "/w"];
            let output = bench.run_with_input(&append, turn(1, "a", "b").as_bytes());
            assert!(output.status.success(), "{output:?}");
        }
        let before = Peer::start(&bench.root(), encoding).read("gone").unwrap();
        ok(&["rm", "gone"]);
        let mut peer = Peer::start(&bench.root(), encoding);
        assert_eq!(peer.list(), ["kept"]);
        assert!(peer.read("gone").is_err());
        // Not even to one that works in the trash's own directories by chance.
        let slot = std::fs::read_dir(bench.root().join(".turnkeep-trash")).unwrap();
        let slot = slot.last().unwrap().unwrap().file_name().into_string().unwrap();
        assert!(peer.read(&slot).is_err());
        ok(&["trash", "--restore", "gone"]);
        let mut peer = Peer::start(&bench.root(), encoding);
        let mut listed = peer.list();
        listed.sort();
        assert_eq!(listed, ["gone", "kept"]);
        assert_eq!(peer.read("gone").unwrap(), before);
        ok(&["rm", "gone"]);
        ok(&["trash", "--empty"]);
        assert_eq!(Peer::start(&bench.root(), encoding).list(), ["kept"]);
    }
}
