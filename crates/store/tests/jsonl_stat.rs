//! What the jsonl store tells of a log without reading it, and in which order it lists.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    time::{Duration, SystemTime},
};

use support::{
    append, create,
    disk::{BOTH, Disk},
    header, id, never, store_session,
};
use turnkeep_log::SessionHeader;
use turnkeep_store::{ListQuery, SessionList, SessionState, SessionStore, jsonl::JsonlStore};

fn names(list: &SessionList) -> Vec<&str> {
    list.entries.iter().map(|entry| entry.id.as_str()).collect()
}

/// All pages of a listing, put together.
async fn paged(store: &JsonlStore, query: &ListQuery, limit: usize) -> Vec<String> {
    let mut query = ListQuery { limit: Some(limit), ..query.clone() };
    let mut all = Vec::new();
    for _ in 0..100 {
        let page = store.list(&query, &never()).await.unwrap();
        assert!(page.entries.len() <= limit);
        all.extend(names(&page).into_iter().map(str::to_owned));
        match page.cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return all,
        }
    }
    panic!("pages without an end: {all:?}");
}

#[tokio::test]
async fn the_size_is_that_of_the_file_and_no_events_are_counted() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let handle = create(&store, "s").await;
        for next in 0..4 {
            append(&*handle, next, 1).await;
            let stat = store.stat(&id("s"), &never()).await.unwrap().unwrap();
            assert_eq!(stat.size_bytes, Some(disk.bytes("s").len() as u64));
            assert_eq!(stat.event_count, None);
            let list = store.list(&ListQuery::default(), &never()).await.unwrap();
            assert_eq!(list.entries[0].stat.as_ref().unwrap().size_bytes, stat.size_bytes);
        }
    }
}

#[tokio::test]
async fn a_revision_belongs_to_one_file_and_not_to_its_copy() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_session(&disk.store(), "s", 2).await;
        let revision = async |store: &JsonlStore| {
            store.stat(&id("s"), &never()).await.unwrap().unwrap().revision
        };
        let before = revision(&disk.store()).await;
        assert_eq!(revision(&disk.store()).await, before, "in every instance");
        // The same bytes with the same time, in another file.
        let log = disk.log("s");
        let modified = fs::metadata(&log).unwrap().modified().unwrap();
        let copy = log.with_extension("copy");
        fs::copy(&log, &copy).unwrap();
        fs::File::options().append(true).open(&copy).unwrap().set_modified(modified).unwrap();
        fs::rename(&copy, &log).unwrap();
        assert_ne!(revision(&disk.store()).await, before);
    }
}

#[tokio::test]
async fn sessions_that_changed_at_one_time_are_listed_by_id() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let sessions = ["m", "b", "z", "a-10", "a-9", "k"];
        for name in sessions {
            store_session(&store, name, 1).await;
        }
        for name in sessions {
            // One is older than the rest.
            let time = if name == "b" { time - Duration::from_secs(1) } else { time };
            let log = fs::File::options().append(true).open(disk.log(name)).unwrap();
            log.set_modified(time).unwrap();
        }
        let expected = ["a-10", "a-9", "k", "m", "z", "b"];
        for store in [store, disk.store()] {
            let list = store.list(&ListQuery::default(), &never()).await.unwrap();
            assert_eq!(names(&list), expected);
            for limit in 1..=7 {
                let paged = paged(&store, &ListQuery::default(), limit).await;
                assert_eq!(paged, expected, "pages of {limit}");
            }
        }
    }
}

#[tokio::test]
async fn pages_are_of_what_the_filters_leave() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for number in 0..8_u64 {
            let name = format!("s{number}");
            store_session(&store, &name, 1).await;
            let damaged = number % 3 == 0;
            if damaged {
                fs::write(disk.log(&name), disk.encode("7\n")).unwrap();
            }
            let log = fs::File::options().append(true).open(disk.log(&name)).unwrap();
            log.set_modified(time - Duration::from_secs(number)).unwrap();
        }
        let elsewhere = SessionHeader { cwd: Some("/elsewhere".to_owned()), ..header("other") };
        let handle = store.create(elsewhere, &never()).await.unwrap();
        append(&*handle, 0, 1).await;
        handle.close().await.unwrap();

        let here = || ListQuery { cwd: Some("/work/proj".to_owned()), ..ListQuery::default() };
        let of = |state| ListQuery { states: vec![state], ..ListQuery::default() };
        let cases = [
            // What has no header that can be read is of the directory it lies in.
            (here(), &["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"][..]),
            (ListQuery { cwd: Some("/elsewhere".to_owned()), ..ListQuery::default() }, &["other"]),
            (of(SessionState::Damaged), &["s0", "s3", "s6"]),
            (of(SessionState::Ok), &["other", "s1", "s2", "s4", "s5", "s7"]),
            (
                ListQuery { states: vec![SessionState::Ok], ..here() },
                &["s1", "s2", "s4", "s5", "s7"],
            ),
            (of(SessionState::Newer), &[]),
        ];
        for (query, expected) in cases {
            let list = store.list(&query, &never()).await.unwrap();
            assert_eq!(names(&list), expected, "{query:?}");
            for limit in 1..=8 {
                assert_eq!(paged(&store, &query, limit).await, expected, "{query:?}, {limit}");
            }
        }
    }
}
