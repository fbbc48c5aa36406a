//! The jsonl store when someone else writes, or wants to.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, io::ErrorKind, sync::Arc};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    event,
    faulty::{Effect, FaultyFs, LOCK, LOG, Op, stored},
    header, id, never, open, read, seqs, store_session,
};
use turnkeep_log::{Event, Seq, SessionHeader};
use turnkeep_store::{Access, EventRange, ListQuery, SessionState, SessionStore, jsonl::Encoding};

#[tokio::test]
async fn a_log_that_appears_meanwhile_is_not_replaced() {
    for encoding in BOTH {
        // At the last moment, from a writer that takes no lock.
        let disk = Disk::new(encoding);
        store_session(&disk.store(), "other", 1).await;
        let theirs = disk.bytes("other");
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let handle = create(&store, "s").await;
        let (log, bytes) = (disk.log("s"), theirs.clone());
        faults.before(Op::Link, LOG, move || fs::write(&log, &bytes).unwrap());
        let error = handle.append(batch(0, 2), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_exists");
        assert_eq!(disk.bytes("s"), theirs);
        assert_eq!(disk.names("s"), [disk.log_name(), LOCK]);
    }
}

#[tokio::test]
async fn a_session_that_a_newer_harness_took_over_is_not_written_any_more() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let handle = create(&store, "s").await;
        append(&*handle, 0, 2).await;
        let ours = disk.bytes("s");
        let later =
            disk.log("s").with_file_name(disk.log_name().replace("session.", "session.v3."));
        fs::write(later, "theirs").unwrap();
        let error = handle.append(batch(2, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost", "{error}");
        assert!(error.to_string().contains("log format v3"), "{error}");
        assert_eq!(disk.bytes("s"), ours);
    }
}

#[tokio::test]
async fn a_session_that_a_newer_harness_makes_first_is_not_made_again() {
    for encoding in BOTH {
        for project in ["--work-proj--", "--elsewhere--"] {
            let disk = Disk::new(encoding);
            let store = disk.store();
            let handle = create(&store, "s").await;
            let newer = disk.root().join(project).join("s").join("session.v2.jsonl");
            fs::create_dir_all(newer.parent().unwrap()).unwrap();
            fs::write(&newer, "theirs").unwrap();
            let error = handle.append(batch(0, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "format_unsupported", "{error}");
            assert!(!disk.log("s").exists());
            assert_eq!(fs::read(&newer).unwrap(), b"theirs");
        }
    }
}

#[tokio::test]
async fn a_session_that_a_newer_harness_took_over_is_not_served_from_memory() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_session(&disk.store(), "s", 3).await;
        let store = disk.store();
        // All of it was read, and what is known of it is known.
        let reader = open(&store, "s", Access::Read).await;
        assert_eq!(read(&*reader).await, batch(0, 3));
        store.stat(&id("s"), &never()).await.unwrap();
        store.list(&ListQuery::default(), &never()).await.unwrap();
        fs::write(disk.session_dir("s").join("session.v1.jsonl"), "theirs").unwrap();
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("s"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "format_unsupported", "{error}");
        }
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap_err().kind(), "format_unsupported");
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries[0].state, SessionState::Newer);
        // Who had it open already would see no more of it, without being told.
        for range in [EventRange::ALL, EventRange::from(Seq(2)), EventRange::from(Seq(3))] {
            let error = reader.read(range, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "format_unsupported", "{error}");
            assert!(error.to_string().contains("session.v1.jsonl)"), "{error}");
        }
        fs::remove_file(disk.session_dir("s").join("session.v1.jsonl")).unwrap();
        assert_eq!(read(&*reader).await, batch(0, 3));
    }
}

#[tokio::test]
async fn a_session_that_appears_in_another_project_is_not_made_twice() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let handle = create(&store, "s").await;
        let elsewhere = SessionHeader { cwd: Some("/elsewhere".to_owned()), ..header("s") };
        let other = disk.store().create(elsewhere.clone(), &never()).await.unwrap();
        append(&*other, 0, 2).await;
        // What is stored is what counts, and it counts once.
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 1);
        assert_eq!(list.entries[0].stat.as_ref().unwrap().header, elsewhere);
        let error = handle.append(batch(0, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_exists");
        assert!(!disk.log("s").exists());
    }
}

#[tokio::test]
async fn rival_creators_lose_at_their_first_write() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let (first, second) = (disk.store(), disk.store());
        let winner = create(&first, "s").await;
        let loser = create(&second, "s").await;
        append(&*winner, 0, 1).await;
        let error = loser.append(batch(0, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        assert_eq!(loser.flush(&never()).await.unwrap_err().kind(), "already_owned");
        winner.close().await.unwrap();
        let error = loser.append(batch(0, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_exists");
        // And keeps the lock of what it cannot make: it has to be closed.
        loser.close().await.unwrap();
        let next = open(&first, "s", Access::Write).await;
        append(&*next, 1, 1).await;
    }
}

#[tokio::test]
async fn a_foreign_write_is_found_before_anything_is_written() {
    for encoding in BOTH {
        let line = "{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{\"turn\":9}}\n";
        let (disk, faults, store) = stored(encoding).await;
        let intact = disk.bytes("s");
        let cases: [(&str, &dyn Fn()); 5] = [
            ("grown", &|| disk.add("s", &disk.encode(line))),
            ("cut", &|| fs::write(disk.log("s"), &intact[..intact.len() - 1]).unwrap()),
            ("removed", &|| fs::remove_file(disk.log("s")).unwrap()),
            ("replaced", &|| {
                fs::write(disk.log("s").with_extension("new"), &intact).unwrap();
                fs::rename(disk.log("s").with_extension("new"), disk.log("s")).unwrap();
            }),
            ("rewritten", &|| rewrite(&disk)),
        ];
        for (name, tamper) in cases {
            fs::write(disk.log("s"), &intact).unwrap();
            let writer = open(&store, "s", Access::Write).await;
            tamper();
            let tampered = fs::read(disk.log("s")).ok();
            faults.clear_log();
            for _ in 0..2 {
                let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "ownership_lost", "{name}");
                let text = error.to_string();
                assert!(
                    text.contains("ownership was lost; close this handle and reopen"),
                    "{text}"
                );
                assert_eq!(fs::read(disk.log("s")).ok(), tampered, "{name}");
            }
            assert_eq!(writer.flush(&never()).await.unwrap_err().kind(), "ownership_lost");
            assert!(!faults.ops(LOG).contains(&Op::Append), "not written and then taken back");
            writer.close().await.unwrap();
            if name == "grown" {
                let writer = open(&store, "s", Access::Write).await;
                append(&*writer, 4, 1).await;
                assert_eq!(seqs(&read(&*writer).await), [0, 1, 2, 3, 4]);
            }
        }
    }
}

#[tokio::test]
async fn a_write_at_the_same_time_is_found_after_ours() {
    for encoding in BOTH {
        let line = "{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{\"turn\":9}}\n";
        for theirs_first in [true, false] {
            let (disk, faults, store) = stored(encoding).await;
            let before = disk.bytes("s");
            let theirs = disk.encode(line);
            let writer = open(&store, "s", Access::Write).await;
            let (log, bytes) = (disk.log("s"), theirs.clone());
            let add = move || {
                use std::io::Write as _;
                fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(&bytes).unwrap();
            };
            if theirs_first {
                faults.before(Op::Append, LOG, add);
            } else {
                // Past the fence, which is the first look; before the second.
                let mut add = Some(add);
                let effect = move || add.take().unwrap()();
                faults.inject(Op::FileStat, LOG, 1, 1, Effect::Before(Box::new(effect)));
            }
            let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "ownership_lost");
            faults.assert_spent();
            let after = disk.bytes("s");
            if theirs_first {
                // Ours was last, and is gone: theirs is as they wrote it.
                assert_eq!(after, [before, theirs].concat());
                let reader = open(&disk.store(), "s", Access::Read).await;
                assert_eq!(seqs(&read(&*reader).await), [0, 1, 2, 3]);
            } else {
                // Theirs was last, and is not ours to cut.
                assert!(after.starts_with(&before) && after.ends_with(&theirs));
                assert!(after.len() > before.len() + theirs.len());
            }
            assert_eq!(
                writer.append(batch(3, 1), &never()).await.unwrap_err().kind(),
                "ownership_lost"
            );
        }
    }
}

/// Bytes as long as `ours`, which end a log with `before` and then another event of this seq.
fn same_size(disk: &Disk, ours: &[u8], before: &[Event], seq: u64) -> Vec<u8> {
    let line = |event: &Event| format!("{}\n", event.text().as_str());
    let before: String = before.iter().map(line).collect();
    let others = (0..100_u64).map(|n| {
        let (time, n) = (1_700_000_000_000 + n / 10, n % 10);
        let text = format!(
            r#"{{"type":"todo/write","seq":{seq},"time":{time},"data":{{"todos":[],"n":{n}}}}}"#
        );
        Event::parse(&text.into()).unwrap()
    });
    let mut encoded = others.map(|other| disk.encode(&(before.clone() + &line(&other))));
    encoded.find(|bytes| bytes.len() == ours.len() && bytes != ours).unwrap()
}

/// Puts a log of the same size in the place of one of three events: it ends with another event 2.
fn rewrite(disk: &Disk) {
    let log = disk.bytes("s");
    let header = disk.text("s").lines().next().unwrap().to_owned() + "\n";
    let header = disk.encode(&header);
    let records = same_size(disk, &log[header.len()..], &batch(0, 2), 2);
    fs::write(disk.log("s"), [header, records].concat()).unwrap();
}

#[tokio::test]
async fn a_fork_of_the_same_size_is_found_at_the_next_append() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 3).await;
        // Ours, acknowledged; then theirs in its place, with the same seq.
        let writer = open(&store, "s", Access::Write).await;
        let end = disk.bytes("s").len();
        append(&*writer, 3, 1).await;
        let mut log = disk.bytes("s");
        let theirs = same_size(&disk, &log[end..], &[], 3);
        log.truncate(end);
        log.extend_from_slice(&theirs);
        fs::write(disk.log("s"), &log).unwrap();

        let error = writer.append(batch(4, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        assert!(error.to_string().contains("other bytes than this handle left"), "{error}");
        assert_eq!(disk.bytes("s"), log);
        writer.close().await.unwrap();
        let again = open(&store, "s", Access::Write).await;
        append(&*again, 4, 1).await;
    }
}

#[tokio::test]
async fn a_torn_tail_that_someone_finished_is_not_cut() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let whole = disk.encode(&format!("{}\n", event(3).text().as_str()));
        let intact = disk.bytes("s");
        // The tail as it was found, and another batch of the same length in its place.
        let mut torn = whole.clone();
        torn.truncate(whole.len() - 1);
        torn.push(b'x');
        if encoding == Encoding::Zstd {
            // A frame that goes on behind the end of the file.
            torn[6] |= 0xF0;
        }
        disk.add("s", &torn);
        let writer = open(&store, "s", Access::Write).await;
        fs::write(disk.log("s"), [intact, whole].concat()).unwrap();
        faults.clear_log();
        let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        assert!(!faults.ops(LOG).contains(&Op::Truncate));
        writer.close().await.unwrap();
        let reader = open(&store, "s", Access::Read).await;
        assert_eq!(read(&*reader).await, batch(0, 4));
    }
}

#[tokio::test]
async fn a_fence_that_cannot_be_read_stops_the_batch_and_no_more() {
    for encoding in BOTH {
        for step in [Op::FileStat, Op::Stat, Op::ReadAt] {
            let (disk, faults, store) = stored(encoding).await;
            let before = disk.bytes("s");
            let writer = open(&store, "s", Access::Write).await;
            faults.fail(step, LOG, ErrorKind::Other);
            let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{step:?}");
            faults.assert_spent();
            assert_eq!(disk.bytes("s"), before);
            append(&*writer, 3, 1).await;
        }
    }
}

/// Adds bytes to a log, as a process that takes no lock.
fn intrude(disk: &Disk) -> impl FnMut() + Send + use<> {
    use std::io::Write as _;
    let line = "{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{\"turn\":9}}\n";
    let (log, bytes) = (disk.log("s"), disk.encode(line));
    move || fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(&bytes).unwrap()
}

#[tokio::test]
async fn only_our_own_bytes_are_ever_cut() {
    for encoding in BOTH {
        // Theirs before ours, and more of theirs while ours are about to be taken back.
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.before(Op::Append, LOG, intrude(&disk));
        // Past the fence, which is the first that reads.
        faults.inject(Op::ReadAt, LOG, 1, 1, Effect::Before(Box::new(intrude(&disk))));
        let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        assert!(error.to_string().contains("bytes of the batch are still there"), "{error}");
        faults.assert_spent();
        assert!(!faults.ops(LOG).contains(&Op::Truncate));

        // Theirs behind the half of ours that a failed write left.
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.inject(Op::Append, LOG, 0, 1, Effect::Short(5));
        faults.inject(Op::FileStat, LOG, 1, 1, Effect::Before(Box::new(intrude(&disk))));
        let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        faults.assert_spent();
        assert!(!faults.ops(LOG).contains(&Op::Truncate));
    }
}
