//! Durability at the flush.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    io::ErrorKind,
    sync::Arc,
    time::{Duration, Instant},
};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    faulty::{FaultyFs, LOG, Op, stored},
    never, open, read,
};
use turnkeep_store::{
    Access, Durability, EventRange, SessionStore,
    jsonl::{Encoding, JsonlOptions, JsonlStore},
};

/// A session of three events in a store that syncs when it is told to.
async fn flushing(encoding: Encoding) -> (Disk, FaultyFs, JsonlStore) {
    let (disk, faults, _) = stored(encoding).await;
    let store = flushing_store(&disk, &faults);
    (disk, faults, store)
}

fn flushing_store(disk: &Disk, faults: &FaultyFs) -> JsonlStore {
    let options = JsonlOptions { durability: Durability::Flush, ..disk.options() };
    JsonlStore::open_on(options, Arc::new(faults.clone())).unwrap()
}

fn syncs(faults: &FaultyFs) -> usize {
    faults.ops(LOG).iter().filter(|op| **op == Op::SyncData).count()
}

#[tokio::test]
async fn an_accepted_batch_is_seen_at_once_and_synced_by_the_flush() {
    for encoding in BOTH {
        let (disk, faults, store) = flushing(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        // What was found is made sure of all the same.
        append(&*writer, 3, 1).await;
        assert_eq!(syncs(&faults), 1);
        let reader = open(&store, "s", Access::Read).await;
        append(&*writer, 4, 2).await;
        append(&*writer, 6, 1).await;
        assert_eq!(read(&*reader).await, batch(0, 7));
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 7));

        faults.clear_log();
        writer.flush(&never()).await.unwrap();
        assert_eq!(syncs(&faults), 1);
        writer.flush(&never()).await.unwrap();
        assert_eq!(syncs(&faults), 1, "there was nothing to sync");
        append(&*writer, 7, 1).await;
        store.flush(&never()).await.unwrap();
        assert_eq!(syncs(&faults), 2);
        append(&*writer, 8, 1).await;
        writer.close().await.unwrap();
        assert_eq!(syncs(&faults), 3);
    }
}

#[tokio::test]
async fn what_nobody_flushes_is_synced_before_long_and_once_for_all_sessions() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let store = flushing_store(&disk, &faults);
        let mut writers = Vec::new();
        for session in ["a", "b", "c"] {
            let writer = create(&store, session).await;
            append(&*writer, 0, 1).await;
            writers.push(writer);
        }
        faults.clear_log();
        for writer in &writers {
            append(&**writer, 1, 1).await;
            append(&**writer, 2, 1).await;
        }
        let started = Instant::now();
        while syncs(&faults) < writers.len() {
            assert!(started.elapsed() < Duration::from_secs(20), "not synced by itself");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // A second round would find nothing.
        tokio::time::sleep(Durability::WINDOW * 2).await;
        faults.clear_log();
        for writer in writers {
            writer.close().await.unwrap();
        }
        assert_eq!(syncs(&faults), 0);
    }
}

#[tokio::test]
async fn a_failed_sync_names_what_it_takes_back() {
    for encoding in BOTH {
        let (disk, faults, store) = flushing(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 1).await;
        writer.flush(&never()).await.unwrap();
        let durable = disk.bytes("s");
        let (early, late) =
            (open(&store, "s", Access::Read).await, open(&store, "s", Access::Read).await);
        append(&*writer, 4, 2).await;
        append(&*writer, 6, 1).await;
        assert_eq!(read(&*early).await.len(), 7);
        faults.fail(Op::SyncData, LOG, ErrorKind::Other);
        let error = writer.flush(&never()).await.unwrap_err();
        assert_eq!(error.kind(), "poisoned");
        let losses = "events 4 to 6 were accepted, but are not on disk";
        assert!(error.to_string().contains(losses), "{error}");
        assert_eq!(disk.bytes("s"), durable);
        // Who had seen them cannot unsee them; who had not reads what is kept.
        for handle in [&early, &writer] {
            let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "log_shrank");
        }
        assert_eq!(read(&*late).await, batch(0, 4));
        // The failure was told, and closing has nothing to add.
        writer.close().await.unwrap();
        append(&*open(&store, "s", Access::Write).await, 4, 1).await;
    }
}

#[tokio::test]
async fn bytes_that_cannot_be_taken_back_do_not_count_here() {
    for encoding in BOTH {
        let (_disk, faults, store) = flushing(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 1).await;
        writer.flush(&never()).await.unwrap();
        let (early, late) =
            (open(&store, "s", Access::Read).await, open(&store, "s", Access::Read).await);
        append(&*writer, 4, 2).await;
        assert_eq!(read(&*early).await.len(), 6);
        faults.fail(Op::SyncData, LOG, ErrorKind::Other);
        faults.fail(Op::Truncate, LOG, ErrorKind::Other);
        assert_eq!(writer.flush(&never()).await.unwrap_err().kind(), "poisoned");
        faults.assert_spent();
        assert_eq!(read(&*late).await, batch(0, 4));
        // Also where the earlier reading could be relied on.
        let range = EventRange { offset: 2, length: None };
        assert_eq!(early.read(range, &never()).await.unwrap_err().kind(), "log_shrank");
    }
}

#[tokio::test]
async fn a_failure_that_nobody_asked_for_is_told_by_the_next_call_or_by_close() {
    for encoding in BOTH {
        for ask in [true, false] {
            let (_disk, faults, store) = flushing(encoding).await;
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, 3, 1).await;
            writer.flush(&never()).await.unwrap();
            faults.fail(Op::SyncData, LOG, ErrorKind::Other);
            append(&*writer, 4, 1).await;
            tokio::time::sleep(Durability::WINDOW).await;
            let started = Instant::now();
            while !faults.is_spent() {
                assert!(started.elapsed() < Duration::from_secs(20), "not synced by itself");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let losses = "events 4 to 4 were accepted, but are not on disk";
            if ask {
                let error = writer.append(batch(5, 1), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "poisoned");
                assert!(error.to_string().contains(losses), "{error}");
                writer.close().await.unwrap();
            } else {
                let error = writer.close().await.unwrap_err();
                assert_eq!(error.kind, "poisoned");
                assert!(error.to_string().contains(losses), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn what_was_accepted_is_saved_when_someone_else_writes() {
    for encoding in BOTH {
        let (disk, faults, store) = flushing(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 1).await;
        writer.flush(&never()).await.unwrap();
        append(&*writer, 4, 1).await;
        disk.add("s", &disk.encode("{\"type\":\"turn/start\",\"seq\":5,\"time\":1,\"data\":{}}\n"));
        faults.clear_log();
        let error = writer.flush(&never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        assert!(!error.to_string().contains("not on disk"), "{error}");
        assert_eq!(syncs(&faults), 1);

        // Not where the log is another file by now: nobody will look for them there.
        drop(writer);
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 6, 1).await;
        let bytes = disk.bytes("s");
        std::fs::remove_file(disk.log("s")).unwrap();
        disk.lay("s", &bytes);
        let error = writer.flush(&never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        let losses = "events 6 to 6 were accepted, but are not on disk";
        assert!(error.to_string().contains(losses), "{error}");
    }
}

#[tokio::test]
async fn a_dropped_handle_leaves_what_it_accepted() {
    for encoding in BOTH {
        let (disk, faults, store) = flushing(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 1).await;
        faults.clear_log();
        drop(writer);
        assert_eq!(syncs(&faults), 0);
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 4, 1).await;
        assert_eq!(syncs(&faults), 1, "it goes behind nothing that is not on disk");
        writer.close().await.unwrap();
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 5));
    }
}
