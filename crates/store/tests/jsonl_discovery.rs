//! Finding sessions, and the encoding of a root, where not all of it can be read.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, io::ErrorKind, sync::Arc};

use support::{
    append,
    disk::{BOTH, Disk, PROJECT, lay, log_name},
    faulty::{Effect, LOG, Op, stored},
    header, id, never, open, read,
};
use turnkeep_store::{
    Access, SessionStore,
    jsonl::{Compression, Encoding, JsonlOptions, JsonlStore},
};

#[tokio::test]
async fn a_project_that_cannot_be_read_hides_no_session_of_another() {
    for encoding in BOTH {
        // By name, one comes before the project of the session and one after it.
        for project in ["--a--", "--z--"] {
            for op in [Op::Stat, Op::ReadDir] {
                let (disk, faults, store) = stored(encoding).await;
                let closed = disk.root().join(project);
                fs::create_dir_all(closed.join("s")).unwrap();
                fs::create_dir_all(closed.join("t")).unwrap();
                let refused = Effect::Fail(ErrorKind::PermissionDenied);
                faults.inject(op, project, 0, 1000, refused);
                assert!(store.stat(&id("s"), &never()).await.unwrap().is_some());
                assert_eq!(read(&*open(&store, "s", Access::Read).await).await.len(), 3);
                append(&*open(&store, "s", Access::Write).await, 3, 1).await;

                // What is found nowhere may be there: neither absent nor free to be made.
                let error = store.stat(&id("t"), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "io");
                assert!(error.to_string().contains(project), "{error}");
                let error = store.create(header("t"), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "io");
            }
        }
    }
}

#[tokio::test]
async fn a_root_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    for (op, part) in [(Op::ReadDir, PROJECT), (Op::ReadDir, "/s"), (Op::Stat, LOG)] {
        for encoding in BOTH {
            let (disk, faults, _) = stored(encoding).await;
            for compression in [Compression::Detect, Compression::DetectElseNone] {
                let open = || {
                    let options = JsonlOptions { compression, ..disk.options() };
                    JsonlStore::open_on(options, Arc::new(faults.clone()))
                };
                // "/s" is also in the path of the root, which is read first.
                let skip = if part == "/s" { 3 } else { 0 };
                let refused = Effect::Fail(ErrorKind::PermissionDenied);
                faults.inject(op, part, skip, 1, refused);
                let error = open().unwrap_err();
                faults.assert_spent();
                assert!(error.to_string().contains("cannot read the store's root"), "{error}");
                assert_eq!(open().unwrap().encoding(), encoding);

                // What can be read is enough.
                let other = disk.root().join("--z--").join("t").join(disk.log_name());
                lay(&other, b"x");
                faults.inject(op, part, skip, 1, Effect::Fail(ErrorKind::PermissionDenied));
                assert_eq!(open().unwrap().encoding(), encoding);
                faults.assert_spent();
                fs::remove_dir_all(disk.root().join("--z--")).unwrap();

                // What is gone since it was listed held nothing.
                faults.inject(op, part, skip, 1, Effect::Fail(ErrorKind::NotFound));
                open().unwrap();
                faults.assert_spent();
            }
        }
    }
}

#[test]
fn an_empty_log_settles_the_encoding_only_when_it_is_alone() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let detect = || {
            let options = JsonlOptions { compression: Compression::Detect, ..disk.options() };
            JsonlStore::open(options).unwrap()
        };
        let stray = |encoding| disk.root().join("--a--").join("a").join(log_name(encoding));
        lay(&stray(Encoding::None), b"");
        assert_eq!(detect().encoding(), Encoding::None);

        // A log that sorts behind it, in the same project or another.
        for project in ["--a--", PROJECT] {
            let log = disk.root().join(project).join("s").join(disk.log_name());
            lay(&log, b"x");
            assert_eq!(detect().encoding(), encoding);
            fs::remove_file(&log).unwrap();
        }
        // A directory is no log, whatever it is called.
        fs::create_dir_all(disk.root().join("--a--").join("0").join("session.jsonl")).unwrap();
        lay(&disk.log("s"), b"x");
        assert_eq!(detect().encoding(), encoding);
        fs::remove_file(disk.log("s")).unwrap();
        // One beside it.
        if encoding == Encoding::Zstd {
            lay(&stray(Encoding::Zstd), b"x");
            assert_eq!(detect().encoding(), Encoding::Zstd);
            lay(&stray(Encoding::None), b"x");
            lay(&stray(Encoding::Zstd), b"");
            assert_eq!(detect().encoding(), Encoding::None);
        }
    }
}
