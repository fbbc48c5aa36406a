//! Which events are taken, and where they stand in the log.

use super::{eventually_stored, flush_session, publish, settle, stored};
use crate::{
    Access, Routed,
    contract::{
        Backend,
        steps::{append, batch, create, event, id, never, open, read, seqs, store_session},
    },
};

/// Without a write handle in this store nothing is stored, and the answer says so.
pub async fn events_without_a_writer_are_not_stored(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 1).await;
    let _reader = open(&*store, "s", Access::Read).await;
    let elsewhere = backend.instance();
    let _writer = open(&*elsewhere, "s", Access::Write).await;
    for name in ["s", "absent"] {
        assert_eq!(store.publish(&id(name), event(1)).await.unwrap(), Routed::NoWriter);
        let flushed = store.flush_session(&id(name), &never()).await;
        assert_eq!(flushed.unwrap(), Routed::NoWriter);
    }
    store.flush(&never()).await.unwrap();
    elsewhere.flush(&never()).await.unwrap();
    assert_eq!(settle(backend, "s").await, 1);
    assert_eq!(stored(backend, "absent").await, 0);
}

/// Published events make a session as appended ones do.
pub async fn a_pending_session_is_stored_with_its_first_events(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    publish(&*store, "s", 0, 2).await;
    assert!(backend.instance().stat(&id("s"), &never()).await.unwrap().is_none());
    assert_eq!(read(&*writer).await, []);
    tokio::time::sleep(super::WINDOW).await;
    eventually_stored(backend, "s", 2).await;
    // Another process may see it before it is acknowledged here.
    writer.flush(&never()).await.unwrap();
    assert_eq!(read(&*writer).await, batch(0, 2));
}

/// The barrier of the handle is one for what was published, too.
pub async fn a_flush_of_the_handle_stores_what_waits(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    publish(&*store, "s", 1, 3).await;
    writer.flush(&never()).await.unwrap();
    assert_eq!(stored(backend, "s").await, 4);
    assert_eq!(read(&*writer).await, batch(0, 4));
    // Nothing is left to be stored again.
    writer.flush(&never()).await.unwrap();
    flush_session(&*store, "s").await;
    assert_eq!(stored(backend, "s").await, 4);
}

/// Appending and publishing share one order.
pub async fn an_append_comes_after_what_was_published_before(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    for round in 0..5 {
        publish(&*store, "s", round * 5, 2).await;
        append(&*writer, round * 5 + 2, 3).await;
    }
    assert_eq!(read(&*writer).await, batch(0, 25));
    publish(&*store, "s", 25, 1).await;
    // One that does not know of it is refused, whole, and what was published is stored.
    let error = writer.append(batch(25, 2), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "seq_mismatch");
    assert_eq!(read(&*writer).await, batch(0, 26));
    // What is asked for at the same time has one order, whichever it is.
    let never = never();
    let id = id("s");
    let (appended, published) =
        tokio::join!(writer.append(batch(26, 2), &never), store.publish(&id, event(28)));
    appended.unwrap();
    assert_eq!(published.unwrap(), Routed::ToWriter);
    writer.flush(&never).await.unwrap();
    assert_eq!(seqs(&read(&*writer).await), (0..29).collect::<Vec<_>>());
}

/// An event that cannot be stored is refused at once, and those before and after it are stored.
pub async fn an_event_out_of_sequence_disturbs_no_other(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 2).await;
    publish(&*store, "s", 2, 1).await;
    for wrong in [0, 2, 4, 1000] {
        let error = store.publish(&id("s"), event(wrong)).await.unwrap_err();
        assert_eq!(error.kind(), "seq_mismatch");
        assert!(error.to_string().contains(&format!("expected 3 at index 0, got {wrong}")));
    }
    publish(&*store, "s", 3, 1).await;
    flush_session(&*store, "s").await;
    assert_eq!(read(&*writer).await, batch(0, 4));
}
