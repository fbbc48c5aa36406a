//! How logs grow.

use crate::Access;
use turnkeep_log::{Event, Seq};

use super::{
    Backend,
    steps::{append, batch, create, event, id, never, open, read, read_range, seqs, store_session},
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

/// Once it was acknowledged, a batch has nothing left to be flushed.
pub async fn flushing_after_an_append_changes_nothing(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 3).await;
    let before = store.stat(&id("s"), &never()).await.unwrap();
    assert!(before.is_some());
    for _ in 0..2 {
        handle.flush(&never()).await.unwrap();
        store.flush(&never()).await.unwrap();
        assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), before);
        assert_eq!(read(&*handle).await, batch(0, 3));
    }
    append(&*handle, 3, 1).await;
}

/// What JSON cannot say makes no event, and the seq it would have had is still free.
pub async fn what_is_not_json_is_refused_and_takes_no_seq(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 1).await;
    let before = store.stat(&id("s"), &never()).await.unwrap();
    let values = [
        "undefined",
        "NaN",
        "Infinity",
        "-Infinity",
        "10n",
        "() => 1",
        "Symbol(1)",
        "new Date(0)",
        "[1,,2]",
        "[1,]",
        "{a:1}",
        "{'a':1}",
        "\"\t\"",
        "01",
        "+1",
        "",
    ];
    for value in values {
        let text = format!(r#"{{"type":"todo/write","seq":1,"time":1,"data":{value}}}"#);
        let refused = Event::parse(&text.into());
        assert!(refused.is_err(), "{value}: {refused:?}");
    }
    // No value at all is none either.
    let text = r#"{"type":"todo/write","seq":1,"time":1}"#;
    assert!(Event::parse(&text.into()).is_err());
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), before);
    append(&*handle, 1, 1).await;
}

/// A batch is taken as it is when it is handed over, whatever its producer does afterwards.
pub async fn a_batch_is_what_it_was_at_the_call(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let never = never();
    let mut events = batch(0, 3);
    let appending = handle.append(events.clone(), &never);
    events.reverse();
    events[0] = event(9);
    events.truncate(1);
    assert_eq!(appending.await.unwrap(), Seq(3));
    assert_eq!(read(&*handle).await, batch(0, 3));
}

/// An event that readers may ignore is one of the log: it is read back, has its seq, and others
/// follow it.
pub async fn ignorable_events_are_kept_and_counted(backend: &impl Backend) {
    let ignorable = |seq: u64| {
        let text = format!(
            r#"{{"type":"acme/telemetry","seq":{seq},"time":1,"data":{{"x":"\u00e9"}},"ignorable":true}}"#
        );
        Event::parse(&text.into()).unwrap()
    };
    let events = vec![event(0), ignorable(1), event(2), ignorable(3)];
    let handle = create(&*backend.instance(), "s").await;
    handle.append(events.clone(), &never()).await.unwrap();
    handle.close().await.unwrap();
    let store = backend.instance();
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(read(&*writer).await, events);
    // Those that are not asked for are counted all the same.
    assert_eq!(read_range(&*writer, 2, 9).await, [2, 3]);
    append(&*writer, 4, 1).await;
    assert_eq!(seqs(&read(&*writer).await), [0, 1, 2, 3, 4]);
    if let Some(count) = store.stat(&id("s"), &never()).await.unwrap().unwrap().event_count {
        assert_eq!(count, 5);
    }
}
