//! Deleting sessions, and undoing that.

use turnkeep_log::SessionHeader;

use super::{
    Backend,
    steps::{
        append, batch, cancelled, create, event_of, header, id, never, open, read, store_session,
    },
};
use crate::{Access, Emptying, EventRange, ListQuery, SessionStore, Trashed, resume};

async fn ids(store: &dyn SessionStore) -> Vec<String> {
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    list.entries.into_iter().map(|entry| entry.id.as_str().to_owned()).collect()
}

async fn trash(store: &dyn SessionStore) -> Vec<Trashed> {
    store.trash(&never()).await.unwrap()
}

/// A deleted session is nowhere but in the trash, for every instance, and comes back as it was.
pub async fn a_deleted_session_is_in_the_trash_and_can_be_restored(backend: &impl Backend) {
    let (store, other) = (backend.instance(), backend.instance());
    store_session(&*store, "s", 3).await;
    store_session(&*store, "t", 1).await;
    let before = store.stat(&id("s"), &never()).await.unwrap().unwrap();
    let reader = open(&*other, "s", Access::Read).await;
    assert_eq!(read(&*reader).await.len(), 3);

    let deleted = store.delete(&id("s"), &never()).await.unwrap();
    assert_eq!(deleted.id, id("s"));
    for store in [&store, &other, &backend.instance()] {
        assert_eq!(ids(&**store).await, ["t"]);
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), None);
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("s"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "not_found");
        }
        let error = store.delete(&id("s"), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "not_found");
        assert!(error.to_string().contains("session \"s\" not found"), "{error}");
        let trashed = trash(&**store).await;
        assert_eq!(trashed.len(), 1);
        assert_eq!(trashed[0].id, id("s"));
        assert_eq!(trashed[0].cwd.as_deref(), Some("/work/proj"));
        assert_eq!(trashed[0].deleted_at, deleted.deleted_at);
        assert!(trashed[0].size_bytes > 0);
    }
    let error = reader.read(EventRange::ALL, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");

    assert_eq!(other.restore(&id("s"), None, &never()).await.unwrap(), deleted);
    assert!(trash(&*store).await.is_empty());
    let mut listed = ids(&*store).await;
    listed.sort();
    assert_eq!(listed, ["s", "t"]);
    let after = store.stat(&id("s"), &never()).await.unwrap().unwrap();
    assert_eq!(after.header, before.header);
    assert_eq!(read(&*reader).await, batch(0, 3));
    let writer = open(&*store, "s", Access::Write).await;
    append(&*writer, 3, 1).await;
    assert_eq!(read(&*writer).await, batch(0, 4));
}

/// What somebody writes, or has pending, stays where it is.
pub async fn an_owned_session_cannot_be_deleted(backend: &impl Backend) {
    let (store, other) = (backend.instance(), backend.instance());
    let writer = create(&*store, "s").await;
    let error = store.delete(&id("s"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned", "pending");
    assert_eq!(other.delete(&id("s"), &never()).await.unwrap_err().kind(), "not_found");
    append(&*writer, 0, 2).await;
    for store in [&store, &other] {
        let error = store.delete(&id("s"), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        assert!(error.to_string().contains("is already owned by an active write handle"));
    }
    append(&*writer, 2, 1).await;
    assert!(trash(&*store).await.is_empty());
    assert_eq!(ids(&*other).await, ["s"]);
    writer.close().await.unwrap();
    other.delete(&id("s"), &never()).await.unwrap();
}

/// The id of a deleted session is free, and what comes under it is another session.
pub async fn the_id_of_a_deleted_session_is_free(backend: &impl Backend) {
    let store = backend.instance();
    let mut deletions = Vec::new();
    let mut revisions = Vec::new();
    for count in [1, 2, 3, 3] {
        store_session(&*store, "s", count).await;
        revisions.push(store.stat(&id("s"), &never()).await.unwrap().unwrap().revision);
        deletions.push(store.delete(&id("s"), &never()).await.unwrap().deleted_at);
    }
    assert_ne!(revisions[2], revisions[3], "two logs of one length");
    assert!(deletions.is_sorted_by(|left, right| left < right), "{deletions:?}");
    let trashed = trash(&*store).await;
    let times: Vec<_> = trashed.iter().map(|trashed| trashed.deleted_at).collect();
    assert_eq!(times, deletions.iter().rev().copied().collect::<Vec<_>>(), "the latest first");

    // While the id is taken, be it pending, nothing is put in its place.
    for stored in [false, true] {
        let handle = create(&*store, "s").await;
        if stored {
            append(&*handle, 0, 5).await;
        }
        let error = store.restore(&id("s"), None, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_exists");
        handle.close().await.unwrap();
    }
    let error = store.restore(&id("s"), None, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_exists");
    assert_eq!(read(&*open(&*store, "s", Access::Read).await).await, batch(0, 5));
    assert_eq!(trash(&*store).await.len(), 4);
    store.delete(&id("s"), &never()).await.unwrap();

    // The last one, unless another is asked for.
    store.restore(&id("s"), Some(deletions[1]), &never()).await.unwrap();
    assert_eq!(read(&*open(&*store, "s", Access::Read).await).await, batch(0, 2));
    store.delete(&id("s"), &never()).await.unwrap();
    store.restore(&id("s"), None, &never()).await.unwrap();
    assert_eq!(read(&*open(&*store, "s", Access::Read).await).await, batch(0, 2));
    let error = store.restore(&id("t"), None, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
    assert!(error.to_string().contains("session \"t\" not found in the trash"), "{error}");
    store.delete(&id("s"), &never()).await.unwrap();
    let error = store.restore(&id("s"), Some(1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
}

/// A session that cannot be read can be thrown away, and comes back as unreadable as it was.
pub async fn an_unreadable_session_can_be_deleted(backend: &impl Backend) {
    let store = backend.instance();
    let newer = SessionHeader { version: 9, ..header("newer") };
    let handle = store.create(newer, &never()).await.unwrap();
    append(&*handle, 0, 1).await;
    handle.close().await.unwrap();
    let handle = create(&*store, "unknown").await;
    handle.append(vec![event_of("acme/odd", 0, "1")], &never()).await.unwrap();
    handle.close().await.unwrap();
    for name in ["newer", "unknown"] {
        assert_eq!(
            store.open(&id(name), Access::Write, &never()).await.unwrap_err().kind(),
            "format_unsupported"
        );
        store.delete(&id(name), &never()).await.unwrap();
        assert_eq!(trash(&*store).await.len(), 1);
        assert_eq!(
            store.open(&id(name), Access::Write, &never()).await.unwrap_err().kind(),
            "not_found"
        );
        store.restore(&id(name), None, &never()).await.unwrap();
        assert_eq!(
            store.open(&id(name), Access::Write, &never()).await.unwrap_err().kind(),
            "format_unsupported"
        );
    }
}

/// Only what is asked for leaves the trash, and it does so for good.
pub async fn emptying_the_trash_is_for_good(backend: &impl Backend) {
    let store = backend.instance();
    assert_eq!(store.empty_trash(Emptying::All, &never()).await.unwrap().removed, []);
    let mut times = Vec::new();
    for name in ["a", "b", "c"] {
        store_session(&*store, name, 2).await;
        times.push(store.delete(&id(name), &never()).await.unwrap().deleted_at);
        // The next one is deleted later, whatever the clock's steps.
        while std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()
            <= u128::try_from(times[times.len() - 1]).unwrap()
        {
            std::thread::yield_now();
        }
    }
    store_session(&*store, "kept", 1).await;
    let before = Emptying::DeletedBefore(times[0]);
    assert!(store.empty_trash(before, &never()).await.unwrap().removed.is_empty());
    assert_eq!(trash(&*store).await.len(), 3);
    let before = Emptying::DeletedBefore(times[1]);
    let emptied = store.empty_trash(before, &never()).await.unwrap();
    assert_eq!(emptied.removed.len(), 1);
    assert_eq!((&emptied.removed[0].id, emptied.in_use.len()), (&id("a"), 0));
    let error = store.restore(&id("a"), None, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
    store.restore(&id("b"), None, &never()).await.unwrap();
    let emptied = backend.instance().empty_trash(Emptying::All, &never()).await.unwrap();
    assert_eq!(emptied.removed.iter().map(|trashed| &trashed.id).collect::<Vec<_>>(), [&id("c")]);
    assert!(trash(&*store).await.is_empty());
    let mut left = ids(&*store).await;
    left.sort();
    assert_eq!(left, ["b", "kept"]);
    assert_eq!(read(&*open(&*store, "b", Access::Write).await).await, batch(0, 2));
}

/// What is called off before it begins changes nothing.
pub async fn a_deletion_can_be_cancelled(backend: &impl Backend) {
    let store = backend.instance();
    for name in ["s", "t"] {
        store_session(&*store, name, 1).await;
    }
    store.delete(&id("t"), &never()).await.unwrap();
    let kinds = [
        store.delete(&id("s"), &cancelled()).await.unwrap_err().kind(),
        store.trash(&cancelled()).await.unwrap_err().kind(),
        store.restore(&id("t"), None, &cancelled()).await.unwrap_err().kind(),
        store.empty_trash(Emptying::All, &cancelled()).await.unwrap_err().kind(),
    ];
    assert_eq!(kinds, ["cancelled"; 4]);
    assert_eq!(ids(&*store).await, ["s"]);
    assert_eq!(trash(&*store).await.len(), 1);
}

/// Of a deletion and whoever else wants the session at the same time, one has it.
pub async fn a_deletion_has_no_half_way(backend: &impl Backend) {
    for round in 0..10 {
        let (store, other) = (backend.instance(), backend.instance());
        let name = format!("s{round}");
        store_session(&*store, &name, 2).await;
        let (never, id) = (never(), id(&name));
        let (deleted, opened) =
            tokio::join!(store.delete(&id, &never), other.open(&id, Access::Write, &never));
        match (deleted, opened) {
            (Ok(_), Err(error)) => {
                assert!(["not_found", "already_owned"].contains(&error.kind()), "{error}");
                store.restore(&id, None, &never).await.unwrap();
            }
            (Err(error), Ok(writer)) => {
                assert_eq!(error.kind(), "already_owned");
                append(&*writer, 2, 1).await;
            }
            (Err(first), Err(second)) => {
                // Each saw the other's hold.
                assert_eq!((first.kind(), second.kind()), ("already_owned", "already_owned"));
            }
            (Ok(_), Ok(_)) => panic!("deleted, and open to write"),
        }
        let events = read(&*open(&*other, &name, Access::Read).await).await;
        assert_eq!(events, batch(0, events.len() as u64));
        assert!(events.len() >= 2);
    }
}

/// Whoever makes, deletes and restores one session at the same time finds it whole, once.
pub async fn rivals_find_a_session_whole(backend: &impl Backend) {
    const ROUNDS: u64 = 25;
    let expected = |kind: &str| {
        let kinds = ["not_found", "already_exists", "already_owned"];
        assert!(kinds.contains(&kind), "{kind}");
    };
    let (maker, remover, restorer) = (backend.instance(), backend.instance(), backend.instance());
    let making = tokio::spawn(async move {
        let mut made = 0;
        for round in 0..ROUNDS {
            let Ok(handle) = maker.create(header("s"), &never()).await else { continue };
            match handle.append(batch(0, 2 + round), &never()).await {
                Ok(_) => made += 1,
                Err(error) => expected(error.kind()),
            }
            handle.close().await.ok();
        }
        made
    });
    let removing = tokio::spawn(async move {
        for _ in 0..2 * ROUNDS {
            if let Err(error) = remover.delete(&id("s"), &never()).await {
                expected(error.kind());
            }
        }
    });
    let restoring = tokio::spawn(async move {
        for _ in 0..2 * ROUNDS {
            if let Err(error) = restorer.restore(&id("s"), None, &never()).await {
                expected(error.kind());
            }
        }
    });
    let made = making.await.unwrap();
    removing.await.unwrap();
    restoring.await.unwrap();
    // Every log that was made is somewhere, and is what was appended.
    let store = backend.instance();
    let live = ids(&*store).await;
    assert!(live.len() <= 1, "{live:?}");
    let mut logs = Vec::new();
    if !live.is_empty() {
        logs.push(read(&*open(&*store, "s", Access::Write).await).await);
        store.delete(&id("s"), &never()).await.unwrap();
    }
    let trashed = trash(&*store).await;
    for trashed in trashed.iter().skip(live.len()) {
        store.restore(&id("s"), Some(trashed.deleted_at), &never()).await.unwrap();
        logs.push(read(&*open(&*store, "s", Access::Write).await).await);
        store.delete(&id("s"), &never()).await.unwrap();
    }
    assert_eq!(logs.len(), made);
    for log in logs {
        assert_eq!(log, batch(0, log.len() as u64));
        assert!(log.len() >= 2);
    }
}

/// Resuming closes what a writer left open, once.
pub async fn resuming_closes_an_interrupted_turn_once(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let asked = r#"{"turn":1,"step":1,"message":{"id":"a1","role":"assistant",
        "source":{"kind":"model","provider":"p","model":"m"},
        "content":[{"type":"tool-call","id":"c1","name":"bash","arguments":"{}"}]}}"#;
    let asked = format!(
        r#"{{"type":"assistant/message","seq":2,"time":7,"data":{},"surfaceOp":"append"}}"#,
        asked.replace('\n', "")
    );
    let opened = vec![
        event_of("turn/start", 0, r#"{"turn":1}"#),
        event_of("step/start", 1, r#"{"turn":1,"step":1}"#),
        turnkeep_log::Event::parse(&asked.into()).unwrap(),
    ];
    handle.append(opened.clone(), &never()).await.unwrap();
    let error = resume(&*backend.instance(), &id("s"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
    let error = resume(&*store, &id("s"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
    handle.close().await.unwrap();

    let appended = resume(&*store, &id("s"), &never()).await.unwrap();
    let types: Vec<_> = appended.iter().map(|event| event.event_type().to_string()).collect();
    assert_eq!(types, ["tool/result", "step/end", "turn/end"]);
    assert_eq!(super::steps::seqs(&appended), [3, 4, 5]);
    assert_eq!(appended, turnkeep_log::repair::closers(&opened));
    // Whoever comes next finds it closed, and may write.
    let other = backend.instance();
    let whole = [opened, appended].concat();
    assert_eq!(read(&*open(&*other, "s", Access::Read).await).await, whole);
    assert_eq!(resume(&*other, &id("s"), &never()).await.unwrap(), []);
    assert_eq!(resume(&*store, &id("s"), &never()).await.unwrap(), []);
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(read(&*writer).await, whole);
    append(&*writer, 6, 1).await;
    writer.close().await.unwrap();

    let error = resume(&*store, &id("none"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
}
