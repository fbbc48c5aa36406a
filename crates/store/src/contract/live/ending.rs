//! How handles end that have events to store.

use std::time::Instant;

use super::{
    Failing, PATIENCE, eventually_stored, flush_session, publish, stored, warnings::Warnings,
};
use crate::{
    Access, EventRange, Routed,
    contract::{
        Backend,
        steps::{append, batch, create, event, event_of, id, never, open, read, store_session},
    },
    error::OpenError,
};

/// To dispose of a session is to store what waits, and to close its handle.
pub async fn disposing_stores_what_waits_and_closes(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    publish(&*store, "s", 0, 3).await;
    assert_eq!(store.dispose(&id("s")).await.unwrap(), Routed::ToWriter);
    assert_eq!(stored(backend, "s").await, 3);
    let error = writer.append(batch(3, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "handle_closed");
    writer.close().await.unwrap();
    assert_eq!(store.publish(&id("s"), event(3)).await.unwrap(), Routed::NoWriter);
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(read(&*writer).await, batch(0, 3));
}

/// Nothing is done, and the answer says so.
pub async fn disposing_without_a_writer_does_nothing(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 1).await;
    let reader = open(&*store, "s", Access::Read).await;
    assert_eq!(store.dispose(&id("s")).await.unwrap(), Routed::NoWriter);
    assert_eq!(store.dispose(&id("absent")).await.unwrap(), Routed::NoWriter);
    assert_eq!(read(&*reader).await.len(), 1);
}

/// Who disposes of a session often cannot do anything about a failure, so it is logged as well:
/// which session it was, and nothing of what it says.
pub async fn a_failing_disposal_is_warned_of(backend: &impl Failing) {
    let store = backend.instance();
    let writer = create(&*store, "session-4711").await;
    append(&*writer, 0, 1).await;
    let secret = event_of("todo/write", 1, r#"{"todos":["canary"]}"#);
    assert_eq!(store.publish(&id("session-4711"), secret).await.unwrap(), Routed::ToWriter);
    backend.set_failing(true);
    let warnings = Warnings::capture();
    store.dispose(&id("session-4711")).await.unwrap_err();
    backend.set_failing(false);
    let lines = warnings.lines();
    assert!(lines.iter().any(|line| line.contains("session-4711")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("canary")), "{lines:?}");
}

/// Closing stores what waits.
pub async fn closing_stores_what_waits(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    publish(&*store, "s", 0, 3).await;
    writer.close().await.unwrap();
    assert_eq!(stored(backend, "s").await, 3);
}

/// Dropping a handle does too, though nobody waits for it.
pub async fn dropping_a_handle_stores_what_waits(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    publish(&*store, "s", 0, 3).await;
    drop(writer);
    // Flushing the store waits for handles that are on their way out.
    store.flush(&never()).await.unwrap();
    eventually_stored(backend, "s", 3).await;
    let start = Instant::now();
    let writer = loop {
        assert!(start.elapsed() < PATIENCE, "never given back");
        match store.open(&id("s"), Access::Write, &never()).await {
            Ok(writer) => break writer,
            Err(OpenError::AlreadyOwned(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    publish(&*store, "s", 3, 1).await;
    writer.close().await.unwrap();
    assert_eq!(stored(backend, "s").await, 4);
}

/// The session is given back even when its last events cannot be stored, and which they were is
/// said.
pub async fn closing_surfaces_a_failing_batch_and_frees_the_session(backend: &impl Failing) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    publish(&*store, "s", 1, 2).await;
    backend.set_failing(true);
    let error = writer.close().await.unwrap_err();
    assert_eq!(error.unstored, Some(EventRange { offset: 1, length: Some(2) }));
    let again = writer.close().await.unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
    backend.set_failing(false);
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(read(&*writer).await, batch(0, 1));
    // What was lost may be published again.
    publish(&*store, "s", 1, 2).await;
    writer.close().await.unwrap();
    assert_eq!(stored(backend, "s").await, 3);
}

/// From the call on, and until the session is given back, an event is refused; then there is no
/// writer.
pub async fn a_handle_that_is_being_closed_takes_no_events(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    publish(&*store, "s", 0, 1).await;
    let closing = writer.close();
    match store.publish(&id("s"), event(1)).await {
        Err(error) => assert_eq!(error.kind(), "handle_closed"),
        Ok(routed) => assert_eq!(routed, Routed::NoWriter),
    }
    // What closing stores counts as flushed.
    let _routed = store.flush_session(&id("s"), &never()).await.unwrap();
    closing.await.unwrap();
    assert_eq!(store.publish(&id("s"), event(1)).await.unwrap(), Routed::NoWriter);
    assert_eq!(stored(backend, "s").await, 1);
}

/// The events that come after a writer was closed go to the next one.
pub async fn a_later_writer_receives_later_events(backend: &impl Backend) {
    let store = backend.instance();
    let first = create(&*store, "s").await;
    publish(&*store, "s", 0, 2).await;
    first.close().await.unwrap();
    let second = open(&*store, "s", Access::Write).await;
    publish(&*store, "s", 2, 2).await;
    flush_session(&*store, "s").await;
    assert_eq!(read(&*second).await, batch(0, 4));
    drop(first);
    publish(&*store, "s", 4, 1).await;
    second.close().await.unwrap();
    assert_eq!(stored(backend, "s").await, 5);
}

/// A writer that can never store its events does not keep them for ever: publishing says so, and
/// closing tells which are lost.
pub async fn a_writer_that_lost_its_session_says_so(backend: &impl Backend) {
    let store = backend.instance();
    let loser = create(&*store, "s").await;
    publish(&*store, "s", 0, 2).await;
    store_session(&*backend.instance(), "s", 1).await;
    let error = store.flush_session(&id("s"), &never()).await.unwrap_err();
    let error = match store.publish(&id("s"), event(2)).await {
        Err(refused) => refused.kind(),
        Ok(_) => error.kind(),
    };
    assert!(["already_exists", "already_owned", "ownership_lost"].contains(&error), "{error}");
    let closed = loser.close().await.unwrap_err();
    assert_eq!(closed.unstored.map(|range| range.offset), Some(0));
    assert_eq!(stored(backend, "s").await, 1);
}

/// When a store goes with all its handles, what waits is stored: by no matter which is dropped
/// last.
pub async fn tearing_everything_down_stores_what_waits(backend: &impl Backend) {
    for store_first in [true, false] {
        let store = backend.instance();
        let names = if store_first { ["a", "b"] } else { ["c", "d"] };
        let mut writers = Vec::new();
        for name in names {
            writers.push(create(&*store, name).await);
            publish(&*store, name, 0, 3).await;
        }
        if store_first {
            drop(store);
            drop(writers);
        } else {
            drop(writers);
            drop(store);
        }
        for name in names {
            eventually_stored(backend, name, 3).await;
        }
    }
}
