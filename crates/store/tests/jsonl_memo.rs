//! What is read once by those who look at a session and then write it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::fs;

use support::{
    append, batch, cancelled,
    disk::{BOTH, Disk},
    faulty::{Effect, FaultyFs, LOG, Op, stored},
    id, never, open, read, seqs, store_session,
};
use turnkeep_log::Seq;
use turnkeep_store::{
    Access, EventRange, SessionStore,
    error::OpenError,
    jsonl::{Encoding, JsonlStore},
};

/// A disk with these sessions, of three events each, and a store that has done nothing yet.
async fn with_sessions(encoding: Encoding, names: &[&str]) -> (Disk, FaultyFs, JsonlStore) {
    let disk = Disk::new(encoding);
    for name in names {
        store_session(&disk.store(), name, 3).await;
    }
    let faults = FaultyFs::default();
    let store = disk.store_on(std::sync::Arc::new(faults.clone()));
    (disk, faults, store)
}

async fn look(store: &JsonlStore, name: &str) {
    let reader = open(store, name, Access::Read).await;
    assert_eq!(read(&*reader).await, batch(0, 3));
}

/// How many times the log of a session is read while it is opened to write, and closed.
async fn reads_to_write(faults: &FaultyFs, store: &JsonlStore, name: &str) -> usize {
    faults.clear_log();
    let writer = open(store, name, Access::Write).await;
    let reads = faults.ops(&format!("{name}/{LOG}")).into_iter().filter(|op| *op == Op::ReadAt);
    let reads = reads.count();
    writer.close().await.unwrap();
    reads
}

#[tokio::test]
async fn a_log_is_read_once_to_look_at_it_and_to_write_it() {
    for encoding in BOTH {
        let (disk, faults, store) = with_sessions(encoding, &["s"]).await;
        let reader = open(&store, "s", Access::Read).await;
        faults.clear_log();
        assert_eq!(read(&*reader).await, batch(0, 3));
        let size = disk.bytes("s").len() as u64;
        assert_eq!(faults.bytes_read(), size, "to look at it is to read it once");

        faults.clear_log();
        let writer = open(&store, "s", Access::Write).await;
        assert_eq!(faults.bytes_read(), 0, "{:?}", faults.log());
        append(&*writer, 3, 2).await;
        assert_eq!(read(&*writer).await, batch(0, 5));
        writer.close().await.unwrap();
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 5));
    }
}

#[tokio::test]
async fn without_a_look_the_log_is_read() {
    for encoding in BOTH {
        let (_disk, faults, store) = with_sessions(encoding, &["s"]).await;
        assert!(reads_to_write(&faults, &store, "s").await > 0);
        // Neither the header, nor a part of the log, is a look at all of it.
        let reader = open(&store, "s", Access::Read).await;
        assert!(reads_to_write(&faults, &store, "s").await > 0);
        drop(reader);
    }
}

#[tokio::test]
async fn the_lock_is_taken_before_anything_is_believed() {
    for encoding in BOTH {
        let (_disk, faults, store) = with_sessions(encoding, &["s"]).await;
        look(&store, "s").await;
        faults.clear_log();
        let writer = open(&store, "s", Access::Write).await;
        let ops = faults.log();
        let locked = ops.iter().position(|(op, _)| *op == Op::TryLock).unwrap();
        let is_log = |path: &std::path::Path| path.to_str().unwrap().contains(LOG);
        let believed = ops.iter().rposition(|(op, path)| *op == Op::FileStat && is_log(path));
        assert!(believed.unwrap() > locked, "{ops:?}");
        writer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_third_session_takes_the_place_of_the_first() {
    for encoding in BOTH {
        let (_disk, faults, store) = with_sessions(encoding, &["a", "b", "c"]).await;
        for name in ["a", "b"] {
            look(&store, name).await;
        }
        assert_eq!(reads_to_write(&faults, &store, "a").await, 0);
        look(&store, "c").await;
        assert!(reads_to_write(&faults, &store, "a").await > 0, "the oldest");
        assert_eq!(reads_to_write(&faults, &store, "b").await, 0);
        assert_eq!(reads_to_write(&faults, &store, "c").await, 0);
        // Another look makes one the latest.
        look(&store, "b").await;
        look(&store, "a").await;
        assert!(reads_to_write(&faults, &store, "c").await > 0);
        assert_eq!(reads_to_write(&faults, &store, "b").await, 0);
    }
}

#[tokio::test]
async fn writing_drops_what_was_read() {
    for encoding in BOTH {
        let (disk, faults, store) = with_sessions(encoding, &["s"]).await;
        look(&store, "s").await;
        let writer = open(&store, "s", Access::Write).await;
        // Refused before it comes to writing: nothing has changed.
        writer.append(batch(7, 1), &never()).await.unwrap_err();
        writer.close().await.unwrap();
        assert_eq!(reads_to_write(&faults, &store, "s").await, 0);

        let writer = open(&store, "s", Access::Write).await;
        faults.fail(Op::Append, LOG, std::io::ErrorKind::StorageFull);
        writer.append(batch(3, 1), &never()).await.unwrap_err();
        writer.close().await.unwrap();
        faults.assert_spent();
        assert_eq!(disk.text("s").lines().count(), 4, "it was taken back");
        assert!(reads_to_write(&faults, &store, "s").await > 0);
    }
}

#[tokio::test]
async fn what_a_writer_in_the_store_lets_others_see_is_not_remembered() {
    for encoding in BOTH {
        let (_disk, faults, store) = with_sessions(encoding, &["s"]).await;
        let writer = open(&store, "s", Access::Write).await;
        look(&store, "s").await;
        writer.close().await.unwrap();
        assert!(reads_to_write(&faults, &store, "s").await > 0);
    }
}

#[tokio::test]
async fn what_others_write_is_read() {
    for encoding in BOTH {
        let (disk, faults, store) = with_sessions(encoding, &["s"]).await;
        look(&store, "s").await;
        let theirs = open(&disk.store(), "s", Access::Write).await;
        append(&*theirs, 3, 1).await;
        theirs.close().await.unwrap();
        faults.clear_log();
        let writer = open(&store, "s", Access::Write).await;
        assert!(faults.bytes_read() > 0);
        append(&*writer, 4, 1).await;
        assert_eq!(seqs(&read(&*writer).await), [0, 1, 2, 3, 4]);
        writer.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_log_that_was_replaced_or_touched_is_read() {
    for encoding in BOTH {
        let (disk, faults, store) = with_sessions(encoding, &["s"]).await;
        look(&store, "s").await;
        let (log, copy) = (disk.log("s"), disk.dir.path().join("copy"));
        let times = fs::metadata(&log).unwrap().modified().unwrap();
        fs::copy(&log, &copy).unwrap();
        fs::File::options().write(true).open(&copy).unwrap().set_modified(times).unwrap();
        fs::rename(&copy, &log).unwrap();
        assert!(reads_to_write(&faults, &store, "s").await > 0, "another inode");

        look(&store, "s").await;
        fs::File::options().write(true).open(&log).unwrap().set_modified(times).unwrap();
        assert!(reads_to_write(&faults, &store, "s").await > 0, "another change time");
    }
}

#[tokio::test]
async fn damage_since_the_look_is_found_when_the_file_says_so() {
    for encoding in BOTH {
        let (disk, _faults, store) = with_sessions(encoding, &["s"]).await;
        look(&store, "s").await;
        let mut bytes = disk.bytes("s");
        bytes[0] ^= 1;
        fs::write(disk.log("s"), bytes).unwrap();
        let refused = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert!(matches!(refused, OpenError::Corrupt(_)), "{refused}");
    }
}

/// A file system whose clock has not moved on between the look and the change of a rival.
#[tokio::test]
async fn a_change_that_no_time_shows_is_found_before_anything_is_written() {
    for encoding in BOTH {
        let (disk, store) = {
            let (disk, _faults, _store) = stored(encoding).await;
            let clock = support::stopped::StoppedFs;
            let store = disk.store_on(std::sync::Arc::new(clock));
            (disk, store)
        };
        look(&store, "s").await;
        // As long as before, and ending otherwise.
        let mut bytes = disk.bytes("s");
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        fs::write(disk.log("s"), &bytes).unwrap();
        let writer = open(&store, "s", Access::Write).await;
        let refused = writer.append(batch(3, 1), &never()).await.unwrap_err();
        assert_eq!(refused.kind(), "ownership_lost");
        assert_eq!(disk.bytes("s"), bytes, "nothing was written");
        writer.close().await.unwrap();
        // It is read again. What ends a text log unfinished is a torn tail.
        match store.open(&id("s"), Access::Write, &never()).await {
            Ok(writer) => {
                assert_eq!(encoding, Encoding::None);
                assert_eq!(read(&*writer).await, batch(0, 2));
            }
            Err(refused) => {
                assert_eq!(encoding, Encoding::Zstd);
                assert_eq!(refused.kind(), "corrupt");
            }
        }
    }
}

#[tokio::test]
async fn a_torn_tail_is_cut_all_the_same() {
    for encoding in BOTH {
        let (disk, faults, store) = with_sessions(encoding, &["s"]).await;
        let whole = disk.bytes("s").len();
        let torn = disk.encode(&format!("{}\n", batch(3, 1)[0].text().as_str()));
        disk.add("s", &torn[..torn.len() - 3]);
        look(&store, "s").await;
        faults.clear_log();
        let writer = open(&store, "s", Access::Write).await;
        assert_eq!(faults.bytes_read(), 0);
        assert!(disk.bytes("s").len() > whole, "opening cuts nothing");
        append(&*writer, 3, 1).await;
        writer.close().await.unwrap();
        assert!(faults.ops(LOG).contains(&Op::Truncate));
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 4));
    }
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_read_and_reported_as_ever() {
    for encoding in BOTH {
        let (_disk, faults, store) = with_sessions(encoding, &["s"]).await;
        look(&store, "s").await;
        let append_mode = Op::Open(turnkeep_store::jsonl::fs::OpenMode::Append);
        faults.inject(append_mode, LOG, 0, 2, Effect::Fail(std::io::ErrorKind::PermissionDenied));
        let refused = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(refused.kind(), "io");
        faults.assert_spent();
        let refused = store.open(&id("s"), Access::Write, &cancelled()).await.unwrap_err();
        assert_eq!(refused.kind(), "cancelled");
        assert_eq!(reads_to_write(&faults, &store, "s").await, 0);
    }
}

#[tokio::test]
async fn a_session_without_events_is_remembered_too() {
    for encoding in BOTH {
        let (disk, faults, store) = with_sessions(encoding, &[]).await;
        let theirs = support::create(&disk.store(), "s").await;
        theirs.flush(&never()).await.unwrap();
        theirs.close().await.unwrap();
        let reader = open(&store, "s", Access::Read).await;
        assert!(reader.read(EventRange::ALL, &never()).await.unwrap().is_empty());
        faults.clear_log();
        let writer = open(&store, "s", Access::Write).await;
        assert_eq!(faults.bytes_read(), 0);
        assert_eq!(writer.append(batch(0, 1), &never()).await.unwrap(), Seq(1));
        writer.close().await.unwrap();
    }
}
