//! The lock of the jsonl store: when it is taken, by whom, and what its failures come to.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, io::ErrorKind, sync::Arc};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    faulty::{Effect, FaultyFs, LOCK, LOG, Op, stored},
    id, never, open, read, store_session,
};
use turnkeep_store::{
    Access, ListQuery, SessionStore,
    jsonl::{
        JsonlStore,
        fs::{Fs as _, OpenMode, OsFs},
    },
};

/// An empty disk, and a store on a faulty file system.
fn empty(encoding: turnkeep_store::jsonl::Encoding) -> (Disk, FaultyFs, JsonlStore) {
    let disk = Disk::new(encoding);
    let faults = FaultyFs::default();
    let store = disk.store_on(Arc::new(faults.clone()));
    (disk, faults, store)
}

#[tokio::test]
async fn a_pending_session_leaves_no_trace_on_disk() {
    for encoding in BOTH {
        let (disk, faults, store) = empty(encoding);
        let handle = create(&store, "s").await;
        handle.append(Vec::new(), &never()).await.unwrap();
        assert!(read(&*handle).await.is_empty());
        store.stat(&id("s"), &never()).await.unwrap();
        assert!(!disk.root().exists());
        handle.close().await.unwrap();
        assert!(!disk.root().exists());
        assert_eq!(faults.ops(LOCK), []);
        // Nor beside others.
        store_session(&store, "t", 1).await;
        drop(create(&store, "s").await);
        assert!(!disk.session_dir("s").exists());
    }
}

#[tokio::test]
async fn an_absent_session_that_is_opened_leaves_nothing_behind() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        store.open(&id("none"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(faults.ops(LOCK), []);
        assert!(!disk.session_dir("none").exists());
    }
}

#[tokio::test]
async fn readers_take_no_lock() {
    for encoding in BOTH {
        let (_disk, faults, store) = stored(encoding).await;
        let reader = open(&store, "s", Access::Read).await;
        read(&*reader).await;
        store.stat(&id("s"), &never()).await.unwrap();
        store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(faults.ops(LOCK), []);
    }
}

#[tokio::test]
async fn the_lock_is_taken_before_the_first_byte_is_written() {
    for encoding in BOTH {
        let (_disk, faults, store) = empty(encoding);
        let handle = create(&store, "s").await;
        append(&*handle, 0, 1).await;
        let ops: Vec<Op> = faults.log().into_iter().map(|(op, _)| op).collect();
        let at = |op: Op| ops.iter().position(|done| *done == op).unwrap();
        assert!(at(Op::TryLock) < at(Op::Open(OpenMode::CreateNew)), "{ops:?}");
        assert!(at(Op::TryLock) < at(Op::Append), "{ops:?}");
        // Kept, and not taken again for what follows.
        faults.clear_log();
        append(&*handle, 1, 1).await;
        assert!(!faults.ops(LOCK).contains(&Op::TryLock));
        assert!(!faults.ops(LOCK).contains(&Op::Unlock));
    }
}

#[tokio::test]
async fn flushing_a_pending_session_takes_the_lock() {
    for encoding in BOTH {
        let (disk, faults, store) = empty(encoding);
        let handle = create(&store, "s").await;
        assert_eq!(faults.ops(LOCK), []);
        handle.flush(&never()).await.unwrap();
        assert!(faults.ops(LOCK).contains(&Op::TryLock));
        let error = disk.store().open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
    }
}

#[tokio::test]
async fn the_lock_is_kept_though_the_first_write_fails() {
    for encoding in BOTH {
        let (disk, faults, store) = empty(encoding);
        let handle = create(&store, "s").await;
        faults.fail(Op::Append, ".tmp", ErrorKind::StorageFull);
        handle.append(batch(0, 1), &never()).await.unwrap_err();
        let rival = create(&disk.store(), "s").await;
        let error = rival.append(batch(0, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        append(&*handle, 0, 1).await;
    }
}

#[tokio::test]
async fn the_lock_file_outlives_its_owners_and_stays_empty() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_session(&disk.store(), "s", 1).await;
        let lock = disk.session_dir("s").join(LOCK);
        let first = OsFs.stat(&lock).unwrap();
        for round in 1..4 {
            let writer = open(&disk.store(), "s", Access::Write).await;
            append(&*writer, round, 1).await;
            writer.close().await.unwrap();
            assert!(OsFs.stat(&lock).unwrap().same_file(&first), "the very same file");
            assert_eq!(fs::metadata(&lock).unwrap().len(), 0);
        }
    }
}

#[tokio::test]
async fn a_lock_that_cannot_be_opened_or_taken_or_looked_at_is_an_error() {
    for encoding in BOTH {
        for step in [Op::Open(OpenMode::Lock), Op::TryLock, Op::FileStat, Op::Stat] {
            let (_disk, faults, store) = stored(encoding).await;
            faults.fail(step, LOCK, ErrorKind::PermissionDenied);
            let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{step:?}");
            faults.assert_spent();
            // Refused, not owned.
            open(&store, "s", Access::Write).await;

            // The same for a session that is stored for the first time.
            let handle = create(&store, "new").await;
            faults.fail(step, LOCK, ErrorKind::PermissionDenied);
            let error = handle.append(batch(0, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{step:?}");
            faults.assert_spent();
            append(&*handle, 0, 1).await;
        }
    }
}

#[tokio::test]
async fn a_lock_that_would_block_means_owned() {
    for encoding in BOTH {
        let (disk, _, store) = stored(encoding).await;
        let lock = disk.session_dir("s").join(LOCK);
        // Not one of our handles: whatever holds the kernel's lock is the owner.
        let held = OsFs.open(&lock, OpenMode::Lock).unwrap();
        assert!(held.try_lock().unwrap());
        assert!(!OsFs.open(&lock, OpenMode::Lock).unwrap().try_lock().unwrap());
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        assert_eq!(read(&*open(&store, "s", Access::Read).await).await.len(), 3);
        drop(held);
        open(&store, "s", Access::Write).await;
    }
}

#[tokio::test]
async fn a_lock_file_that_is_replaced_is_tried_again_and_counts_as_owned_at_last() {
    for encoding in BOTH {
        for remove_only in [false, true] {
            let (disk, faults, store) = stored(encoding).await;
            let lock = disk.session_dir("s").join(LOCK);
            let replace = move || {
                fs::remove_file(&lock).unwrap();
                if !remove_only {
                    fs::write(&lock, b"").unwrap();
                }
            };
            let injected = |times| {
                let effect = Effect::Before(Box::new(replace.clone()));
                faults.inject(Op::TryLock, LOCK, 0, times, effect);
            };
            injected(2);
            let writer = open(&store, "s", Access::Write).await;
            faults.assert_spent();
            writer.close().await.unwrap();
            injected(3);
            let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "already_owned");
            faults.assert_spent();
            open(&store, "s", Access::Write).await;
        }
    }
}

#[tokio::test]
async fn a_lock_is_given_back_by_name() {
    for encoding in BOTH {
        let (_disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.clear_log();
        // For the sake of copies of the open file in other processes.
        drop(writer);
        store.flush(&never()).await.unwrap();
        assert_eq!(faults.ops(LOCK), [Op::Unlock]);
    }
}

#[tokio::test]
async fn a_lock_that_cannot_be_given_back_frees_the_session_all_the_same() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 1).await;
        faults.fail(Op::Unlock, LOCK, ErrorKind::Other);
        writer.close().await.unwrap();
        faults.assert_spent();
        assert!(!store.owns(&id("s")));
        let next = open(&store, "s", Access::Write).await;
        append(&*next, 4, 1).await;
        next.close().await.unwrap();
        // For other instances as well: the descriptor is closed.
        append(&*open(&disk.store(), "s", Access::Write).await, 5, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_of_the_store_passes_over_a_handle_that_is_being_opened() {
    for encoding in BOTH {
        let (_disk, faults, store) = stored(encoding).await;
        let (runtime, beside) = (tokio::runtime::Handle::current(), store.clone());
        faults.before(Op::ReadAt, LOG, move || {
            assert!(beside.owns(&id("s")), "it is claimed");
            runtime.block_on(beside.flush(&never())).unwrap();
        });
        let writer = open(&store, "s", Access::Write).await;
        faults.assert_spent();
        append(&*writer, 3, 1).await;
    }
}
