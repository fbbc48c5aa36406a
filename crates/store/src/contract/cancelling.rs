//! Calling operations off.

use crate::{Access, Cancel, EventRange, ListQuery};
use tokio_util::sync::CancellationToken;

use super::{
    Backend,
    steps::{append, batch, cancelled, create, header, id, never, open, read, store_session},
};

/// What is called off before it begins has no effect, whichever operation it is.
pub async fn what_is_cancelled_before_has_no_effect(backend: &impl Backend) {
    let store = backend.instance();
    let cancel = cancelled();
    let error = store.create(header("s"), &cancel).await.unwrap_err();
    assert_eq!(error.kind(), "cancelled");
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), None);

    store_session(&*store, "s", 1).await;
    for access in [Access::Read, Access::Write] {
        let error = store.open(&id("s"), access, &cancel).await.unwrap_err();
        assert_eq!(error.kind(), "cancelled");
    }
    assert_eq!(store.stat(&id("s"), &cancel).await.unwrap_err().kind(), "cancelled");
    let error = store.list(&ListQuery::default(), &cancel).await.unwrap_err();
    assert_eq!(error.kind(), "cancelled");

    // The open that was called off holds nothing.
    let writer = open(&*store, "s", Access::Write).await;
    assert_eq!(writer.append(batch(1, 1), &cancel).await.unwrap_err().kind(), "cancelled");
    assert_eq!(writer.read(EventRange::ALL, &cancel).await.unwrap_err().kind(), "cancelled");
    assert_eq!(writer.flush(&cancel).await.unwrap_err().kind(), "cancelled");
    assert_eq!(read(&*writer).await.len(), 1);
    append(&*writer, 1, 1).await;
}

/// An append that waits can be called off, and says truthfully whether it was.
pub async fn a_waiting_append_can_be_cancelled(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let token = CancellationToken::new();
    let cancel = Cancel::from(token.clone());
    let never = never();
    // Whatever the second comes to: it is stored and says so, or it is not and says so.
    let (first, second, ()) = tokio::join!(
        biased;
        handle.append(batch(0, 2000), &never),
        handle.append(batch(2000, 1), &cancel),
        async { token.cancel() },
    );
    first.unwrap();
    let stored = read(&*handle).await.len();
    match second {
        Ok(next) => assert_eq!((next.0, stored), (2001, 2001)),
        Err(error) => assert_eq!((error.kind(), stored), ("cancelled", 2000)),
    }
    append(&*handle, stored as u64, 1).await;
}
