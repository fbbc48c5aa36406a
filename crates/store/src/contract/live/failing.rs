//! What becomes of events that cannot be stored.

use std::time::Duration;

use super::{Failing, WINDOW, eventually_stored, flush_session, publish, settle, stored};
use crate::{
    Access,
    contract::{
        Backend,
        steps::{append, batch, create, id, never, open, read, store_session},
    },
    error::FlushError,
};

/// What failed in the background is told by the next flush, and stored by the one that can.
pub async fn flushing_a_session_surfaces_a_retained_failure_and_stores_once(
    backend: &impl Failing,
) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    backend.set_failing(true);
    publish(&*store, "s", 1, 2).await;
    tokio::time::sleep(2 * WINDOW).await;
    assert_eq!(settle(backend, "s").await, 1);
    for _ in 0..2 {
        let error = store.flush_session(&id("s"), &never()).await.unwrap_err();
        assert!(FlushError::KINDS.contains(&error.kind()));
        let error = writer.flush(&never()).await.unwrap_err();
        assert!(FlushError::KINDS.contains(&error.kind()));
    }
    backend.set_failing(false);
    flush_session(&*store, "s").await;
    flush_session(&*store, "s").await;
    assert_eq!(stored(backend, "s").await, 3);
    assert_eq!(read(&*writer).await, batch(0, 3));
    writer.close().await.unwrap();
    assert_eq!(stored(backend, "s").await, 3);
}

/// One session that cannot be stored keeps no other from being stored.
pub async fn flushing_a_store_tries_every_session(backend: &impl Backend) {
    let store = backend.instance();
    let mut writers = Vec::new();
    for name in ["a", "b", "c"] {
        writers.push(create(&*store, name).await);
        publish(&*store, name, 0, 2).await;
    }
    // Someone else has stored a session of this id meanwhile.
    store_session(&*backend.instance(), "b", 1).await;
    let error = store.flush(&never()).await.unwrap_err();
    let failed: Vec<_> = error.failures.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(failed, ["b"], "{error}");
    assert_eq!(stored(backend, "a").await, 2);
    assert_eq!(stored(backend, "b").await, 1);
    assert_eq!(stored(backend, "c").await, 2);
}

/// Every failure of a store's flush is told, not only the first.
pub async fn a_failing_flush_of_a_store_names_every_session(backend: &impl Failing) {
    let store = backend.instance();
    let mut writers = Vec::new();
    for name in ["a", "b", "c"] {
        writers.push(create(&*store, name).await);
        append(&**writers.last().unwrap(), 0, 1).await;
    }
    publish(&*store, "a", 1, 1).await;
    publish(&*store, "c", 1, 1).await;
    backend.set_failing(true);
    let error = store.flush(&never()).await.unwrap_err();
    let failed: Vec<_> = error.failures.iter().map(|(id, _)| id.as_str()).collect();
    assert!(failed.contains(&"a") && failed.contains(&"c"), "{error}");
    backend.set_failing(false);
    store.flush(&never()).await.unwrap();
    for (name, count) in [("a", 2), ("b", 1), ("c", 2)] {
        assert_eq!(stored(backend, name).await, count);
    }
}

/// After a failure in the background nothing tries again by itself; the next flush does, with all
/// that came in between, and after that things go on as before.
pub async fn a_failed_batch_keeps_its_order_and_silences_the_timer(backend: &impl Failing) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    publish(&*store, "s", 1, 2).await;
    backend.set_failing(true);
    tokio::time::sleep(2 * WINDOW).await;
    assert_eq!(settle(backend, "s").await, 1);
    backend.set_failing(false);
    publish(&*store, "s", 3, 2).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(settle(backend, "s").await, 1);
    publish(&*store, "s", 5, 1).await;
    flush_session(&*store, "s").await;
    assert_eq!(read(&*writer).await, batch(0, 6));
    // The timer is back.
    publish(&*store, "s", 6, 1).await;
    tokio::time::sleep(WINDOW).await;
    eventually_stored(backend, "s", 7).await;
    writer.flush(&never()).await.unwrap();
    assert_eq!(read(&*writer).await, batch(0, 7));
}

/// An append waits for nothing and overtakes nothing: where what was published before it cannot be
/// stored, neither can it.
pub async fn an_append_behind_a_failed_batch_fails_with_it(backend: &impl Failing) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    publish(&*store, "s", 1, 2).await;
    backend.set_failing(true);
    writer.append(batch(3, 1), &never()).await.unwrap_err();
    backend.set_failing(false);
    assert_eq!(stored(backend, "s").await, 1);
    append(&*writer, 3, 1).await;
    assert_eq!(read(&*writer).await, batch(0, 4));
}

/// Whatever goes wrong in storing comes out as an error of the seam.
pub async fn every_failure_has_a_kind_and_names_the_session(backend: &impl Failing) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    publish(&*store, "s", 1, 1).await;
    backend.set_failing(true);
    let flushed = store.flush_session(&id("s"), &never()).await.unwrap_err();
    let error = store.dispose(&id("s")).await.unwrap_err();
    backend.set_failing(false);
    assert_eq!(error.kind, flushed.kind());
    assert_eq!(error.id, id("s"));
    assert!(error.to_string().contains("session \"s\""), "{error}");
    assert!(error.message.contains(&flushed.to_string()), "{error}, {flushed}");
    open(&*store, "s", Access::Write).await;
}
