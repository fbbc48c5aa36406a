//! Forks, over every backend.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::io::ErrorKind;

use support::{
    batch, cancelled, create,
    disk::BOTH,
    event_of,
    faulty::{LOG, Op, stored},
    header, id, never, open, read, seqs, store_session,
    watched::places,
};
use turnkeep_log::{Event, Origin, Seq, SessionHeader};
use turnkeep_store::{
    Access, SessionStore,
    cold::{ForkRequest, ForkSessionError, fork},
};

fn two_turns() -> Vec<Event> {
    let types = ["turn/start", "turn/end", "turn/start"];
    let data = [r#"{"turn":1}"#, r#"{"turn":1,"reason":{"kind":"completed"}}"#, r#"{"turn":2}"#];
    (0..)
        .zip(types.into_iter().zip(data))
        .map(|(seq, (name, data))| event_of(name, seq, data))
        .collect()
}

async fn store_turns(store: &dyn SessionStore, name: &str) {
    let writer = create(store, name).await;
    writer.append(two_turns(), &never()).await.unwrap();
    writer.close().await.unwrap();
}

fn request(boundary: Option<u64>) -> ForkRequest {
    ForkRequest {
        boundary: boundary.map(Seq),
        created_at: Some(1_800_000_000_000),
        ..ForkRequest::new(id("parent"), id("child"))
    }
}

async fn kind_of(store: &dyn SessionStore, request: ForkRequest) -> &'static str {
    fork(store, request, &never()).await.unwrap_err().kind()
}

#[tokio::test]
async fn a_fork_is_a_complete_log_of_its_own() {
    for place in places() {
        let store = (place.instance)();
        store_turns(&*store, "parent").await;
        let forked = fork(&*store, request(Some(1)), &never()).await.unwrap();
        assert_eq!((forked.inherited, forked.next), (2, Seq(3)), "{}", place.name);
        assert!(store.owns(&id("child")));
        // It is on disk before anyone goes on with it.
        let elsewhere = (place.instance)();
        let reader = open(&*elsewhere, "child", Access::Read).await;
        let expected = SessionHeader {
            parent_session: Some("parent".to_owned()),
            seed_length: Some(2),
            created_at: 1_800_000_000_000,
            ..header("child")
        };
        assert_eq!(reader.header(), &expected, "{}", place.name);
        let events = read(&*reader).await;
        assert_eq!(events[..2], two_turns()[..2], "seqs and times included");
        assert_eq!(
            events[2].text().as_str(),
            r#"{"type":"session/end-seed","seq":2,"time":1800000000000,"data":{}}"#
        );
        assert_eq!(events.len(), 3);
        // The two go on apart.
        forked.handle.append(batch(3, 1), &never()).await.unwrap();
        forked.handle.close().await.unwrap();
        let parent = open(&*elsewhere, "parent", Access::Read).await;
        assert_eq!(read(&*parent).await, two_turns());
    }
}

#[tokio::test]
async fn the_last_event_is_the_boundary_unless_one_is_named() {
    for place in places() {
        let store = (place.instance)();
        store_session(&*store, "parent", 3).await;
        let forked = fork(&*store, request(None), &never()).await.unwrap();
        assert_eq!(seqs(&read(&*forked.handle).await), [0, 1, 2, 3], "{}", place.name);
        forked.handle.close().await.unwrap();
        // A fork of a fork, at its mark, gets no second one.
        let again =
            ForkRequest { created_at: Some(9), ..ForkRequest::new(id("child"), id("grandchild")) };
        let again = fork(&*store, again, &never()).await.unwrap();
        assert_eq!((again.inherited, again.next), (4, Seq(4)), "{}", place.name);
        assert_eq!(again.handle.header().parent_session.as_deref(), Some("child"));
    }
}

#[tokio::test]
async fn a_person_who_forks_delegates_nothing() {
    for place in places() {
        let store = (place.instance)();
        let parent = SessionHeader {
            origin: Some(Origin::Subagent),
            delegation_depth: 2,
            agent_preset: Some("careful".to_owned()),
            ..header("parent")
        };
        let writer = store.create(parent, &never()).await.unwrap();
        writer.append(batch(0, 1), &never()).await.unwrap();
        // The parent is being written all the while.
        let forked = fork(&*store, request(None), &never()).await.unwrap();
        let child = forked.handle.header();
        assert_eq!((child.origin, child.delegation_depth), (None, 0), "{}", place.name);
        assert_eq!(child.agent_preset, None);
        let named = ForkRequest {
            child: id("named"),
            agent_preset: Some("bold".to_owned()),
            cwd: Some("/elsewhere".to_owned()),
            ..request(None)
        };
        let forked = fork(&*store, named, &never()).await.unwrap();
        assert_eq!(forked.handle.header().agent_preset.as_deref(), Some("bold"));
        assert_eq!(forked.handle.header().cwd.as_deref(), Some("/elsewhere"));
        writer.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_cannot_be_forked_leaves_nothing_behind() {
    for place in places() {
        let store = (place.instance)();
        assert_eq!(kind_of(&*store, request(None)).await, "not_found", "{}", place.name);
        store_turns(&*store, "parent").await;
        assert_eq!(kind_of(&*store, request(Some(3))).await, "invalid_boundary");
        assert_eq!(kind_of(&*store, request(Some(u64::MAX))).await, "invalid_boundary");
        assert_eq!(kind_of(&*store, request(Some(0))).await, "open_turn");
        assert_eq!(kind_of(&*store, request(None)).await, "open_turn", "the second turn");
        let failure = fork(&*store, request(None), &cancelled()).await.unwrap_err();
        assert_eq!(failure.kind(), "cancelled");
        assert!(store.stat(&id("child"), &never()).await.unwrap().is_none(), "{}", place.name);
        assert!(!store.owns(&id("child")));

        let empty = create(&*store, "empty").await;
        empty.flush(&never()).await.unwrap();
        let of_empty = ForkRequest::new(id("empty"), id("child"));
        assert_eq!(kind_of(&*store, of_empty).await, "invalid_boundary");
        let writer = create(&*store, "unknown").await;
        writer.append(vec![event_of("acme/unheard-of", 0, "{}")], &never()).await.unwrap();
        let of_unknown = ForkRequest::new(id("unknown"), id("child"));
        assert_eq!(kind_of(&*store, of_unknown).await, "format_unsupported");
        assert!(store.stat(&id("child"), &never()).await.unwrap().is_none(), "{}", place.name);
    }
}

#[tokio::test]
async fn an_id_that_is_taken_is_not_taken_again() {
    for place in places() {
        let store = (place.instance)();
        store_turns(&*store, "parent").await;
        let pending = create(&*store, "child").await;
        assert_eq!(kind_of(&*store, request(Some(1))).await, "already_exists", "{}", place.name);
        pending.close().await.unwrap();
        store_session(&*(place.instance)(), "child", 1).await;
        assert_eq!(kind_of(&*store, request(Some(1))).await, "already_exists");
        let itself =
            ForkRequest { boundary: Some(Seq(1)), ..ForkRequest::new(id("parent"), id("parent")) };
        assert_eq!(kind_of(&*store, itself).await, "already_exists");
        let child = open(&*store, "child", Access::Read).await;
        assert_eq!(read(&*child).await, batch(0, 1), "{}", place.name);
    }
}

#[tokio::test]
async fn a_fork_that_fails_to_be_stored_is_not_there() {
    for encoding in BOTH {
        let (disk, faults, store) = stored(encoding).await;
        for (op, kind) in [(Op::Append, ErrorKind::StorageFull), (Op::SyncAll, ErrorKind::Other)] {
            faults.fail(op, LOG, kind);
            let request = ForkRequest::new(id("s"), id("child"));
            let failure = fork(&store, request, &never()).await.unwrap_err();
            assert!(matches!(failure, ForkSessionError::Store(_)), "{failure}");
            assert_eq!(failure.kind(), "io");
            faults.assert_spent();
            assert!(!disk.log("child").exists());
        }
        let forked = fork(&store, ForkRequest::new(id("s"), id("child")), &never()).await.unwrap();
        assert_eq!(seqs(&read(&*forked.handle).await), [0, 1, 2, 3], "the id is free");
    }
}
