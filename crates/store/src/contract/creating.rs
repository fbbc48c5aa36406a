//! How sessions come to be.

use crate::{Access, EventRange, ListQuery};
use turnkeep_log::SessionHeader;

use super::{
    Backend,
    steps::{append, batch, create, header, id, never, open, read, store_session},
};

/// An id is taken from the moment of its creation, and free again once that was undone.
pub async fn a_pending_session_cannot_be_created_again(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let error = store.create(header("s"), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_exists");
    assert!(error.to_string().contains("session \"s\" already exists"));
    handle.close().await.unwrap();
    create(&*store, "s").await;
}

/// Of two creates of one id at the same time exactly one succeeds.
pub async fn concurrent_creates_have_one_winner(backend: &impl Backend) {
    let store = backend.instance();
    for round in 0..10 {
        let name = format!("s{round}");
        let (never, header) = (never(), header(&name));
        let (first, second) = tokio::join!(
            store.create(header.clone(), &never),
            store.create(header.clone(), &never)
        );
        let loser = match (first, second) {
            (Ok(_), Err(loser)) | (Err(loser), Ok(_)) => loser,
            other => panic!("{other:?}"),
        };
        assert_eq!(loser.kind(), "already_exists");
    }
}

/// What one instance has stored, no other creates again, be it for another directory.
pub async fn a_stored_session_cannot_be_created_again(backend: &impl Backend) {
    store_session(&*backend.instance(), "s", 1).await;
    let store = backend.instance();
    for _ in 0..2 {
        let error = store.create(header("s"), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_exists");
    }
    // In another project it is the same session.
    let elsewhere = SessionHeader { cwd: Some("/elsewhere".to_owned()), ..header("s") };
    let error = store.create(elsewhere, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_exists");
    let handle = open(&*store, "s", Access::Write).await;
    assert_eq!(store.create(header("s"), &never()).await.unwrap_err().kind(), "already_exists");
    assert_eq!(read(&*handle).await.len(), 1);
}

/// Opening what is not there says so, whatever it was wanted for.
pub async fn an_absent_session_cannot_be_opened(backend: &impl Backend) {
    let store = backend.instance();
    for _ in 0..2 {
        for access in [Access::Read, Access::Write] {
            let error = store.open(&id("none"), access, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "not_found");
            assert!(error.to_string().contains("session \"none\" not found"));
        }
    }
}

/// Whoever creates a session owns it, before it is stored and after.
pub async fn a_creator_owns_its_session(backend: &impl Backend) {
    let store = backend.instance();
    let creator = create(&*store, "s").await;
    for stored in [false, true] {
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned", "stored: {stored}");
        assert!(error.to_string().contains("is already owned by an active write handle"));
        if !stored {
            append(&*creator, 0, 2).await;
        }
    }
    creator.close().await.unwrap();
    let writer = open(&*store, "s", Access::Write).await;
    append(&*writer, 2, 1).await;
    assert_eq!(read(&*writer).await.len(), 3);
}

/// A pending session can be read, listed and looked at in its own store, and in no other.
pub async fn a_pending_session_is_seen_by_its_store_alone(backend: &impl Backend) {
    let store = backend.instance();
    let other = backend.instance();
    let creator = create(&*store, "s").await;
    assert!(read(&*creator).await.is_empty());
    let stat = store.stat(&id("s"), &never()).await.unwrap().unwrap();
    assert_eq!(stat.header, header("s"));
    assert_eq!((stat.event_count, stat.size_bytes), (None, None));
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    assert_eq!(list.entries.len(), 1);
    assert_eq!(list.entries[0].stat, Some(stat));
    let reader = open(&*store, "s", Access::Read).await;
    assert!(read(&*reader).await.is_empty());

    assert_eq!(other.stat(&id("s"), &never()).await.unwrap(), None);
    assert!(other.list(&ListQuery::default(), &never()).await.unwrap().entries.is_empty());
    let error = other.open(&id("s"), Access::Read, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
}

/// A session that was closed before it was stored has never been there.
pub async fn closing_a_pending_session_erases_it(backend: &impl Backend) {
    let store = backend.instance();
    let creator = create(&*store, "s").await;
    let reader = open(&*store, "s", Access::Read).await;
    assert!(read(&*reader).await.is_empty());
    creator.append(Vec::new(), &never()).await.unwrap();
    creator.close().await.unwrap();
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), None);
    assert!(store.list(&ListQuery::default(), &never()).await.unwrap().entries.is_empty());
    let error = store.open(&id("s"), Access::Read, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
    let error = reader.read(EventRange::ALL, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "not_found");
    assert_eq!(backend.instance().stat(&id("s"), &never()).await.unwrap(), None);
}

/// A handle that was opened on a pending session goes on to read it once it is stored.
pub async fn readers_of_a_pending_session_see_it_stored(backend: &impl Backend) {
    let store = backend.instance();
    let creator = create(&*store, "s").await;
    let reader = open(&*store, "s", Access::Read).await;
    assert!(read(&*reader).await.is_empty());
    append(&*creator, 0, 2).await;
    assert_eq!(read(&*reader).await, batch(0, 2));
    creator.close().await.unwrap();
    assert_eq!(read(&*reader).await, batch(0, 2));
}

/// `flush` stores a session that has no events yet.
pub async fn flush_stores_a_session_without_events(backend: &impl Backend) {
    let store = backend.instance();
    let creator = create(&*store, "s").await;
    creator.flush(&never()).await.unwrap();
    creator.flush(&never()).await.unwrap();
    let other = backend.instance();
    let stat = other.stat(&id("s"), &never()).await.unwrap().unwrap();
    assert_eq!(stat.header, header("s"));
    let reader = open(&*other, "s", Access::Read).await;
    assert!(read(&*reader).await.is_empty());
    append(&*creator, 0, 1).await;
    assert_eq!(read(&*reader).await.len(), 1);
}

/// A header that could not be read again is not stored.
pub async fn a_header_that_no_reader_takes_is_refused(backend: &impl Backend) {
    let store = backend.instance();
    let cases = [
        SessionHeader { created_at: 1 << 53, ..header("s") },
        SessionHeader { seed_length: Some(u64::MAX), ..header("s") },
        SessionHeader { cwd: Some(String::new()), ..header("s") },
    ];
    for case in cases {
        let error = store.create(case, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "not_serializable");
        assert!(error.to_string().contains("losslessly JSON-serializable"));
    }
    create(&*store, "s").await;
}

/// What was closed before it was stored leaves its id to others, of this store and of any.
pub async fn the_id_of_an_erased_session_is_free_again(backend: &impl Backend) {
    let store = backend.instance();
    for _ in 0..3 {
        create(&*store, "s").await.close().await.unwrap();
    }
    let elsewhere = backend.instance();
    let handle = create(&*elsewhere, "s").await;
    append(&*handle, 0, 2).await;
    handle.close().await.unwrap();
    assert_eq!(read(&*open(&*store, "s", Access::Read).await).await, batch(0, 2));
}
