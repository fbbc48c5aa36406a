//! What is known of sessions without reading their events.

use std::time::Duration;

use crate::{Access, ListQuery, SessionState};
use turnkeep_log::SessionHeader;

use super::{
    Backend,
    steps::{append, create, header, id, never, open, store_session},
};

/// A revision changes with every append and with nothing else, and is the same everywhere.
pub async fn revisions_name_states_of_a_log(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let stat = async || store.stat(&id("s"), &never()).await.unwrap().unwrap();
    let listed = async || {
        let list = store.list(&ListQuery::default(), &never()).await.unwrap();
        list.entries[0].stat.clone().unwrap()
    };
    let mut seen = vec![stat().await.revision];
    for seq in 0..4 {
        append(&*handle, seq, 1).await;
        let now = stat().await;
        assert_eq!(stat().await, now);
        assert_eq!(listed().await, now);
        assert!(!seen.contains(&now.revision));
        seen.push(now.revision);
    }
    // Who owns the session does not matter.
    let before = stat().await;
    handle.close().await.unwrap();
    assert_eq!(stat().await, before);
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(stat().await, before);
    writer.close().await.unwrap();
    let reader = open(&*store, "s", Access::Read).await;
    assert_eq!(*reader.header(), before.header);
    let other = backend.instance().stat(&id("s"), &never()).await.unwrap();
    assert_eq!(other, Some(before));
}

/// Of an empty store nothing is known, without an error.
pub async fn absent_sessions_have_no_stat(backend: &impl Backend) {
    let store = backend.instance();
    assert_eq!(store.stat(&id("none"), &never()).await.unwrap(), None);
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    assert!(list.entries.is_empty());
    assert_eq!(list.cursor, None);
}

/// A list is ordered by the last change, and its pages put together are the whole.
pub async fn a_list_is_newest_first_and_pages(backend: &impl Backend) {
    let store = backend.instance();
    for name in ["c", "a", "e", "b", "d"] {
        store_session(&*store, name, 1).await;
        // Far enough apart for the coarsest clock.
        tokio::time::sleep(Duration::from_millis(12)).await;
    }
    let names = |list: &crate::SessionList| -> Vec<String> {
        list.entries.iter().map(|entry| entry.id.to_string()).collect()
    };
    let all = store.list(&ListQuery::default(), &never()).await.unwrap();
    assert_eq!(names(&all), ["d", "b", "e", "a", "c"]);
    assert_eq!(all.cursor, None);
    assert!(all.entries.iter().all(|entry| entry.state == SessionState::Ok));

    for limit in 1..=5 {
        let mut query = ListQuery { limit: Some(limit), ..ListQuery::default() };
        let mut paged = Vec::new();
        loop {
            let page = store.list(&query, &never()).await.unwrap();
            assert!(page.entries.len() <= limit);
            paged.extend(names(&page));
            match page.cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => break,
            }
        }
        assert_eq!(paged, ["d", "b", "e", "a", "c"], "pages of {limit}");
    }

    let writer = open(&*store, "a", Access::Write).await;
    append(&*writer, 1, 1).await;
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    assert_eq!(names(&list)[0], "a");
}

/// A list can be held to one directory and to some states.
pub async fn a_list_can_be_filtered(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "here", 1).await;
    let elsewhere = [("there", Some("/work-proj")), ("root", Some("/")), ("nowhere", None)];
    for (name, cwd) in elsewhere {
        let header = SessionHeader { cwd: cwd.map(str::to_owned), ..header(name) };
        let handle = store.create(header, &never()).await.unwrap();
        handle.flush(&never()).await.unwrap();
    }
    let list = async |query: ListQuery| -> Vec<String> {
        let list = store.list(&query, &never()).await.unwrap();
        assert_eq!(list.cursor, None);
        list.entries.iter().map(|entry| entry.id.to_string()).collect()
    };
    let of = |cwd: &str| ListQuery { cwd: Some(cwd.to_owned()), ..ListQuery::default() };
    // Both directories have the same readable name on disk.
    assert_eq!(list(of("/work/proj")).await, ["here"]);
    assert_eq!(list(ListQuery { limit: Some(1), ..of("/work/proj") }).await, ["here"]);
    assert_eq!(list(of("/work-proj")).await, ["there"]);
    assert_eq!(list(of("/")).await, ["root"]);
    assert_eq!(list(of("/nothing")).await, Vec::<String>::new());
    let states =
        |states: &[SessionState]| ListQuery { states: states.to_vec(), ..ListQuery::default() };
    assert_eq!(list(states(&[SessionState::Ok, SessionState::Newer])).await.len(), 4);
    assert!(list(states(&[SessionState::Damaged])).await.is_empty());
}

/// A cursor that no listing gave out is refused.
pub async fn a_cursor_of_another_kind_is_refused(backend: &impl Backend) {
    let store = backend.instance();
    for cursor in ["", "x", "12", "a.b", "1.~", "9999999999999999999999.a"] {
        let query = ListQuery { cursor: Some(cursor.to_owned()), ..ListQuery::default() };
        let error = store.list(&query, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "bad_cursor", "{cursor}");
    }
}
