//! The jsonl store when the file system fails, or when someone else writes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    io::ErrorKind,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    faulty::{Effect, FaultyFs, Op},
    header, id, never, open, read, seqs, store_session,
};
use turnkeep_log::{Event, Seq, SessionHeader};
use turnkeep_store::{
    Access, EventRange, ListQuery, SessionState, SessionStore,
    jsonl::{JsonlStore, fs::OpenMode},
};

const LOG: &str = "session.jsonl";
const LOCK: &str = "session.lock";
const CUT: &str = "turnkeep.cut-";

/// A disk with a stored session `s` of three events, and a store on a faulty file system.
async fn stored(encoding: turnkeep_store::jsonl::Encoding) -> (Disk, FaultyFs, JsonlStore) {
    let disk = Disk::new(encoding);
    store_session(&disk.store(), "s", 3).await;
    let faults = FaultyFs::default();
    let store = disk.store_on(Arc::new(faults.clone()));
    (disk, faults, store)
}

#[tokio::test]
async fn a_failed_write_is_taken_back_and_can_be_tried_again() {
    for encoding in BOTH {
        for written in [0, 1, 20] {
            let (disk, faults, store) = stored(encoding).await;
            let before = disk.bytes("s");
            let writer = open(&store, "s", Access::Write).await;
            let reader = open(&store, "s", Access::Read).await;
            if written > 0 {
                faults.inject(Op::Append, LOG, 0, 1, Effect::Short(written));
            }
            faults.fail(Op::Append, LOG, ErrorKind::StorageFull);
            let error = writer.append(batch(3, 40), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io");
            faults.assert_spent();
            assert_eq!(disk.bytes("s"), before);
            assert_eq!(read(&*reader).await, batch(0, 3));
            let stat = store.stat(&id("s"), &never()).await.unwrap();
            assert_eq!(stat, disk.store().stat(&id("s"), &never()).await.unwrap());

            append(&*writer, 3, 40).await;
            assert_eq!(read(&*reader).await, batch(0, 43));
            writer.close().await.unwrap();
            let again = open(&disk.store(), "s", Access::Write).await;
            assert_eq!(read(&*again).await, batch(0, 43));
        }
    }
}

#[tokio::test]
async fn a_short_write_is_carried_on() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.inject(Op::Append, LOG, 0, 5, Effect::Short(3));
        append(&*writer, 3, 4).await;
        faults.assert_spent();
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 7));
    }
}

#[tokio::test]
async fn what_cannot_be_taken_back_poisons_the_handle() {
    for step in [Op::Truncate, Op::SyncAll] {
        for encoding in BOTH {
            let (disk, faults, store) = stored(encoding).await;
            let writer = open(&store, "s", Access::Write).await;
            faults.inject(Op::Append, LOG, 0, 1, Effect::Short(5));
            faults.fail(Op::Append, LOG, ErrorKind::StorageFull);
            faults.fail(step, LOG, ErrorKind::Other);
            let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "poisoned", "{error}");
            let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "poisoned");
            assert_eq!(writer.flush(&never()).await.unwrap_err().kind(), "poisoned");
            // What was acknowledged can still be read, and written to once it is open again.
            assert_eq!(read(&*writer).await, batch(0, 3));
            writer.close().await.unwrap();
            let again = open(&store, "s", Access::Write).await;
            append(&*again, 3, 1).await;
            assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 4));
        }
    }
}

#[tokio::test]
async fn a_failed_sync_poisons_the_handle() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        let reader = open(&store, "s", Access::Read).await;
        let before = store.stat(&id("s"), &never()).await.unwrap();
        faults.fail(Op::SyncData, LOG, ErrorKind::Other);
        let error = writer.append(batch(3, 2), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "poisoned");
        assert!(error.to_string().contains("open the session again to see what was stored"));
        // Not a second sync: it could succeed without having stored anything.
        faults.clear_log();
        assert_eq!(writer.append(batch(3, 2), &never()).await.unwrap_err().kind(), "poisoned");
        assert_eq!(faults.log(), []);
        assert_eq!(read(&*reader).await, batch(0, 3));
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), before);
        writer.close().await.unwrap();
        // Here the bytes did survive, which is one of the two valid outcomes.
        let again = open(&disk.store(), "s", Access::Write).await;
        assert_eq!(read(&*again).await, batch(0, 5));
    }
}

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
        faults.before(Op::SyncData, LOG, {
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
        });
        append(&*writer, 3, 2).await;
        assert_eq!(looked.load(Ordering::SeqCst), 1);
        assert_eq!(read(&*reader).await, batch(0, 5));
        assert_ne!(store.stat(&id("s"), &never()).await.unwrap(), before);
    }
}

#[tokio::test]
async fn an_append_is_written_checked_and_synced() {
    for encoding in BOTH {
        let (_disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.clear_log();
        append(&*writer, 3, 2).await;
        let expected = [Op::FileStat, Op::Stat, Op::Append, Op::FileStat, Op::SyncData];
        assert_eq!(faults.ops(""), expected);
    }
}

#[tokio::test]
async fn a_log_is_made_in_an_order_that_survives_a_crash() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let handle = create(&store, "s").await;
        faults.clear_log();
        append(&*handle, 0, 2).await;
        let changes = [
            Op::CreateDir,
            Op::SyncDir,
            Op::Open(OpenMode::Lock),
            Op::TryLock,
            Op::Open(OpenMode::CreateNew),
            Op::Append,
            Op::SyncAll,
            Op::Link,
            Op::Unlink,
        ];
        let root = disk.root();
        let done: Vec<(Op, PathBuf)> = faults
            .log()
            .into_iter()
            .filter(|(op, _)| changes.contains(op))
            .map(|(op, path)| {
                let path = path.strip_prefix(root.parent().unwrap()).unwrap().to_owned();
                let name = path.to_str().unwrap();
                let is_temporary = name.contains(".tmp");
                (op, if is_temporary { "temporary".into() } else { name.into() })
            })
            .collect();
        let project = "sessions/--work-proj--";
        let session = "sessions/--work-proj--/s";
        let expected = [
            (Op::CreateDir, "sessions".to_owned()),
            (Op::SyncDir, String::new()),
            (Op::CreateDir, project.to_owned()),
            (Op::SyncDir, "sessions".to_owned()),
            (Op::CreateDir, session.to_owned()),
            (Op::SyncDir, project.to_owned()),
            (Op::Open(OpenMode::Lock), format!("{session}/{LOCK}")),
            (Op::TryLock, format!("{session}/{LOCK}")),
            (Op::Open(OpenMode::CreateNew), "temporary".to_owned()),
            (Op::Append, "temporary".to_owned()),
            (Op::SyncAll, "temporary".to_owned()),
            (Op::Link, format!("{session}/{}", disk.log_name())),
            (Op::Unlink, "temporary".to_owned()),
            (Op::SyncDir, session.to_owned()),
        ];
        assert_eq!(done, expected.map(|(op, path)| (op, PathBuf::from(path))));
    }
}

#[tokio::test]
async fn a_log_is_made_without_hard_links() {
    for encoding in BOTH {
        for also_without_rename in [false, true] {
            let disk = Disk::new(encoding);
            let faults = FaultyFs::default();
            let store = disk.store_on(Arc::new(faults.clone()));
            let handle = create(&store, "s").await;
            faults.fail(Op::Link, LOG, ErrorKind::PermissionDenied);
            if also_without_rename {
                faults.fail(Op::RenameNew, LOG, ErrorKind::InvalidInput);
            }
            append(&*handle, 0, 2).await;
            append(&*handle, 2, 1).await;
            faults.assert_spent();
            assert_eq!(disk.names("s"), [disk.log_name(), LOCK]);
            handle.close().await.unwrap();
            let again = open(&disk.store(), "s", Access::Write).await;
            assert_eq!(read(&*again).await, batch(0, 3));
        }
    }
}

#[tokio::test]
async fn a_failure_to_make_a_log_leaves_nothing_and_can_be_tried_again() {
    let steps = [
        (Op::CreateDir, "s"),
        (Op::SyncDir, "--work-proj--"),
        (Op::Open(OpenMode::Lock), LOCK),
        (Op::TryLock, LOCK),
        (Op::Open(OpenMode::CreateNew), ".tmp"),
        (Op::Append, ".tmp"),
        (Op::SyncAll, ".tmp"),
        (Op::Link, LOG),
    ];
    for encoding in BOTH {
        for (step, part) in steps {
            let disk = Disk::new(encoding);
            let faults = FaultyFs::default();
            let store = disk.store_on(Arc::new(faults.clone()));
            let handle = create(&store, "s").await;
            faults.fail(step, part, ErrorKind::StorageFull);
            let error = handle.append(batch(0, 2), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{step:?}: {error}");
            faults.assert_spent();
            if disk.session_dir("s").exists() {
                let left: Vec<_> =
                    disk.names("s").into_iter().filter(|name| name != LOCK).collect();
                assert!(left.is_empty(), "{step:?}: {left:?}");
            }
            assert_eq!(disk.store().stat(&id("s"), &never()).await.unwrap(), None);
            assert!(read(&*handle).await.is_empty());
            append(&*handle, 0, 2).await;
            assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 2));
        }
    }
}

#[tokio::test]
async fn a_log_whose_name_may_be_lost_poisons_its_handle() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let handle = create(&store, "s").await;
        faults.fail(Op::SyncDir, "proj--/s", ErrorKind::Other);
        let error = handle.append(batch(0, 2), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "poisoned", "{error}");
        assert_eq!(handle.flush(&never()).await.unwrap_err().kind(), "poisoned");
        handle.close().await.unwrap();
        let again = open(&store, "s", Access::Write).await;
        assert_eq!(read(&*again).await, batch(0, 2));
    }
}

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
        assert!(!disk.root().exists(), "a pending session leaves no trace");
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
        let cases: [(&str, &dyn Fn()); 4] = [
            ("grown", &|| disk.add("s", &disk.encode(line))),
            ("cut", &|| fs::write(disk.log("s"), &intact[..intact.len() - 1]).unwrap()),
            ("removed", &|| fs::remove_file(disk.log("s")).unwrap()),
            ("replaced", &|| {
                fs::write(disk.log("s").with_extension("new"), &intact).unwrap();
                fs::rename(disk.log("s").with_extension("new"), disk.log("s")).unwrap();
            }),
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
        faults.before(Op::ReadAt, LOG, intrude(&disk));
        let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        assert!(error.to_string().contains("bytes of the batch are still there"), "{error}");
        faults.assert_spent();
        assert!(!faults.ops(LOG).contains(&Op::Truncate));

        // Theirs behind the half of ours that a failed write left.
        let (disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.inject(Op::Append, LOG, 0, 1, Effect::Short(5));
        faults.fail(Op::Append, LOG, ErrorKind::StorageFull);
        faults.inject(Op::FileStat, LOG, 1, 1, Effect::Before(Box::new(intrude(&disk))));
        let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        faults.assert_spent();
        assert!(!faults.ops(LOG).contains(&Op::Truncate));
    }
}

#[tokio::test]
async fn a_torn_tail_is_cut_once_and_durably() {
    for encoding in BOTH {
        let torn = |disk: &Disk| {
            let tail = disk.encode("{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{}}\n");
            disk.add("s", &tail[..tail.len() - 1]);
        };
        // Failing to cut changes nothing and can be tried again; failing to sync the cut cannot.
        for (step, part, kind) in [
            (Op::Truncate, LOG, "io"),
            (Op::SyncAll, LOG, "poisoned"),
            (Op::Open(OpenMode::CreateNew), CUT, "io"),
            (Op::SyncAll, CUT, "io"),
        ] {
            let (disk, faults, store) = stored(encoding).await;
            let intact = disk.bytes("s");
            torn(&disk);
            let before = disk.bytes("s");
            let writer = open(&store, "s", Access::Write).await;
            faults.fail(step, part, ErrorKind::StorageFull);
            let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{step:?} {part}: {error}");
            faults.assert_spent();
            if kind == "io" {
                assert_eq!(disk.bytes("s"), before);
                append(&*writer, 3, 1).await;
                append(&*writer, 4, 1).await;
                assert!(disk.bytes("s").starts_with(&intact));
                assert_eq!(read(&*writer).await, batch(0, 5));
                let copy = disk.session_dir("s").join(format!("{CUT}{}", intact.len()));
                assert_eq!(fs::read(copy).unwrap(), before[intact.len()..]);
            }
        }
        // Read, then nothing: the tail is still there.
        let (disk, _, store) = stored(encoding).await;
        torn(&disk);
        let before = disk.bytes("s");
        let writer = open(&store, "s", Access::Write).await;
        writer.flush(&never()).await.unwrap();
        writer.close().await.unwrap();
        assert_eq!(disk.bytes("s"), before);
    }
}

#[tokio::test]
async fn cuts_at_one_offset_are_kept_apart() {
    for encoding in BOTH {
        let (disk, _, store) = stored(encoding).await;
        let intact = disk.bytes("s");
        for turn in 0..3 {
            let line = format!(
                "{{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{{\"turn\":{turn}}}}}\n"
            );
            let tail = disk.encode(&line);
            disk.add("s", &tail[..tail.len() - 1]);
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, 3, 1).await;
            writer.close().await.unwrap();
            fs::write(disk.log("s"), &intact).unwrap();
        }
        let cuts: Vec<_> =
            disk.names("s").into_iter().filter(|name| name.starts_with(CUT)).collect();
        let plain = format!("{CUT}{}", intact.len());
        assert_eq!(cuts, [plain.clone(), format!("{plain}.1"), format!("{plain}.2")]);
    }
}

#[tokio::test]
async fn the_lock_is_the_kernels_word() {
    for encoding in BOTH {
        for step in [Op::Open(OpenMode::Lock), Op::TryLock, Op::FileStat] {
            let (_disk, faults, store) = stored(encoding).await;
            faults.fail(step, LOCK, ErrorKind::PermissionDenied);
            let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{step:?}");
            // Refused, not owned.
            open(&store, "s", Access::Write).await;
        }
        let (disk, faults, store) = stored(encoding).await;
        // The lock file is replaced while it is being locked: twice, and it works out.
        let lock = disk.session_dir("s").join(LOCK);
        let replace = move || {
            fs::remove_file(&lock).unwrap();
            fs::write(&lock, b"").unwrap();
        };
        let injected = |times| {
            faults.inject(Op::TryLock, LOCK, 0, times, Effect::Before(Box::new(replace.clone())));
        };
        injected(2);
        let writer = open(&store, "s", Access::Write).await;
        faults.assert_spent();
        writer.close().await.unwrap();
        // Three times, and it counts as owned.
        injected(3);
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        faults.assert_spent();
        // Given back by name when it ends, for the sake of copies in other processes.
        let writer = open(&store, "s", Access::Write).await;
        faults.clear_log();
        drop(writer);
        assert_eq!(faults.ops(LOCK), [Op::Unlock]);
    }
}

#[tokio::test]
async fn an_absent_session_is_not_locked() {
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
async fn listing_reads_the_first_frames_alone() {
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
        assert!(faults.bytes_read() <= 5 * (8 << 10), "{}", faults.bytes_read());
        // And of those on the page alone: one more, to know whether there is another page.
        faults.clear_log();
        let query = ListQuery { limit: Some(1), ..ListQuery::default() };
        store.list(&query, &never()).await.unwrap();
        assert!(faults.bytes_read() <= 2 * (8 << 10), "{}", faults.bytes_read());
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

#[tokio::test]
async fn a_store_flush_reports_every_failure_and_tries_every_handle() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let handles =
            [create(&store, "a").await, create(&store, "b").await, create(&store, "c").await];
        faults.fail(Op::Append, "/a/", ErrorKind::StorageFull);
        faults.fail(Op::Append, "/c/", ErrorKind::StorageFull);
        let error = store.flush(&never()).await.unwrap_err();
        let failed: Vec<_> = error.failures.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(failed, ["a", "c"]);
        assert!(error.to_string().contains("could not be flushed"));
        assert!(disk.store().stat(&id("b"), &never()).await.unwrap().is_some());
        store.flush(&never()).await.unwrap();
        for handle in handles {
            assert!(disk.store().stat(handle.id(), &never()).await.unwrap().is_some());
        }
    }
}

#[tokio::test]
async fn closing_a_handle_that_failed_still_gives_the_session_back() {
    for encoding in BOTH {
        let (_disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        faults.fail(Op::SyncData, LOG, ErrorKind::Other);
        writer.append(batch(3, 1), &never()).await.unwrap_err();
        writer.close().await.unwrap();
        open(&store, "s", Access::Write).await;
        assert_eq!(store.create(header("s"), &never()).await.unwrap_err().kind(), "already_exists");
    }
}
