//! The trash of a jsonl store: where sessions lie in it, and what goes wrong on the way.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use support::{
    append, batch,
    disk::{BOTH, Disk, INDEX, PROJECT, names},
    faulty::{LOCK, Op, stored},
    header, id, never, open, read, store_session,
};
use turnkeep_log::SessionHeader;
use turnkeep_store::{
    Access, Emptying, ListQuery, SessionStore,
    jsonl::{Encoding, JsonlOptions, JsonlStore},
};

const TRASH: &str = ".turnkeep-trash";

fn trash(disk: &Disk) -> PathBuf {
    disk.root().join(TRASH)
}

/// Where a session lies that was deleted at a time.
fn in_trash(disk: &Disk, deleted_at: i64, session: &str) -> PathBuf {
    trash(disk).join(deleted_at.to_string()).join(PROJECT).join(session)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn a_deleted_session_lies_whole_and_private_below_the_root() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 3).await;
        let bytes = disk.bytes("s");
        // Whatever lies beside the log goes along.
        fs::write(disk.session_dir("s").join("turnkeep.cut-7"), "cut").unwrap();
        let deleted = store.delete(&id("s"), &never()).await.unwrap();
        let there = in_trash(&disk, deleted.deleted_at, "s");
        assert_eq!(names(&there), [disk.log_name(), LOCK, "turnkeep.cut-7", INDEX]);
        assert_eq!(fs::read(there.join(disk.log_name())).unwrap(), bytes);
        for dir in there.ancestors().take_while(|dir| **dir != disk.root()) {
            assert_eq!(mode(dir), 0o700, "{}", dir.display());
        }
        assert_eq!(names(&disk.root().join(PROJECT)), Vec::<String>::new());
        let trashed = store.trash(&never()).await.unwrap();
        let index = fs::metadata(there.join(INDEX)).unwrap().len();
        assert_eq!(trashed[0].size_bytes, bytes.len() as u64 + 3 + index);

        // Nothing of it is left behind, either way.
        store.restore(&id("s"), None, &never()).await.unwrap();
        assert_eq!(names(&trash(&disk)), Vec::<String>::new());
        assert_eq!(disk.bytes("s"), bytes);
        store.delete(&id("s"), &never()).await.unwrap();
        store.empty_trash(Emptying::All, &never()).await.unwrap();
        assert_eq!(names(&trash(&disk)), Vec::<String>::new());
    }
}

/// A DSH build looks into the directories of the root, and into the directories of those.
#[tokio::test]
async fn readers_of_two_levels_find_no_session_in_the_trash() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        for name in ["s", "t"] {
            store_session(&store, name, 1).await;
            store.delete(&id(name), &never()).await.unwrap();
        }
        for slot in names(&trash(&disk)) {
            assert!(slot.bytes().all(|byte| byte.is_ascii_digit()), "{slot}");
            for entry in fs::read_dir(trash(&disk).join(slot)).unwrap() {
                let entry = entry.unwrap();
                assert!(entry.file_type().unwrap().is_dir());
                assert_eq!(entry.file_name(), PROJECT);
            }
        }
        // Nor is it what the encoding of a root is told by.
        let other = JsonlStore::open(JsonlOptions::new(disk.root())).unwrap();
        assert_eq!(other.encoding(), Encoding::Zstd);
        store_session(&other, "u", 1).await;
        let list = other.list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 1);
        // What would make a mixture of the root is not put back.
        let restored = other.restore(&id("s"), None, &never()).await;
        if encoding == Encoding::None {
            let error = restored.unwrap_err();
            assert_eq!(error.kind(), "format_unsupported");
            assert!(error.to_string().contains("compression \"none\""), "{error}");
        } else {
            restored.unwrap();
        }
    }
}

#[tokio::test]
async fn whatever_answers_to_an_id_can_be_deleted() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "good", 1).await;
        // Garbage, a log of the other encoding, one of a later format, one in two projects.
        disk.lay("garbage", b"\0\0\0\0");
        let other = BOTH.into_iter().find(|other| *other != encoding).unwrap();
        let foreign = disk.session_dir("foreign").join(support::disk::log_name(other));
        support::disk::lay(&foreign, b"x");
        support::disk::lay(&disk.session_dir("newer").join("session.v2.jsonl"), b"y");
        disk.lay("twice", b"one");
        let second = disk.root().join("--other--/twice").join(disk.log_name());
        support::disk::lay(&second, b"two");

        let fresh = disk.store();
        for name in ["garbage", "foreign", "newer", "twice"] {
            let before = fs::read_dir(disk.session_dir(name)).unwrap().count();
            fresh.delete(&id(name), &never()).await.unwrap();
            assert!(!disk.session_dir(name).exists(), "{name}");
            fresh.restore(&id(name), None, &never()).await.map_or_else(
                |error| assert_eq!((name, error.kind()), ("foreign", "format_unsupported")),
                |_| {
                    let names = names(&disk.session_dir(name));
                    assert_eq!(names.len(), before + 1, "and the lock: {names:?}");
                },
            );
        }
        assert_eq!(fs::read(&second).unwrap(), b"two");
        assert_eq!(disk.bytes("twice"), b"one");
    }
}

#[tokio::test]
async fn links_are_left_alone() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "s", 2).await;
    store_session(&store, "t", 2).await;
    // A session that is a link to somewhere else.
    let elsewhere = disk.dir.path().join("elsewhere");
    fs::rename(disk.session_dir("s"), &elsewhere).unwrap();
    symlink(&elsewhere, disk.session_dir("s")).unwrap();
    let error = store.delete(&id("s"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    assert!(error.to_string().contains("it is a symbolic link"), "{error}");
    assert_eq!(read(&*open(&store, "s", Access::Read).await).await, batch(0, 2));
    assert!(!trash(&disk).exists());
    // A trash that is.
    symlink(disk.dir.path(), trash(&disk)).unwrap();
    for error in [
        store.delete(&id("t"), &never()).await.unwrap_err().to_string(),
        store.trash(&never()).await.unwrap_err().to_string(),
        store.restore(&id("u"), None, &never()).await.unwrap_err().to_string(),
        store.empty_trash(Emptying::All, &never()).await.unwrap_err().to_string(),
    ] {
        assert!(error.contains("it is a symbolic link; remove the link"), "{error}");
    }
    assert_eq!(names(disk.dir.path()), ["elsewhere", "sessions"]);
    fs::remove_file(trash(&disk)).unwrap();
    // One that others may write to.
    fs::create_dir(trash(&disk)).unwrap();
    fs::set_permissions(trash(&disk), fs::Permissions::from_mode(0o777)).unwrap();
    let error = store.delete(&id("t"), &never()).await.unwrap_err();
    assert!(error.to_string().contains("others than its owner may write to it"), "{error}");
    fs::set_permissions(trash(&disk), fs::Permissions::from_mode(0o700)).unwrap();
    // Emptying it removes a link, and not what it leads to.
    let kept = disk.dir.path().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "kept").unwrap();
    symlink(&kept, disk.session_dir("t").join("link")).unwrap();
    store.delete(&id("t"), &never()).await.unwrap();
    assert_eq!(store.empty_trash(Emptying::All, &never()).await.unwrap().removed.len(), 1);
    assert_eq!(fs::read(kept.join("file")).unwrap(), b"kept");
}

#[tokio::test]
async fn what_is_not_ours_in_the_trash_stays() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "s", 1).await;
    let deleted = store.delete(&id("s"), &never()).await.unwrap();
    let strange = ["note.txt", "007", "-5", "1 ", "x"];
    for name in strange {
        fs::create_dir_all(trash(&disk).join(name).join("p/s")).unwrap();
    }
    let slot = in_trash(&disk, deleted.deleted_at, "s").with_file_name("file");
    fs::write(&slot, "kept").unwrap();
    assert_eq!(store.trash(&never()).await.unwrap().len(), 1);
    assert_eq!(store.empty_trash(Emptying::All, &never()).await.unwrap().removed.len(), 1);
    assert_eq!(fs::read(&slot).unwrap(), b"kept");
    for name in strange {
        assert!(trash(&disk).join(name).join("p/s").exists(), "{name}");
    }
}

#[tokio::test]
async fn deletions_of_one_millisecond_have_places_of_their_own() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    let sessions: Vec<_> = (0..20).map(|round| format!("s{round}")).collect();
    for name in &sessions {
        store_session(&store, name, 1).await;
    }
    let deletions = sessions.iter().map(|name| {
        let (store, id) = (store.clone(), id(name));
        tokio::spawn(async move { store.delete(&id, &never()).await.unwrap().deleted_at })
    });
    let mut found = Vec::new();
    for deletion in deletions.collect::<Vec<_>>() {
        found.push(deletion.await.unwrap());
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 20);
    assert_eq!(store.trash(&never()).await.unwrap().len(), 20);
}

#[tokio::test]
async fn a_session_on_another_file_system_stays_where_it_is() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let before = names(&disk.root());
        faults.fail(Op::RenameDir, TRASH, ErrorKind::CrossesDevices);
        let error = store.delete(&id("s"), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "io");
        assert!(error.to_string().contains("on another file system than the trash"), "{error}");
        faults.assert_spent();
        // Nothing is left of the attempt.
        assert_eq!(names(&trash(&disk)), Vec::<String>::new());
        assert_eq!(before.len() + 1, names(&disk.root()).len());
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 1).await;
    }
}

#[tokio::test]
async fn the_move_is_prepared_and_confirmed_by_syncs() {
    let (disk, faults, store) = stored(Encoding::Zstd).await;
    faults.clear_log();
    let deleted = store.delete(&id("s"), &never()).await.unwrap();
    let slot = trash(&disk).join(deleted.deleted_at.to_string());
    let changes = |op: &Op| matches!(op, Op::CreateDir | Op::SyncDir | Op::RenameDir);
    let log: Vec<_> = faults.log().into_iter().filter(|(op, _)| changes(op)).collect();
    let end = [
        (Op::CreateDir, slot.clone()),
        (Op::SyncDir, trash(&disk)),
        (Op::CreateDir, slot.join(PROJECT)),
        (Op::SyncDir, slot.clone()),
        (Op::RenameDir, slot.join(PROJECT).join("s")),
        (Op::SyncDir, slot.join(PROJECT)),
        (Op::SyncDir, disk.root().join(PROJECT)),
    ];
    assert_eq!(log[log.len() - end.len()..], end);
    let made = log.iter().position(|entry| *entry == (Op::CreateDir, trash(&disk))).unwrap();
    assert_eq!(log[made + 1], (Op::SyncDir, disk.root()));
}

#[tokio::test]
async fn a_move_that_may_not_be_durable_is_told() {
    let (disk, faults, store) = stored(Encoding::Zstd).await;
    faults.fail(Op::SyncDir, &format!("sessions/{PROJECT}"), ErrorKind::Other);
    let error = store.delete(&id("s"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    assert!(error.to_string().contains("cannot make durable that it was moved"), "{error}");
    faults.assert_spent();
    assert!(!disk.session_dir("s").exists());
    assert_eq!(store.trash(&never()).await.unwrap().len(), 1);
    store.restore(&id("s"), None, &never()).await.unwrap();
    assert_eq!(read(&*open(&store, "s", Access::Read).await).await, batch(0, 3));
}

#[tokio::test]
async fn what_was_never_stored_does_not_keep_a_session_from_coming_back() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 2).await;
        store.delete(&id("s"), &never()).await.unwrap();
        // A writer that was ended before it had stored anything.
        fs::create_dir(disk.session_dir("s")).unwrap();
        fs::write(disk.session_dir("s").join(LOCK), "").unwrap();
        let temporary = format!("{}.0123456789ab.tmp", disk.log_name());
        fs::write(disk.session_dir("s").join(temporary), "begun").unwrap();
        store.restore(&id("s"), None, &never()).await.unwrap();
        assert_eq!(disk.names("s"), [disk.log_name(), LOCK, INDEX]);
        assert_eq!(read(&*open(&store, "s", Access::Write).await).await, batch(0, 2));
        assert!(store.trash(&never()).await.unwrap().is_empty());
        // What was in the way goes with the trash.
        store.delete(&id("s"), &never()).await.unwrap();
        assert_eq!(store.empty_trash(Emptying::All, &never()).await.unwrap().removed.len(), 1);
        assert_eq!(names(&trash(&disk)), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_is_half_removed_is_not_restored() {
    let (disk, faults, store) = stored(Encoding::Zstd).await;
    store.delete(&id("s"), &never()).await.unwrap();
    faults.fail(Op::Unlink, TRASH, ErrorKind::Other);
    let error = store.empty_trash(Emptying::All, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    faults.assert_spent();
    assert!(store.trash(&never()).await.unwrap().is_empty());
    let error = store.restore(&id("s"), None, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
    // The next time it goes.
    store.empty_trash(Emptying::All, &never()).await.unwrap();
    assert_eq!(names(&trash(&disk)), Vec::<String>::new());
}

#[tokio::test]
async fn what_someone_holds_in_the_trash_stays() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "s", 1).await;
    let deleted = store.delete(&id("s"), &never()).await.unwrap();
    let lock = fs::File::open(in_trash(&disk, deleted.deleted_at, "s").join(LOCK)).unwrap();
    lock.lock().unwrap();
    let emptied = store.empty_trash(Emptying::All, &never()).await.unwrap();
    assert_eq!((emptied.removed.len(), emptied.in_use.len()), (0, 1));
    let error = store.restore(&id("s"), None, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
    drop(lock);
    store.restore(&id("s"), None, &never()).await.unwrap();
}

#[tokio::test]
async fn a_session_that_goes_while_it_is_opened_is_not_found() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        let session = disk.session_dir("s");
        let aside = disk.dir.path().join("aside");
        faults.before(Op::Open(turnkeep_store::jsonl::fs::OpenMode::Lock), LOCK, move || {
            fs::rename(&session, &aside).unwrap();
        });
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "not_found", "{error}");
        faults.assert_spent();
    }
}

#[tokio::test]
async fn a_session_without_a_place_of_its_own_is_refused() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    support::disk::lay(&disk.root().join(PROJECT).join("flat.jsonl.zstd"), b"x");
    let error = store.delete(&id("flat"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "format_unsupported");
    // One whose project would look like a log, in the trash.
    let odd = disk.root().join("session.jsonl.zstd/odd").join(disk.log_name());
    support::disk::lay(&odd, b"x");
    let error = store.delete(&id("odd"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    assert!(error.to_string().contains("named like a log"), "{error}");
}

#[tokio::test]
async fn sessions_without_a_directory_come_back_too() {
    let disk = Disk::new(Encoding::None);
    let store = disk.store();
    let handle = store.create(SessionHeader { cwd: None, ..header("s") }, &never()).await.unwrap();
    append(&*handle, 0, 1).await;
    handle.close().await.unwrap();
    store.delete(&id("s"), &never()).await.unwrap();
    assert_eq!(store.trash(&never()).await.unwrap()[0].cwd, None);
    // The project's directory may be gone by then.
    fs::remove_dir(disk.root().join("_no-cwd")).unwrap();
    store.restore(&id("s"), None, &never()).await.unwrap();
    assert_eq!(read(&*open(&store, "s", Access::Read).await).await, batch(0, 1));
    let error = store.create(header("s"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_exists");
}
