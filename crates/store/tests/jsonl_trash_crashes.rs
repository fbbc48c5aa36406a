//! The trash of a jsonl store when the process or the machine gives up half way.
//!
//! Each operation is stopped before every single file operation that it consists of, in both ways,
//! and several times where a power cut may go one way or the other.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

#[allow(dead_code, reason = "the storms use the rest")]
mod sim;
mod support;

use std::{path::PathBuf, sync::Arc};

use sim::disk::{Disk, Ending, Moment, Names, Stop};
use support::{batch, header, id};
use turnkeep_store::{
    EventRange,
    jsonl::{JsonlOptions, blocking::BlockingStore, fs::Fs as _},
};

const PROJECT: &str = "--work-proj--";
const LOG: &str = "session.jsonl.zstd";

/// How often each moment is tried: what a power cut keeps is a matter of chance.
const SEEDS: u64 = 12;

/// A disk with a session of three events, stored for certain.
fn stored(seed: u64) -> (Disk, Vec<u8>) {
    let disk = Disk::new(seed, Names::Links, None);
    let mut handle = store(&disk).create(header("s")).unwrap();
    handle.append(&batch(0, 3)).unwrap();
    drop(handle);
    let bytes = disk.bytes(&live()).unwrap();
    (disk, bytes)
}

fn store(disk: &Disk) -> BlockingStore {
    let options = JsonlOptions::new(Disk::store_root());
    BlockingStore::open_on(options, Arc::new(disk.process())).unwrap()
}

fn live() -> PathBuf {
    Disk::store_root().join(PROJECT).join("s").join(LOG)
}

/// Every log of the session in the trash.
fn trashed(disk: &Disk) -> Vec<Vec<u8>> {
    let fs = disk.process();
    let trash = Disk::store_root().join(".turnkeep-trash");
    let slots = fs.read_dir(&trash).unwrap_or_default();
    let log = |slot: std::ffi::OsString| trash.join(slot).join(PROJECT).join("s").join(LOG);
    slots.into_iter().filter_map(|slot| disk.bytes(&log(slot.name))).collect()
}

/// Where the session is.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Live,
    Trash,
    Nowhere,
}

/// Where the session is, which must be one place, and whole.
fn place(disk: &Disk, bytes: &[u8], story: &str) -> Place {
    let (live, trashed) = (disk.bytes(&live()), trashed(disk));
    for log in live.iter().chain(&trashed) {
        assert_eq!(log, bytes, "{story}: not whole");
    }
    match (live, trashed.len()) {
        (Some(_), 0) => Place::Live,
        (None, 1) => Place::Trash,
        (None, 0) => Place::Nowhere,
        (live, count) => panic!("{story}: live {}, in the trash {count} times", live.is_some()),
    }
}

/// Runs an operation that is stopped after so many steps, for every number of them; then `check`
/// on the disk as the next process finds it. Returns how many moments there were.
fn at_every_step(
    prepare: impl Fn(&Disk),
    operation: impl Fn(&BlockingStore) -> bool,
    check: impl Fn(&Disk, &[u8], bool, &str),
) -> u64 {
    for stop in [Stop::Kill, Stop::PowerCut] {
        for after in 1.. {
            let mut finished = false;
            for seed in 0..SEEDS {
                let (disk, bytes) = stored(seed);
                prepare(&disk);
                let store = store(&disk);
                disk.expect_trouble(0, Some(Ending { after, moment: Moment::Any, stop }));
                let done = operation(&store);
                finished = disk.stopped().is_none();
                if finished {
                    assert!(done);
                    disk.stop(stop);
                }
                drop(store);
                disk.restart();
                check(&disk, &bytes, done, &format!("{stop:?} after {after}, seed {seed}"));
            }
            if finished && stop == Stop::PowerCut {
                return after;
            }
            if finished {
                break;
            }
        }
    }
    unreachable!("a number of steps is finite")
}

fn reads_whole(opened: &BlockingStore, story: &str) {
    let mut handle = opened.open(&id("s")).unwrap();
    assert_eq!(handle.read(EventRange::ALL).unwrap(), batch(0, 3), "{story}");
    handle.append(&batch(3, 1)).unwrap();
}

#[test]
fn a_deletion_leaves_the_session_in_one_place() {
    let steps = at_every_step(
        |_| {},
        |store| store.delete(&id("s")).is_ok(),
        |disk, bytes, done, story| {
            let store = store(disk);
            match place(disk, bytes, story) {
                Place::Live => assert!(!done, "{story}: acknowledged, and back"),
                Place::Trash => drop(store.restore(&id("s")).unwrap()),
                Place::Nowhere => panic!("{story}: lost"),
            }
            reads_whole(&store, story);
            // And once more, over what was left behind.
            store.delete(&id("s")).unwrap();
        },
    );
    assert!(steps > 20, "{steps}");
}

#[test]
fn a_restore_leaves_the_session_in_one_place() {
    let steps = at_every_step(
        |disk| drop(store(disk).delete(&id("s")).unwrap()),
        |store| store.restore(&id("s")).is_ok(),
        |disk, bytes, done, story| {
            let store = store(disk);
            match place(disk, bytes, story) {
                Place::Live => {}
                Place::Trash => {
                    assert!(!done, "{story}: acknowledged, and gone again");
                    store.restore(&id("s")).unwrap();
                }
                Place::Nowhere => panic!("{story}: lost"),
            }
            reads_whole(&store, story);
        },
    );
    assert!(steps > 15, "{steps}");
}

#[test]
fn a_restore_over_a_leftover_leaves_the_session_in_one_place() {
    let steps = at_every_step(
        |disk| {
            store(disk).delete(&id("s")).unwrap();
            let fs = disk.process();
            let dir = live().parent().unwrap().to_owned();
            fs.create_dir(&dir).unwrap();
            fs.open(&dir.join("session.lock"), turnkeep_store::jsonl::fs::OpenMode::Lock).unwrap();
            fs.sync_dir(&dir).unwrap();
            fs.sync_dir(dir.parent().unwrap()).unwrap();
        },
        |store| store.restore(&id("s")).is_ok(),
        |disk, bytes, _, story| {
            let store = store(disk);
            match place(disk, bytes, story) {
                Place::Live => {}
                Place::Trash => drop(store.restore(&id("s")).unwrap()),
                Place::Nowhere => panic!("{story}: lost"),
            }
            reads_whole(&store, story);
        },
    );
    assert!(steps > 20, "{steps}");
}

#[test]
fn an_emptied_trash_holds_the_session_whole_or_not_at_all() {
    let steps = at_every_step(
        |disk| drop(store(disk).delete(&id("s")).unwrap()),
        |store| store.empty_trash().is_ok(),
        |disk, bytes, _, story| {
            let store = store(disk);
            if place(disk, bytes, story) == Place::Trash {
                store.restore(&id("s")).unwrap();
                reads_whole(&store, story);
                store.delete(&id("s")).unwrap();
            } else {
                assert_eq!(store.restore(&id("s")).unwrap_err().kind(), "not_found", "{story}");
            }
            store.empty_trash().unwrap();
            assert_eq!(place(disk, bytes, story), Place::Nowhere);
        },
    );
    assert!(steps > 15, "{steps}");
}
