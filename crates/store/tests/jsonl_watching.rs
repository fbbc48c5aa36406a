//! What readers of the jsonl store see while its files change.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    faulty::{Effect, FaultyFs, LOG, Op, stored},
    id, never, open, read, seqs, store_session,
};
use turnkeep_log::{Event, Seq};
use turnkeep_store::{
    Access, EventRange, ListQuery, SessionState, SessionStore, jsonl::fs::OpenMode,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_seen_once_it_is_acknowledged() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        let reader: Arc<_> = open(&store, "s", Access::Read).await.into();
        let before = store.stat(&id("s"), &never()).await.unwrap();
        let (runtime, beside) = (tokio::runtime::Handle::current(), store.clone());
        let size_before = disk.bytes("s").len();
        let log = disk.log("s");
        let looked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&looked);
        let look = {
            let (reader, before) = (Arc::clone(&reader), before.clone());
            move || {
                assert!(fs::read(&log).unwrap().len() > size_before, "it is written");
                runtime.block_on(async {
                    assert_eq!(read(&*reader).await, batch(0, 3));
                    let late = open(&beside, "s", Access::Read).await;
                    assert_eq!(read(&*late).await, batch(0, 3));
                    assert_eq!(beside.stat(&id("s"), &never()).await.unwrap(), before);
                    let list = beside.list(&ListQuery::default(), &never()).await.unwrap();
                    assert_eq!(list.entries[0].stat, before);
                });
                count.fetch_add(1, Ordering::SeqCst);
            }
        };
        // The first sync is of what was there before.
        faults.inject(Op::SyncData, LOG, 1, 1, Effect::Before(Box::new(look)));
        append(&*writer, 3, 2).await;
        assert_eq!(looked.load(Ordering::SeqCst), 1);
        assert_eq!(read(&*reader).await, batch(0, 5));
        assert_ne!(store.stat(&id("s"), &never()).await.unwrap(), before);
    }
}

#[tokio::test]
async fn a_log_that_changes_while_it_is_read_is_read_once_more() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let elsewhere = disk.store();
        let writer = Arc::new(open(&elsewhere, "s", Access::Write).await);
        let reader = open(&store, "s", Access::Read).await;
        read(&*reader).await;
        let (runtime, next) = (tokio::runtime::Handle::current(), Arc::new(AtomicUsize::new(3)));
        let grow = move |writer: &dyn turnkeep_store::SessionHandle| {
            let seq = next.fetch_add(1, Ordering::SeqCst) as u64;
            runtime.block_on(append(writer, seq, 1));
        };
        // Once: the second reading has it all.
        faults.clear_log();
        faults.before(Op::ReadAt, LOG, {
            let (writer, grow) = (Arc::clone(&writer), grow.clone());
            move || grow(&**writer)
        });
        assert_eq!(read(&*reader).await, batch(0, 4));
        let looks = faults.ops(LOG).into_iter().filter(|op| *op == Op::FileStat).count();
        assert_eq!(looks, 4, "before and after each reading");
        // All the time: it ends, with what was there before the last reading.
        faults.clear_log();
        faults.inject(
            Op::ReadAt,
            LOG,
            0,
            usize::MAX,
            Effect::Before(Box::new(move || grow(&**writer))),
        );
        let events = read(&*reader).await;
        assert!(events.len() >= 5);
        assert_eq!(events, batch(0, events.len() as u64));
        let looks = faults.ops(LOG).into_iter().filter(|op| *op == Op::FileStat).count();
        assert_eq!(looks, 4);
    }
}

#[tokio::test]
async fn a_log_that_got_shorter_is_an_error() {
    for encoding in BOTH {
        let (disk, _, store) = stored(encoding).await;
        let short = disk.bytes("s");
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 4).await;
        writer.close().await.unwrap();
        let long = disk.bytes("s");
        let reader = open(&store, "s", Access::Read).await;
        assert_eq!(read(&*reader).await.len(), 7);
        fs::write(disk.log("s"), &short).unwrap();
        for range in [EventRange::ALL, EventRange::from(Seq(2))] {
            let error = reader.read(range, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "log_shrank");
            let text = error.to_string();
            assert!(text.contains("shrank below a previously observed prefix (3 < 7)"), "{text}");
        }
        fs::write(disk.log("s"), &long).unwrap();
        assert_eq!(read(&*reader).await.len(), 7);
        // A handle that has not seen more is content.
        fs::write(disk.log("s"), &short).unwrap();
        assert_eq!(read(&*open(&store, "s", Access::Read).await).await.len(), 3);
        fs::remove_file(disk.log("s")).unwrap();
        assert_eq!(reader.read(EventRange::ALL, &never()).await.unwrap_err().kind(), "not_found");
    }
}

/// Events that do not compress, so that frames have a size.
fn noise(first: u64, count: u64) -> Vec<Event> {
    let event = |seq: u64| {
        let noise: Vec<u64> =
            (1u64..30).map(|n| (seq * 31 + n).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        support::event_of("todo/write", seq, &format!("{noise:?}"))
    };
    (first..first + count).map(event).collect()
}

#[tokio::test]
async fn known_parts_are_not_trusted_when_the_log_was_rewritten() {
    for encoding in BOTH {
        // Batches of other sizes, so that nothing lies where it was: the same events, or fewer
        // of them so that the end of the known part is in the middle of something.
        for size in [7, 1, 50] {
            let disk = Disk::new(encoding);
            let store = disk.store();
            store_session(&store, "s", 3).await;
            let base = disk.bytes("s");
            let reader = open(&store, "s", Access::Read).await;
            let writer = open(&store, "s", Access::Write).await;
            for first in (3..303).step_by(20) {
                writer.append(noise(first, 20), &never()).await.unwrap();
            }
            writer.close().await.unwrap();
            assert_eq!(read(&*reader).await.len(), 303);
            let known = disk.bytes("s").len();

            // In the same file.
            fs::write(disk.log("s"), &base).unwrap();
            let writer = open(&store, "s", Access::Write).await;
            let mut next = 3;
            while next <= 310 || disk.bytes("s").len() <= known + 100 {
                let shifted = support::event_of("todo/write", next, "{\"shifted\":true}");
                let batch = [vec![shifted], noise(next + 1, size)].concat();
                next = writer.append(batch, &never()).await.unwrap().0;
            }
            writer.close().await.unwrap();
            for offset in [2, 50, 200, 302, 303, next - 1] {
                let range = EventRange { offset, length: Some(4) };
                let slice = reader.read(range, &never()).await.unwrap();
                let whole = read(&*open(&store, "s", Access::Read).await).await;
                let (from, to) = (usize::try_from(offset).unwrap(), whole.len());
                assert_eq!(slice, whole[from..to.min(from + 4)], "from {offset}");
            }
        }
    }
}

#[tokio::test]
async fn reading_on_reads_what_is_new() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let writer = create(&store, "s").await;
        for first in (0..3000).step_by(100) {
            writer.append(noise(first, 100), &never()).await.unwrap();
        }
        let size = disk.bytes("s").len() as u64;
        assert!(size > 400_000);
        let reader = open(&store, "s", Access::Read).await;
        assert_eq!(read(&*reader).await.len(), 3000);
        append(&*writer, 3000, 1).await;

        faults.clear_log();
        let tail = reader.read(EventRange::from(Seq(3000)), &never()).await.unwrap();
        assert_eq!(seqs(&tail), [3000]);
        assert!(faults.bytes_read() < size / 4, "{} of {size}", faults.bytes_read());
        faults.clear_log();
        let range = EventRange { offset: 100, length: Some(10) };
        let early = reader.read(range, &never()).await.unwrap();
        assert_eq!(seqs(&early), (100..110).collect::<Vec<_>>());
        // From the middle of the log, and not to its end: what is read at once is 256 KiB.
        assert!(faults.bytes_read() <= 300 << 10, "{} of {size}", faults.bytes_read());
    }
}

#[tokio::test]
async fn records_and_frames_larger_than_what_is_read_at_once_are_read() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let writer = create(&store, "s").await;
        let noise = |seq: u64, count: u64| {
            let noise: Vec<u64> =
                (0..count).map(|n| (seq + n).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            support::event_of("todo/write", seq, &format!("{noise:?}"))
        };
        let events: Vec<_> = [1, 100_000, 3, 20_000, 20_000, 2]
            .into_iter()
            .zip(0..)
            .map(|(count, seq)| noise(seq, count))
            .collect();
        for batch in events.chunks(2) {
            writer.append(batch.to_vec(), &never()).await.unwrap();
        }
        assert!(disk.bytes("s").len() > 1 << 20);
        let reader = open(&store, "s", Access::Read).await;
        assert_eq!(read(&*reader).await, events);
        for offset in 0..6 {
            let range = EventRange { offset, length: Some(2) };
            let slice = reader.read(range, &never()).await.unwrap();
            let offset = usize::try_from(offset).unwrap();
            assert_eq!(slice, events[offset..events.len().min(offset + 2)]);
        }
        // Torn in the middle of the largest.
        let bytes = disk.bytes("s");
        fs::write(disk.log("s"), &bytes[..bytes.len() / 2]).unwrap();
        let kept = read(&*open(&disk.store(), "s", Access::Read).await).await;
        assert_eq!(kept, events[..kept.len()]);
        assert!(kept.len() < 2);
    }
}

#[tokio::test]
async fn a_character_split_between_two_reads_is_read_whole() {
    for encoding in BOTH {
        // Characters of three and of four bytes, so that wherever a read ends it splits one, of
        // one event or another; and events that begin at every place within a character.
        let disk = Disk::new(encoding);
        let store = disk.store();
        let writer = create(&store, "s").await;
        let event = |seq: u64| {
            let length = usize::try_from(seq).unwrap();
            let text = format!("{}{}", "x".repeat(length), "开😀".repeat(30_000 + length));
            support::event_of("todo/write", seq, &format!("\"{text}\""))
        };
        let events: Vec<_> = (0..12).map(event).collect();
        for batch in events.chunks(3) {
            writer.append(batch.to_vec(), &never()).await.unwrap();
        }
        writer.close().await.unwrap();
        assert!(disk.text("s").len() > 9 * (256 << 10));
        for access in [Access::Read, Access::Write] {
            let handle = open(&disk.store(), "s", access).await;
            assert_eq!(read(&*handle).await, events);
            for offset in 0..12 {
                let tail = handle.read(EventRange::from(Seq(offset)), &never()).await.unwrap();
                assert_eq!(tail, events[usize::try_from(offset).unwrap()..]);
            }
        }
    }
}

#[tokio::test]
async fn listing_reads_the_first_frames_and_the_indexes_alone() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        for session in 0..5 {
            let handle = create(&disk.store(), &format!("s{session}")).await;
            append(&*handle, 0, 3000).await;
            append(&*handle, 3000, 3000).await;
            handle.close().await.unwrap();
        }
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        faults.clear_log();
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 5);
        assert!(faults.bytes_read() <= 5 * (16 << 10), "{}", faults.bytes_read());
        // And of those on the page alone: one more, to know whether there is another page.
        faults.clear_log();
        let query = ListQuery { limit: Some(1), ..ListQuery::default() };
        store.list(&query, &never()).await.unwrap();
        assert!(faults.bytes_read() <= 2 * (16 << 10), "{}", faults.bytes_read());
    }
}

#[tokio::test]
async fn what_vanishes_while_it_is_looked_at_was_not_there() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let vanish = |faults: &FaultyFs| {
            let dir = disk.session_dir("s");
            faults.before(Op::Open(OpenMode::Read), LOG, move || fs::remove_dir_all(&dir).unwrap());
        };
        vanish(&faults);
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), None);
        store_session(&disk.store(), "s", 1).await;
        vanish(&faults);
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert!(list.entries.is_empty());
        store_session(&disk.store(), "s", 1).await;
        vanish(&faults);
        let error = store.open(&id("s"), Access::Read, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "not_found");
        faults.assert_spent();
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_and_hides_nothing() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        store_session(&disk.store(), "t", 1).await;
        let denied = ErrorKind::PermissionDenied;
        for (op, part) in [
            (Op::ReadDir, "--work-proj--/s"),
            (Op::Open(OpenMode::Read), "proj--/s/session.jsonl"),
            (Op::FileStat, "proj--/s/session.jsonl"),
            (Op::ReadAt, "proj--/s/session.jsonl"),
        ] {
            faults.fail(op, part, denied);
            let error = store.stat(&id("s"), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{op:?}");
            faults.fail(op, part, denied);
            let error = store.open(&id("s"), Access::Read, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{op:?}");

            faults.fail(op, part, denied);
            let list = store.list(&ListQuery::default(), &never()).await.unwrap();
            let mut states: Vec<_> =
                list.entries.iter().map(|entry| (entry.id.as_str(), entry.state)).collect();
            states.sort_unstable_by_key(|(id, _)| *id);
            assert_eq!(states, [("s", SessionState::Damaged), ("t", SessionState::Ok)], "{op:?}");
            faults.assert_spent();
        }
        faults.fail(Op::ReadDir, "--work-proj--", denied);
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 1);
        assert_eq!(list.entries[0].state, SessionState::Damaged);
        faults.fail(Op::ReadDir, "sessions", denied);
        let error = store.list(&ListQuery::default(), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "io");
    }
}
