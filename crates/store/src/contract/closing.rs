//! How handles end.

use std::{
    future::Future,
    task::Poll,
    time::{Duration, Instant},
};

use crate::{Access, EventRange};

use super::{
    Backend,
    steps::{append, batch, create, header, id, never, open, read, store_session},
};

/// After `close` every operation is refused, except for closing again.
pub async fn a_closed_handle_refuses_everything(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 1).await;
    for access in [Access::Read, Access::Write] {
        let handle = open(&*store, "s", access).await;
        handle.close().await.unwrap();
        handle.close().await.unwrap();
        let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "handle_closed");
        assert!(error.to_string().contains("session \"s\": read on a closed handle"));
        let error = handle.append(batch(1, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "handle_closed");
        assert!(error.to_string().contains("append on a closed handle"));
        let error = handle.flush(&never()).await.unwrap_err();
        assert_eq!(error.kind(), "handle_closed");
    }
    // Closed, not only refused.
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(read(&*writer).await.len(), 1);
}

/// Dropping a handle is enough for someone else to open the session.
pub async fn dropping_a_handle_gives_the_session_back(backend: &impl Backend) {
    let store = backend.instance();
    for round in 0..5 {
        let handle = if round == 0 {
            create(&*store, "s").await
        } else {
            open(&*store, "s", Access::Write).await
        };
        append(&*handle, round, 1).await;
        drop(handle);
    }
    // A pending one as well.
    drop(create(&*store, "t").await);
    assert_eq!(store.stat(&id("t"), &never()).await.unwrap(), None);
    create(&*store, "t").await;
}

/// `close` counts from the call on, even if nobody polls what it returns.
pub async fn closing_takes_effect_at_the_call(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 1).await;
    // Asked for before, polled after.
    let late_append = handle.append(batch(1, 1), &never().clone()).await;
    assert!(late_append.is_ok());
    let unpolled = handle.close();
    let error = handle.append(batch(2, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "handle_closed");
    let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "handle_closed");
    drop(unpolled);
    // The call is enough to give the session back.
    handle.close().await.unwrap();
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(read(&*writer).await.len(), 2);
}

/// Polls a future once and drops it. Whether that was before it was done.
async fn poll_once<T>(future: impl Future<Output = T>) -> bool {
    let mut future = Box::pin(future);
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
}

/// An append that was asked for happens, though its future was dropped.
pub async fn a_dropped_append_is_not_undone(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    for round in 0..10 {
        poll_once(handle.append(batch(round * 3, 3), &never())).await;
    }
    append(&*handle, 30, 1).await;
    assert_eq!(read(&*handle).await, batch(0, 31));
    poll_once(handle.append(batch(31, 1), &never())).await;
    // Closing waits for what was asked for before.
    handle.close().await.unwrap();
    let reader = open(&*store, "s", Access::Read).await;
    assert_eq!(read(&*reader).await, batch(0, 32));
}

/// The first failure that nobody waited for comes out when the handle is closed.
pub async fn close_reports_what_nobody_waited_for(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 1).await;
    // This one is waited for, and so not told again.
    handle.append(batch(9, 1), &never()).await.unwrap_err();
    // Behind a batch that takes its time, more or less: where the answer is there at once it was
    // heard, and another is asked for.
    poll_once(handle.append(batch(1, 3000), &never())).await;
    let mut wrong = 1_000_000;
    while !poll_once(handle.append(batch(wrong, 1), &never())).await {
        wrong += 1;
        assert!(wrong < 2_000_000, "an append that is always done when first polled");
    }
    poll_once(handle.append(batch(wrong + 1, 1), &never())).await;
    let error = handle.close().await.unwrap_err();
    assert_eq!(error.kind, "seq_mismatch");
    assert!(error.message.contains(&format!("got {wrong}")), "{error}");
    assert_eq!(handle.close().await.unwrap_err().message, error.message);
    open(&*store, "s", Access::Write).await;
}

/// Flushing a store stores the pending sessions of all its open handles.
pub async fn flushing_the_store_stores_every_pending_session(backend: &impl Backend) {
    let store = backend.instance();
    store.flush(&never()).await.unwrap();
    let handles = [create(&*store, "a").await, create(&*store, "b").await];
    let closed = create(&*store, "c").await;
    closed.close().await.unwrap();
    store.flush(&never()).await.unwrap();
    let other = backend.instance();
    for handle in &handles {
        assert!(other.stat(handle.id(), &never()).await.unwrap().is_some());
    }
    assert_eq!(other.stat(&id("c"), &never()).await.unwrap(), None);
}

/// A handle that is being closed does not make the flush of its store fail.
pub async fn a_closed_handle_counts_as_flushed(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "a").await;
    append(&*handle, 0, 1).await;
    let never = never();
    let closing = handle.close();
    let (flushed, closed) = tokio::join!(store.flush(&never), closing);
    flushed.unwrap();
    closed.unwrap();
}

/// Closing again waits for the same end and does no more: it does not take the session from who
/// has opened it since.
pub async fn closing_again_does_nothing_more(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 1).await;
    for access in [Access::Read, Access::Write] {
        let handle = open(&*store, "s", access).await;
        let (first, second) = tokio::join!(handle.close(), handle.close());
        first.unwrap();
        second.unwrap();
        let next = open(&*store, "s", Access::Write).await;
        handle.close().await.unwrap();
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        assert_eq!(read(&*next).await.len(), 1);
        next.close().await.unwrap();
    }
}

/// A session that is being closed and has stored nothing is not stored by a flush of its store.
pub async fn a_flush_stores_no_session_that_is_being_closed(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let never = never();
    let closing = handle.close();
    let (flushed, closed) = tokio::join!(store.flush(&never), closing);
    flushed.unwrap();
    closed.unwrap();
    for store in [store, backend.instance()] {
        assert_eq!(store.stat(&id("s"), &never).await.unwrap(), None);
        let error = store.open(&id("s"), Access::Read, &never).await.unwrap_err();
        assert_eq!(error.kind(), "not_found");
    }
}

/// A flush that was asked for happens, though its future was dropped.
pub async fn a_dropped_flush_is_not_undone(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    poll_once(handle.flush(&never())).await;
    handle.close().await.unwrap();
    assert!(backend.instance().stat(&id("s"), &never()).await.unwrap().is_some());
}

/// Who asks to close a session need not wait until it is given back.
pub async fn a_close_that_nobody_waits_for_gives_the_session_back(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 1).await;
    let handle = open(&*store, "s", Access::Write).await;
    // Neither awaited nor polled.
    drop(handle.close());
    let writer = eventually(async || {
        store.open(&id("s"), Access::Write, &never()).await.map_err(|error| error.kind())
    })
    .await;
    append(&*writer, 1, 1).await;
    // The old handle is there until the end.
    drop(handle);
    append(&*writer, 2, 1).await;
}

/// Who gives up opening a session, or making one, keeps nobody from doing so.
pub async fn a_dropped_open_or_create_holds_nothing(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 1).await;
    for _ in 0..20 {
        poll_once(store.open(&id("s"), Access::Write, &never())).await;
        poll_once(store.create(header("t"), &never())).await;
    }
    let writer = eventually(async || {
        store.open(&id("s"), Access::Write, &never()).await.map_err(|error| error.kind())
    })
    .await;
    append(&*writer, 1, 1).await;
    let creator = eventually(async || {
        store.create(header("t"), &never()).await.map_err(|error| error.kind())
    })
    .await;
    append(&*creator, 0, 1).await;
}

/// Tries until nobody is in the way any more.
async fn eventually<T>(mut attempt: impl AsyncFnMut() -> Result<T, &'static str>) -> T {
    let start = Instant::now();
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(kind) => {
                assert!(["already_owned", "already_exists"].contains(&kind), "{kind}");
                assert!(start.elapsed() < Duration::from_secs(20), "never given back");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
