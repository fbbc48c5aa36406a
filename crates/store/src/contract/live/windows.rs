//! When published events are stored.

use tokio::time::{Instant, sleep_until};

use super::{Failing, TICK, WINDOW, eventually_stored, flush_session, publish, settle, stored};
use crate::contract::{
    Backend,
    steps::{append, batch, create, event_of, id, never, open, read, store_session},
};
use crate::{Access, Routed};

/// An event waits for one window, and is in the log when that is over.
pub async fn events_are_stored_after_one_window_and_not_a_tick_earlier(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 2).await;
    let _writer = open(&*store, "s", Access::Write).await;
    let start = Instant::now();
    publish(&*store, "s", 2, 1).await;
    sleep_until(start + WINDOW - TICK).await;
    assert_eq!(settle(backend, "s").await, 2);
    sleep_until(start + WINDOW).await;
    eventually_stored(backend, "s", 3).await;
    // The next window begins with the next event.
    sleep_until(start + 10 * WINDOW).await;
    publish(&*store, "s", 3, 1).await;
    sleep_until(start + 11 * WINDOW - TICK).await;
    assert_eq!(settle(backend, "s").await, 3);
    sleep_until(start + 11 * WINDOW).await;
    eventually_stored(backend, "s", 4).await;
}

/// The first event that waits says when all of them are stored.
pub async fn later_events_do_not_prolong_a_window(backend: &impl Backend) {
    let store = backend.instance();
    let _writer = create(&*store, "s").await;
    let start = Instant::now();
    for step in 0..4_u32 {
        sleep_until(start + WINDOW * step / 4).await;
        publish(&*store, "s", u64::from(step), 1).await;
    }
    sleep_until(start + WINDOW - TICK).await;
    assert_eq!(settle(backend, "s").await, 0);
    sleep_until(start + WINDOW).await;
    eventually_stored(backend, "s", 4).await;
}

/// What is published after a flush waits for a window of its own.
pub async fn an_explicit_flush_ends_a_window(backend: &impl Backend) {
    let store = backend.instance();
    let _writer = create(&*store, "s").await;
    let start = Instant::now();
    publish(&*store, "s", 0, 3).await;
    sleep_until(start + WINDOW / 2).await;
    flush_session(&*store, "s").await;
    assert_eq!(stored(backend, "s").await, 3);
    assert_eq!(Instant::now(), start + WINDOW / 2);
    publish(&*store, "s", 3, 1).await;
    sleep_until(start + WINDOW / 2 + WINDOW - TICK).await;
    assert_eq!(settle(backend, "s").await, 3);
    sleep_until(start + WINDOW / 2 + WINDOW).await;
    eventually_stored(backend, "s", 4).await;
}

/// An event of 64 KiB.
fn large(seq: u64) -> turnkeep_log::Event {
    event_of("todo/write", seq, &format!("\"{}\"", "x".repeat(1 << 16)))
}

/// How many of them a buffer holds that is larger than any should be.
const MANY: u64 = 2000;

/// A producer that is faster than the window is long does not fill the memory.
pub async fn a_full_buffer_is_stored_at_once(backend: &impl Backend) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    let start = Instant::now();
    let mut next = 0;
    while stored(backend, "s").await == 0 {
        assert!(next < MANY, "nothing is stored of {next} events");
        for seq in next..next + 100 {
            assert_eq!(store.publish(&id("s"), large(seq)).await.unwrap(), Routed::ToWriter);
        }
        next += 100;
    }
    assert_eq!(Instant::now(), start);
    writer.flush(&never()).await.unwrap();
    let events = read(&*writer).await;
    assert_eq!(events.len() as u64, next);
    assert_eq!(events.last(), Some(&large(next - 1)));
}

/// When there is no room, the failure is the producer's, and what it was about is not taken.
pub async fn a_full_buffer_that_cannot_be_stored_takes_no_more(backend: &impl Failing) {
    let store = backend.instance();
    let writer = create(&*store, "s").await;
    append(&*writer, 0, 1).await;
    backend.set_failing(true);
    let mut next = 1;
    let error = loop {
        assert!(next < MANY, "{next} events are kept");
        match store.publish(&id("s"), large(next)).await {
            Ok(routed) => assert_eq!(routed, Routed::ToWriter),
            Err(error) => break error,
        }
        next += 1;
    };
    assert!(error.to_string().contains("session \"s\""), "{error}");
    assert_eq!(store.publish(&id("s"), large(next)).await.unwrap_err().kind(), error.kind());
    backend.set_failing(false);
    assert_eq!(store.publish(&id("s"), large(next)).await.unwrap(), Routed::ToWriter);
    writer.append(batch(next + 1, 1), &never()).await.unwrap();
    assert_eq!(stored(backend, "s").await as u64, next + 2);
}
