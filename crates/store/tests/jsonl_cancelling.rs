//! Calling operations of the jsonl store off while they are under way.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use support::{
    append, batch, create,
    disk::{BOTH, Disk, PROJECT},
    faulty::{FaultyFs, LOCK, LOG, Op, stored},
    header, id, never, open, read, store_session,
};
use tokio_util::sync::CancellationToken;
use turnkeep_store::{Access, Cancel, EventRange, ListQuery, SessionStore};

/// Something that can be called off, and is before this operation.
fn called_off(faults: &FaultyFs, op: Op, part: &str) -> Cancel {
    let token = CancellationToken::new();
    let cancel = Cancel::from(token.clone());
    faults.before(op, part, move || token.cancel());
    cancel
}

#[tokio::test]
async fn a_listing_can_be_called_off_while_it_walks() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        for name in ["t", "u"] {
            store_session(&disk.store(), name, 1).await;
        }
        faults.clear_log();
        let cancel = called_off(&faults, Op::ReadDir, PROJECT);
        let error = store.list(&ListQuery::default(), &cancel).await.unwrap_err();
        assert_eq!(error.kind(), "cancelled");
        faults.assert_spent();
        let inside = faults.ops(&format!("{PROJECT}/"));
        assert!(inside.is_empty(), "it went on: {inside:?}");
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 3);
    }
}

#[tokio::test]
async fn an_open_that_is_called_off_holds_neither_claim_nor_lock() {
    for encoding in BOTH {
        for (op, part) in [(Op::TryLock, LOCK), (Op::ReadAt, LOG)] {
            let (disk, faults, store) = stored(encoding).await;
            let before = disk.bytes("s");
            let cancel = called_off(&faults, op, part);
            let error = store.open(&id("s"), Access::Write, &cancel).await.unwrap_err();
            assert_eq!((error.kind(), error.to_string().contains("open")), ("cancelled", true));
            faults.assert_spent();
            assert!(!store.owns(&id("s")));
            assert_eq!(disk.bytes("s"), before);
            open(&disk.store(), "s", Access::Write).await.close().await.unwrap();
            append(&*open(&store, "s", Access::Write).await, 3, 1).await;
        }
    }
}

#[tokio::test]
async fn a_create_that_is_called_off_reserves_nothing() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let cancel = called_off(&faults, Op::ReadDir, "");
        let error = store.create(header("new"), &cancel).await.unwrap_err();
        assert_eq!(error.kind(), "cancelled");
        faults.assert_spent();
        assert!(!store.owns(&id("new")));
        assert!(!disk.session_dir("new").exists());
        append(&*create(&store, "new").await, 0, 1).await;
    }
}

#[tokio::test]
async fn a_read_that_is_called_off_shows_nothing_and_spoils_nothing() {
    for encoding in BOTH {
        // Longer than what is read at once.
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let writer = create(&store, "s").await;
        let noise = |seq: u64| {
            let noise: Vec<u64> =
                (1..40_000).map(|n| (seq + n).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            support::event_of("todo/write", seq, &format!("{noise:?}"))
        };
        let events: Vec<_> = (0..4).map(noise).collect();
        for event in &events {
            writer.append(vec![event.clone()], &never()).await.unwrap();
        }
        let reader = open(&store, "s", Access::Read).await;
        let cancel = called_off(&faults, Op::ReadAt, LOG);
        let error = reader.read(EventRange::ALL, &cancel).await.unwrap_err();
        assert_eq!(error.kind(), "cancelled");
        faults.assert_spent();
        assert_eq!(read(&*reader).await, events);
    }
}

#[tokio::test]
async fn an_append_that_has_begun_is_not_called_off() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        for (next, op) in [(3, Op::Append), (4, Op::SyncData)] {
            let cancel = called_off(&faults, op, LOG);
            let stored = writer.append(batch(next, 1), &cancel).await.unwrap();
            assert_eq!(stored.0, next + 1);
            faults.assert_spent();
        }
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 5));
    }
}
