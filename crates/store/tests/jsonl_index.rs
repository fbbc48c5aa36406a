//! The index beside a log: what it spares a reader, and that nothing depends on it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    sync::Arc,
    time::Duration,
};

use support::{
    append, batch, create,
    disk::{BOTH, Disk, INDEX, names},
    event_of,
    faulty::{Effect, FaultyFs, Op},
    id, never, open, read, store_session,
};
use turnkeep_log::{Event, Seq, Vocabulary};
use turnkeep_store::{
    Access, EventRange, ListQuery, SessionHints, SessionStore,
    jsonl::{Encoding, JsonlOptions, JsonlStore, fs::OpenMode},
};

/// Events that do not compress to nothing.
fn large(first: u64, count: u64) -> Vec<Event> {
    let noise = |seq: u64| -> Vec<u64> {
        (0..40).map(|n| (n + seq * 40).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()
    };
    (first..first + count)
        .map(|seq| event_of("todo/write", seq, &format!("{:?}", noise(seq))))
        .collect()
}

/// Stores a session of so many large events, ten a batch, and closes it.
async fn store_large(store: &dyn SessionStore, name: &str, count: u64) {
    let writer = create(store, name).await;
    for first in (0..count).step_by(10) {
        writer.append(large(first, 10), &never()).await.unwrap();
    }
    writer.close().await.unwrap();
}

impl Indexed {
    fn bytes(&self) -> Option<Vec<u8>> {
        fs::read(&self.0).ok()
    }

    fn remove(&self) {
        fs::remove_file(&self.0).unwrap();
    }

    fn put(&self, bytes: &[u8]) {
        fs::write(&self.0, bytes).unwrap();
    }

    /// Waits until there is one.
    async fn comes(&self) -> Vec<u8> {
        for _ in 0..500 {
            if let Some(bytes) = self.bytes() {
                return bytes;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no index was written");
    }
}

/// Where the index of a session is.
struct Indexed(std::path::PathBuf);

fn index(disk: &Disk, session: &str) -> Indexed {
    Indexed(disk.session_dir(session).join(INDEX))
}

async fn tail(store: &dyn SessionStore, offset: u64) -> Vec<Event> {
    let reader = open(store, "s", Access::Read).await;
    reader.read(EventRange::from(Seq(offset)), &never()).await.unwrap()
}

async fn hints(store: &dyn SessionStore) -> Option<SessionHints> {
    store.stat(&id("s"), &never()).await.unwrap().unwrap().hints
}

/// A store that counts what it reads.
fn counting(disk: &Disk) -> (FaultyFs, JsonlStore) {
    let faults = FaultyFs::default();
    let store = disk.store_on(Arc::new(faults.clone()));
    faults.clear_log();
    (faults, store)
}

#[tokio::test]
async fn a_tail_read_touches_the_end_of_the_log_alone() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_large(&disk.store(), "s", 6000).await;
        let size = disk.bytes("s").len() as u64;
        assert!(size > 2 << 20, "{size}");
        let whole = read(&*open(&disk.store(), "s", Access::Read).await).await;

        let (faults, store) = counting(&disk);
        assert_eq!(tail(&store, 5980).await, whole[5980..]);
        let read = faults.bytes_read();
        // The head, the index, its seal, and from the last place to start from on.
        assert!(read < 150 << 10, "{read} of {size} bytes were read");
        // A page in the middle costs what it holds.
        let (faults, store) = counting(&disk);
        let reader = open(&store, "s", Access::Read).await;
        let range = EventRange { offset: 3000, length: Some(20) };
        assert_eq!(reader.read(range, &never()).await.unwrap(), whole[3000..3020]);
        assert!(faults.bytes_read() < 400 << 10, "{} bytes were read", faults.bytes_read());

        // Without the index it is the same, and takes all of the log.
        index(&disk, "s").remove();
        let (faults, store) = counting(&disk);
        assert_eq!(tail(&store, 5980).await, whole[5980..]);
        assert!(faults.bytes_read() >= size);
    }
}

#[tokio::test]
async fn an_index_is_small_private_and_not_synced() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let (faults, store) = counting(&disk);
        store_large(&store, "s", 3000).await;
        let written = index(&disk, "s").bytes().unwrap();
        assert!(written.len() * 100 < disk.bytes("s").len(), "{} bytes", written.len());
        let mode = fs::metadata(disk.session_dir("s").join(INDEX)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(names(&disk.session_dir("s")), [disk.log_name(), "session.lock", INDEX]);
        let ops = faults.ops(INDEX);
        assert!(ops.contains(&Op::Append));
        assert!(!ops.contains(&Op::SyncData) && !ops.contains(&Op::SyncAll), "{ops:?}");
        // What is written to the log first is not done again for it.
        let syncs = faults.ops(disk.log_name()).iter().filter(|op| **op == Op::SyncData).count();
        assert!(syncs < 300, "{syncs} syncs of 300 batches");
    }
}

#[tokio::test]
async fn hints_say_what_the_events_say() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let writer = create(&store, "s").await;
        assert_eq!(hints(&store).await, None, "nothing is stored");
        let said = r#"{"id":"m","role":"user","content":[],"source":{"kind":"user"}}"#;
        let events = [
            event_of("user/message", 0, said),
            event_of("session/title", 1, r#"{"title":"a \"title\" \ud83d","messageSeqs":[]}"#),
            event_of("turn/start", 2, r#"{"turn":1}"#),
            event_of(
                "tool/call",
                3,
                r#"{"turn":1,"step":1,"callId":"c","name":"n","arguments":""}"#,
            ),
        ];
        writer.append(events.to_vec(), &never()).await.unwrap();
        let expected = SessionHints {
            event_count: 4,
            title: Some("a \"title\" \u{fffd}".to_owned()),
            blank: false,
            last_prompt_at: Some(events[0].time()),
            last_event_at: Some(events[3].time()),
            turns: 1,
            open_turn: Some(Seq(2)),
            open_calls: Some(1),
        };
        assert_eq!(hints(&store).await.as_ref(), Some(&expected), "known to the writer's store");
        assert_eq!(hints(&disk.store()).await, None, "and to nobody else yet");
        writer.close().await.unwrap();
        assert_eq!(hints(&disk.store()).await.as_ref(), Some(&expected));
        let list = disk.store().list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].stat.as_ref().unwrap().hints.as_ref(), Some(&expected));

        // What was opened to write was read; a batch goes on from there.
        let writer = open(&store, "s", Access::Write).await;
        index(&disk, "s").remove();
        assert_eq!(hints(&store).await.as_ref(), Some(&expected));
        let end = event_of("turn/end", 4, r#"{"turn":1,"reason":{"kind":"completed"}}"#);
        writer.append(vec![end], &never()).await.unwrap();
        writer.close().await.unwrap();
        let hints = hints(&disk.store()).await.unwrap();
        assert_eq!((hints.event_count, hints.open_turn, hints.open_calls), (5, None, Some(0)));
        // A stat knows no number of events but by the hints: that decides what is read.
        let stat = disk.store().stat(&id("s"), &never()).await.unwrap().unwrap();
        assert_eq!(stat.event_count, None);
    }
}

#[tokio::test]
async fn an_index_counts_for_the_log_it_was_made_from() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_large(&store, "s", 200).await;
        let (log, made) = (disk.bytes("s"), index(&disk, "s").bytes().unwrap());
        assert_eq!(hints(&store).await.unwrap().event_count, 200);
        // Someone adds to the log and makes no index.
        let more = large(200, 1);
        disk.add("s", &disk.encode(&turnkeep_log::packed::lines(&more)));
        assert_eq!(hints(&store).await, None);
        let (faults, counted) = counting(&disk);
        assert_eq!(tail(&counted, 199).await, [large(199, 1), more].concat());
        assert!(faults.bytes_read() < log.len() as u64 / 2, "the rest of it still counts");
        // A log that was cut, and one that went on in another way.
        disk.lay("s", &log[..log.len() - 1]);
        assert_eq!(hints(&store).await, None);
        assert_eq!(tail(&store, 190).await.len(), if encoding == Encoding::Zstd { 0 } else { 9 });
        let shorter = Disk::new(encoding);
        store_large(&shorter.store(), "s", 100).await;
        let other = shorter.bytes("s");
        let rest = disk.encode(&turnkeep_log::packed::lines(&batch(100, 2000)));
        disk.lay("s", &[other, rest].concat());
        index(&disk, "s").put(&made);
        assert_eq!(hints(&store).await, None);
        assert_eq!(tail(&store, 150).await, batch(150, 1950));
    }
}

#[tokio::test]
async fn an_index_is_outdated_by_another_end_of_the_same_length() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let writer = create(&disk.store(), "s").await;
        writer.append(large(0, 50), &never()).await.unwrap();
        let before = disk.bytes("s");
        let titled = |n: u32| {
            let title = format!(r#"{{"title":"title {n}","messageSeqs":[]}}"#);
            [event_of("session/title", 50, &title)]
        };
        writer.append(titled(100).to_vec(), &never()).await.unwrap();
        writer.close().await.unwrap();
        let title = async || hints(&disk.store()).await.and_then(|hints| hints.title);
        assert_eq!(title().await.as_deref(), Some("title 100"));
        let log = disk.bytes("s");
        let other = (101..1000).find_map(|n| {
            let bytes = disk.encode(&turnkeep_log::packed::lines(&titled(n)));
            let bytes = [before.clone(), bytes].concat();
            (bytes.len() == log.len()).then_some((n, bytes))
        });
        let (n, bytes) = other.unwrap();
        disk.lay("s", &bytes);
        assert_eq!(title().await, None);
        assert_eq!(tail(&disk.store(), 50).await, titled(n));
    }
}

#[tokio::test]
async fn a_log_with_a_torn_tail_has_an_index_that_says_so() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_large(&disk.store(), "s", 1500).await;
        let intact = disk.bytes("s").len();
        index(&disk, "s").remove();
        disk.add("s", &disk.encode("{\"type\":\"turn/st")[..12]);
        let store = disk.store();
        assert_eq!(tail(&store, 1490).await, large(1490, 10));
        let made = String::from_utf8(index(&disk, "s").bytes().unwrap()).unwrap();
        let head: serde_json::Value = serde_json::from_str(made.lines().next().unwrap()).unwrap();
        assert_eq!((&head["tail"], &head["end"]), (&"torn".into(), &intact.into()));
        assert_eq!(hints(&store).await.unwrap().event_count, 1500);
        let (faults, store) = counting(&disk);
        assert_eq!(tail(&store, 1490).await, large(1490, 10));
        assert!(faults.bytes_read() < 150 << 10, "{}", faults.bytes_read());
        // Another tail is another log.
        disk.add("s", b"x");
        assert_eq!(hints(&store).await, None);
    }
}

#[tokio::test]
async fn full_reads_and_writers_do_not_believe_it() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_large(&disk.store(), "s", 1000).await;
        let mut log = disk.bytes("s");
        let middle = log.len() / 2;
        log[middle..middle + 64].fill(b'#');
        // So that it is no uncommitted tail.
        let end = event_of("turn/end", 1000, r#"{"turn":1,"reason":{"kind":"completed"}}"#);
        log.extend(disk.encode(&turnkeep_log::packed::lines(&[end])));
        disk.lay("s", &log);
        let store = disk.store();
        let reader = open(&store, "s", Access::Read).await;
        // What was checked once can still be read.
        assert_eq!(tail(&store, 990).await[..10], large(990, 10));
        let error = reader.read(EventRange::ALL, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "corrupt");
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "corrupt");
    }
}

#[tokio::test]
async fn an_index_by_other_rules_is_not_believed() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let options = |vocabulary, max_frame_bytes| JsonlOptions {
            vocabulary,
            max_frame_bytes,
            ..disk.options()
        };
        let wide = options(Vocabulary::v0().with(["x/y"]), 1 << 30);
        let wide = JsonlStore::open(wide).unwrap();
        let writer = create(&wide, "s").await;
        writer.append(vec![event_of("x/y", 0, "{}")], &never()).await.unwrap();
        writer.append(large(1, 50), &never()).await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(tail(&wide, 40).await.len(), 11);
        assert!(hints(&wide).await.is_some());

        let narrow = JsonlStore::open(options(Vocabulary::v0(), 1 << 30)).unwrap();
        assert_eq!(hints(&narrow).await, None);
        let reader = open(&narrow, "s", Access::Read).await;
        let error = reader.read(EventRange::from(Seq(40)), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "format_unsupported");

        let small = options(Vocabulary::v0().with(["x/y"]), 4 << 10);
        let small = JsonlStore::open(small).unwrap();
        let reader = open(&small, "s", Access::Read).await;
        let read = reader.read(EventRange::from(Seq(0)), &never()).await;
        index(&disk, "s").remove();
        let reader = open(&small, "s", Access::Read).await;
        let without = reader.read(EventRange::from(Seq(0)), &never()).await;
        assert_eq!(read.map_err(|error| error.kind()), without.map_err(|error| error.kind()));
    }
}

#[tokio::test]
async fn a_log_that_grows_gets_an_index_before_it_is_closed() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let writer = create(&disk.store(), "s").await;
        writer.append(large(0, 10), &never()).await.unwrap();
        assert_eq!(index(&disk, "s").bytes(), None);
        for first in (10..2000).step_by(10) {
            writer.append(large(first, 10), &never()).await.unwrap();
        }
        index(&disk, "s").comes().await;
        assert_eq!(tail(&disk.store(), 1990).await, large(1990, 10));
        writer.close().await.unwrap();
    }
}

#[tokio::test]
async fn who_reads_a_large_log_leaves_an_index() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_large(&disk.store(), "s", 1500).await;
        let made = index(&disk, "s").bytes().unwrap();
        index(&disk, "s").remove();
        let (faults, store) = counting(&disk);
        tail(&store, 1490).await;
        let again = index(&disk, "s").bytes().unwrap();
        let head = |index: &[u8]| String::from_utf8_lossy(index).lines().next().map(str::to_owned);
        assert_eq!(head(&again), head(&made), "what its writer would say");
        let ops = faults.ops(disk.log_name());
        assert!(ops.contains(&Op::SyncData), "what it counts for is on disk");
        // Once is enough.
        faults.clear_log();
        let reader = open(&store, "s", Access::Read).await;
        read(&*reader).await;
        read(&*reader).await;
        tail(&store, 10).await;
        assert!(!faults.ops(INDEX).contains(&Op::Append));
        // A small one is read again as fast.
        store_session(&disk.store(), "t", 10).await;
        index(&disk, "t").remove();
        read(&*open(&store, "t", Access::Read).await).await;
        assert_eq!(index(&disk, "t").bytes(), None);
    }
}

#[tokio::test]
async fn where_no_index_can_be_kept_everything_works() {
    for encoding in BOTH {
        for (op, kind) in [
            (Op::Open(OpenMode::CreateNew), ErrorKind::PermissionDenied),
            (Op::Append, ErrorKind::StorageFull),
            (Op::Replace, ErrorKind::PermissionDenied),
        ] {
            let disk = Disk::new(encoding);
            let (faults, store) = counting(&disk);
            faults.inject(op, INDEX, 0, 1000, Effect::Fail(kind));
            store_large(&store, "s", 1000).await;
            assert_eq!(tail(&store, 990).await, large(990, 10));
            assert_eq!(names(&disk.session_dir("s")), [disk.log_name(), "session.lock"], "{op:?}");
            assert_eq!(hints(&store).await, None);
        }
        // What cannot be read, and what is no file.
        let disk = Disk::new(encoding);
        store_large(&disk.store(), "s", 100).await;
        let (faults, store) = counting(&disk);
        faults.inject(Op::ReadAt, INDEX, 0, 1000, Effect::Fail(ErrorKind::Other));
        assert_eq!(hints(&store).await, None);
        assert_eq!(tail(&store, 90).await, large(90, 10));
        index(&disk, "s").remove();
        fs::create_dir(disk.session_dir("s").join(INDEX)).unwrap();
        assert_eq!(hints(&disk.store()).await, None);
        let writer = open(&disk.store(), "s", Access::Write).await;
        append(&*writer, 100, 1).await;
        writer.close().await.unwrap();
        assert_eq!(tail(&disk.store(), 100).await, batch(100, 1));
    }
}

#[tokio::test]
async fn what_a_crash_left_of_an_index_is_no_hindrance() -> io::Result<()> {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_large(&disk.store(), "s", 100).await;
        let made = index(&disk, "s").bytes().unwrap();
        for left in [&[] as &[u8], &[0; 600], &made[..made.len() / 2], b"{}\n{}\n", b"\xff\n"] {
            index(&disk, "s").put(left);
            fs::write(disk.session_dir("s").join("turnkeep.idx.tmp"), left)?;
            let store = disk.store();
            assert_eq!(hints(&store).await, None);
            assert_eq!(tail(&store, 90).await.len() % 10, 0);
            let next = read(&*open(&store, "s", Access::Read).await).await.len() as u64;
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, next, 10).await;
            writer.close().await.unwrap();
            assert_eq!(hints(&store).await.unwrap().event_count, next + 10);
        }
        // A large file that calls itself an index is not read.
        let huge = fs::File::create(disk.session_dir("s").join(INDEX))?;
        huge.set_len(1 << 40)?;
        let (faults, store) = counting(&disk);
        assert_eq!(hints(&store).await, None);
        tail(&store, 90).await;
        assert!(faults.bytes_read() < 1 << 20);
    }
    Ok(())
}
