//! The jsonl store when the file system fails.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, io::ErrorKind, path::PathBuf, sync::Arc};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    faulty::{CUT, Effect, FaultyFs, LOCK, LOG, Op, stored},
    header, id, never, open, read,
};
use turnkeep_store::{Access, SessionStat, SessionStore, jsonl::fs::OpenMode};

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
async fn a_short_write_is_taken_back_and_written_again_in_one_piece() {
    for encoding in BOTH {
        // The first piece could reach the disk alone, and what follows it read as zeros.
        let (disk, faults, store) = stored(encoding).await;
        let before = disk.bytes("s");
        let writer = open(&store, "s", Access::Write).await;
        faults.inject(Op::Append, LOG, 0, 2, Effect::Short(3));
        append(&*writer, 3, 4).await;
        faults.assert_spent();
        let changes: Vec<Op> = faults
            .ops(LOG)
            .into_iter()
            .filter(|op| [Op::Append, Op::Truncate, Op::SyncAll].contains(op))
            .collect();
        let expected = [Op::Append, Op::Truncate, Op::Append, Op::Truncate, Op::Append];
        assert_eq!(changes, expected);
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 7));

        // Where that does not help, the batch fails; and is gone from the disk as well.
        fs::write(disk.log("s"), &before).unwrap();
        writer.close().await.unwrap();
        for last in [Effect::Short(3), Effect::Fail(ErrorKind::StorageFull)] {
            let writer = open(&store, "s", Access::Write).await;
            faults.clear_log();
            let shorts = if let Effect::Short(_) = last { 2 } else { 1 };
            faults.inject(Op::Append, LOG, 0, shorts, Effect::Short(3));
            faults.inject(Op::Append, LOG, 0, 1, last);
            let error = writer.append(batch(3, 4), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "io", "{error}");
            faults.assert_spent();
            assert_eq!(disk.bytes("s"), before);
            assert!(faults.ops(LOG).contains(&Op::SyncAll), "the rollback is not synced");
            writer.close().await.unwrap();
        }
        append(&*open(&store, "s", Access::Write).await, 3, 1).await;
    }
}

#[tokio::test]
async fn what_cannot_be_taken_back_poisons_the_handle() {
    // A short write is truncated at once, and once more when that fails.
    for (step, times) in [(Op::Truncate, 2), (Op::SyncAll, 1)] {
        for encoding in BOTH {
            let (disk, faults, store) = stored(encoding).await;
            let writer = open(&store, "s", Access::Write).await;
            faults.inject(Op::Append, LOG, 0, 1, Effect::Short(5));
            if step == Op::SyncAll {
                faults.fail(Op::Append, LOG, ErrorKind::StorageFull);
            }
            faults.inject(step, LOG, 0, times, Effect::Fail(ErrorKind::Other));
            let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "poisoned", "{error}");
            assert!(error.to_string().contains("failed to roll back append to \""), "{error}");
            faults.assert_spent();
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
        append(&*writer, 3, 1).await;
        let before = store.stat(&id("s"), &never()).await.unwrap().unwrap();
        faults.fail(Op::SyncData, LOG, ErrorKind::Other);
        let error = writer.append(batch(4, 2), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "poisoned");
        assert!(error.to_string().contains("open the session again to see what was stored"));
        // Not a second sync: it could succeed without having stored anything.
        faults.clear_log();
        assert_eq!(writer.append(batch(4, 2), &never()).await.unwrap_err().kind(), "poisoned");
        assert_eq!(faults.log(), []);
        assert_eq!(read(&*reader).await, batch(0, 4));
        // What the events say in short may be unknown for a while; what is stored is as it was.
        let after = store.stat(&id("s"), &never()).await.unwrap().unwrap();
        assert_eq!(SessionStat { hints: None, ..after }, SessionStat { hints: None, ..before });
        writer.close().await.unwrap();
        let again = open(&disk.store(), "s", Access::Write).await;
        append(&*again, 4, 1).await;
        assert_eq!(read(&*again).await, batch(0, 5));
    }
}

#[tokio::test]
async fn an_append_is_written_checked_and_synced() {
    for encoding in BOTH {
        let (_disk, faults, store) = stored(encoding).await;
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 2).await;
        faults.clear_log();
        append(&*writer, 5, 2).await;
        let expected = [
            Op::FileStat,
            Op::Stat,
            Op::ReadDir,
            Op::ReadAt,
            Op::Append,
            Op::FileStat,
            Op::SyncData,
        ];
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
            .filter(|(op, path)| changes.contains(op) && path.starts_with(root.parent().unwrap()))
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
        assert!(error.to_string().contains("session store flush failed"));
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
