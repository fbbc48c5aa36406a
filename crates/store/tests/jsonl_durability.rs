//! What the jsonl store makes sure of before it acknowledges anything.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{io::ErrorKind, sync::Arc};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    faulty::{Effect, FaultyFs, LOG, Op, stored},
    never, open, read,
};
use turnkeep_store::Access;

#[tokio::test]
async fn what_was_found_is_stored_before_anything_goes_behind_it() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.clear_log();
        append(&*writer, 3, 1).await;
        // The writer before may have been killed before its sync, or before that of a directory.
        let session = disk.session_dir("s");
        let above: Vec<_> =
            session.ancestors().map(|path| (Op::SyncDir, path.to_owned())).collect();
        let log = faults.log();
        let first = log.iter().position(|(op, _)| *op == Op::Append).unwrap();
        let synced: Vec<_> =
            log[..first].iter().filter(|(op, _)| *op == Op::SyncDir).cloned().collect();
        assert_eq!(synced, above);
        assert_eq!(log[first - 1], (Op::SyncData, disk.log("s")));
        // Once.
        faults.clear_log();
        append(&*writer, 4, 1).await;
        assert!(!faults.ops("").contains(&Op::SyncDir));
        writer.close().await.unwrap();
        // And what is above the root once for each store.
        let writer = open(&store, "s", Access::Write).await;
        faults.clear_log();
        append(&*writer, 5, 1).await;
        assert_eq!(faults.ops("").iter().filter(|op| **op == Op::SyncDir).count(), 3);
    }
}

#[tokio::test]
async fn a_flush_stores_what_was_found() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.clear_log();
        writer.flush(&never()).await.unwrap();
        assert!(faults.ops("proj--/s").starts_with(&[
            Op::FileStat,
            Op::Stat,
            Op::ReadDir,
            Op::ReadAt
        ]));
        assert_eq!(faults.log().last().unwrap(), &(Op::SyncData, disk.log("s")));
        // Once.
        faults.clear_log();
        writer.flush(&never()).await.unwrap();
        assert_eq!(faults.log(), []);
        writer.close().await.unwrap();
        // And only as long as it is ours.
        let writer = open(&store, "s", Access::Write).await;
        std::fs::remove_file(disk.log("s")).unwrap();
        assert_eq!(writer.flush(&never()).await.unwrap_err().kind(), "ownership_lost");
    }
}

#[tokio::test]
async fn what_was_found_and_cannot_be_stored_is_not_continued() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let before = disk.bytes("s");
        let writer = open(&store, "s", Access::Write).await;
        // Of a directory, that can be tried again; of the log, nobody knows what is left.
        for directory in ["sessions", "--work-proj--", "proj--/s"] {
            faults.fail(Op::SyncDir, directory, ErrorKind::Other);
            let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{directory}: {error}");
            faults.assert_spent();
        }
        faults.fail(Op::SyncData, LOG, ErrorKind::Other);
        let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "poisoned", "{error}");
        assert_eq!(disk.bytes("s"), before);
        writer.close().await.unwrap();
        append(&*open(&store, "s", Access::Write).await, 3, 1).await;
    }
}

#[tokio::test]
async fn a_batch_that_could_not_be_synced_is_no_longer_shown() {
    for encoding in BOTH {
        for (step, skip) in [(Op::SyncData, 0), (Op::FileStat, 1)] {
            // The system may have given its bytes up, and a later sync would not store them.
            let (disk, faults, store) = stored(encoding).await;
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, 3, 1).await;
            let before = disk.bytes("s");
            let failure = || Effect::Fail(ErrorKind::Other);
            faults.inject(step, LOG, skip, 1, failure());
            let error = writer.append(batch(4, 2), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "poisoned", "{error}");
            assert_eq!(disk.bytes("s"), before);
            writer.close().await.unwrap();

            // Where it cannot be taken back, it is there or not, as after a crash.
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, 4, 1).await;
            faults.inject(step, LOG, skip, 1, failure());
            faults.fail(Op::Truncate, LOG, ErrorKind::Other);
            let error = writer.append(batch(5, 2), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "poisoned", "{error}");
            writer.close().await.unwrap();
            let again = open(&store, "s", Access::Write).await;
            assert_eq!(read(&*again).await, batch(0, 7));
            append(&*again, 7, 1).await;
        }
    }
}

#[tokio::test]
async fn a_root_that_may_be_lost_is_synced_until_it_is_not() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let above = disk.root().parent().unwrap().to_owned();
        let handle = create(&store, "s").await;
        let is_above = |(op, path): &(Op, _)| *op == Op::SyncDir && *path == above;
        faults.fail(Op::SyncDir, above.to_str().unwrap(), ErrorKind::Other);
        let error = handle.append(batch(0, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "io", "{error}");
        assert!(disk.root().exists(), "it was made, and its entry not synced");
        // So the next attempt, which finds it made, syncs it again.
        faults.clear_log();
        append(&*handle, 0, 1).await;
        assert!(faults.log().iter().any(is_above));
        // And then it is done.
        faults.clear_log();
        append(&*create(&store, "t").await, 0, 1).await;
        assert!(!faults.log().iter().any(is_above));
    }
}

#[tokio::test]
async fn a_directory_above_the_root_that_is_not_ours_is_not_synced() {
    for encoding in BOTH {
        for kind in [
            ErrorKind::PermissionDenied,
            ErrorKind::InvalidInput,
            ErrorKind::Unsupported,
            ErrorKind::ReadOnlyFilesystem,
        ] {
            let disk = Disk::new(encoding);
            let faults = FaultyFs::default();
            let store = disk.store_on(Arc::new(faults.clone()));
            let above = disk.root().parent().unwrap().to_owned();
            faults.fail(Op::SyncDir, above.to_str().unwrap(), kind);
            append(&*create(&store, "s").await, 0, 1).await;
            faults.assert_spent();
        }
    }
}
