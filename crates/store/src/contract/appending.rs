//! How logs grow.

use crate::Access;
use turnkeep_log::Seq;

use super::{
    Backend,
    steps::{append, batch, create, event, id, never, open, read, seqs, store_session},
};

/// An empty batch stores nothing, not even a pending session.
pub async fn an_empty_batch_changes_nothing(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    assert_eq!(handle.append(Vec::new(), &never()).await.unwrap(), Seq(0));
    assert_eq!(backend.instance().stat(&id("s"), &never()).await.unwrap(), None);
    append(&*handle, 0, 2).await;
    let before = store.stat(&id("s"), &never()).await.unwrap();
    assert_eq!(handle.append(Vec::new(), &never()).await.unwrap(), Seq(2));
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), before);
}

/// Appending and flushing are refused on a read handle, an empty batch included.
pub async fn a_read_handle_changes_nothing(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 2).await;
    let reader = open(&*store, "s", Access::Read).await;
    for events in [batch(2, 1), Vec::new()] {
        let error = reader.append(events, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "read_only");
        assert!(error.to_string().contains("append is not available on a read handle"));
    }
    let error = reader.flush(&never()).await.unwrap_err();
    assert_eq!(error.kind(), "read_only");
    assert_eq!(read(&*reader).await.len(), 2);
}

/// An instance that knows nothing of the others continues where they stopped.
pub async fn another_instance_continues_the_log(backend: &impl Backend) {
    store_session(&*backend.instance(), "s", 2).await;
    let writer = open(&*backend.instance(), "s", Access::Write).await;
    append(&*writer, 2, 3).await;
    drop(writer);
    let third = open(&*backend.instance(), "s", Access::Write).await;
    append(&*third, 5, 1).await;
    assert_eq!(read(&*third).await, batch(0, 6));
}

/// A batch with a wrong seq anywhere is refused whole, and says which seq had to come.
pub async fn a_batch_must_continue_the_log(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 3).await;
    let before = store.stat(&id("s"), &never()).await.unwrap();
    let cases = [
        (batch(2, 2), "expected 3 at index 0, got 2"),
        (batch(4, 1), "expected 3 at index 0, got 4"),
        (vec![event(3), event(5)], "expected 4 at index 1, got 5"),
        (vec![event(3), event(3)], "expected 4 at index 1, got 3"),
    ];
    for (events, fragment) in cases {
        let error = handle.append(events, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "seq_mismatch");
        let text = error.to_string();
        assert!(text.contains(&format!("append seq mismatch for \"s\": {fragment}")), "{text}");
    }
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), before);
    append(&*handle, 3, 1).await;
    assert_eq!(seqs(&read(&*handle).await), [0, 1, 2, 3]);
}

/// Appends take effect in the order of the calls, and a failed one is not in the way of the next.
pub async fn concurrent_appends_keep_their_order(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let never = never();
    // Polled in order, not awaited one by one.
    let (a, b, c, d) = tokio::join!(
        biased;
        handle.append(batch(0, 2), &never),
        handle.append(batch(2, 3), &never),
        // Refused, without being in the way of what follows.
        handle.append(batch(4, 1), &never),
        handle.append(batch(5, 1), &never),
    );
    assert_eq!((a.unwrap(), b.unwrap(), d.unwrap()), (Seq(2), Seq(5), Seq(6)));
    assert_eq!(c.unwrap_err().kind(), "seq_mismatch");
    assert_eq!(read(&*handle).await, batch(0, 6));
}
