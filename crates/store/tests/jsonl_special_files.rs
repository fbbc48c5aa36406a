//! The jsonl store where something lies in the place of a file that is none.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, os::unix::fs::symlink, path::Path, sync::mpsc, thread, time::Duration};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use support::{
    append, create,
    disk::{BOTH, Disk},
    id, never, open, read, store_session,
};
use turnkeep_store::{
    Access, ListQuery, SessionState, SessionStore,
    jsonl::fs::{Fs as _, OpenMode, OsFs},
};

type Make = fn(&Path);

/// What is put in the place of a file.
const SPECIAL: [(&str, Make); 4] = [
    ("a FIFO", |path| {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }),
    ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ("a device", |path| symlink("/dev/zero", path).unwrap()),
    ("a directory", |path| fs::create_dir(path).unwrap()),
];

/// Runs a test on a thread of its own, which is left behind when it hangs.
fn within_seconds(test: impl AsyncFnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let running = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(test());
        let _ = done.send(());
    });
    match wait.recv_timeout(Duration::from_secs(10)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        _ => running.join().unwrap(),
    }
}

#[test]
fn only_a_regular_file_is_opened() {
    within_seconds(async || {
        for (name, make) in SPECIAL {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file");
            make(&path);
            for mode in [OpenMode::Read, OpenMode::Append, OpenMode::Lock] {
                let text = OsFs.open(&path, mode).unwrap_err().to_string();
                // The system has its own word for a directory that is to be written to.
                let is_told = text.contains("is not a regular file") || text.contains("directory");
                assert!(is_told, "{name} {mode:?}: {text}");
            }
        }
    });
}

#[test]
fn a_log_that_is_no_regular_file_is_refused_and_listed() {
    within_seconds(async || {
        for (name, make) in SPECIAL {
            for encoding in BOTH {
                let disk = Disk::new(encoding);
                let store = disk.store();
                store_session(&store, "good", 2).await;
                fs::create_dir_all(disk.session_dir("s")).unwrap();
                make(&disk.log("s"));

                let error = store.stat(&id("s"), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "io", "{name}: {error}");
                for access in [Access::Read, Access::Write] {
                    let error = store.open(&id("s"), access, &never()).await.unwrap_err();
                    assert_eq!(error.kind(), "io", "{name}: {error}");
                }
                let list = store.list(&ListQuery::default(), &never()).await.unwrap();
                let states = ["good", "s"].map(|wanted| {
                    let mut entries = list.entries.iter();
                    entries.find(|entry| entry.id.as_str() == wanted).unwrap().state
                });
                assert_eq!(states, [SessionState::Ok, SessionState::Damaged], "{name}");
                let bad = list.entries.iter().find(|entry| entry.id.as_str() == "s").unwrap();
                let reason = bad.reason.as_deref().unwrap();
                assert!(reason.contains("is not a regular file"), "{name}: {reason}");
            }
        }
    });
}

#[test]
fn a_lock_that_is_no_regular_file_keeps_writers_out_and_readers_in() {
    within_seconds(async || {
        for (name, make) in SPECIAL {
            for encoding in BOTH {
                let disk = Disk::new(encoding);
                let store = disk.store();
                store_session(&store, "s", 2).await;
                let lock = disk.session_dir("s").join("session.lock");
                fs::remove_file(&lock).unwrap();
                make(&lock);

                let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
                assert_eq!(error.kind(), "io", "{name}: {error}");
                assert_eq!(read(&*open(&store, "s", Access::Read).await).await.len(), 2);

                // Once it is out of the way, all is well.
                fs::remove_file(&lock).or_else(|_| fs::remove_dir(&lock)).unwrap();
                append(&*open(&store, "s", Access::Write).await, 2, 1).await;

                // The same for a session that is being made.
                let new = disk.session_dir("new");
                fs::create_dir(&new).unwrap();
                make(&new.join("session.lock"));
                let handle = create(&store, "new").await;
                assert_eq!(handle.flush(&never()).await.unwrap_err().kind(), "io", "{name}");
            }
        }
    });
}
