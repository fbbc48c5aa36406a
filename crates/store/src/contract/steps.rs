//! The steps that the tests consist of, for tests of your own.
//!
//! Each one panics where the store does not do as asked.

use tokio_util::sync::CancellationToken;
use turnkeep_log::{Event, Seq, SessionHeader, SessionId};

use crate::{Access, Cancel, EventRange, SessionHandle, SessionStore};

/// Calls nothing off.
#[must_use]
pub fn never() -> Cancel {
    Cancel::never()
}

/// Calls everything off.
#[must_use]
pub fn cancelled() -> Cancel {
    let token = CancellationToken::new();
    token.cancel();
    token.into()
}

/// An id, which must not be empty.
#[must_use]
pub fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

/// The header of a session in `/work/proj`.
#[must_use]
pub fn header(name: &str) -> SessionHeader {
    SessionHeader {
        cwd: Some("/work/proj".to_owned()),
        ..SessionHeader::new(id(name), 1_700_000_000_000)
    }
}

/// One event of any type.
#[must_use]
pub fn event_of(event_type: &str, seq: u64, data: &str) -> Event {
    let time = 1_700_000_000_000 + seq;
    let text = format!(r#"{{"type":"{event_type}","seq":{seq},"time":{time},"data":{data}}}"#);
    Event::parse(&text.into()).unwrap()
}

/// One event that readers take.
#[must_use]
pub fn event(seq: u64) -> Event {
    event_of("todo/write", seq, &format!(r#"{{"todos":[],"n":{seq}}}"#))
}

/// A batch of consecutive [`event`]s.
#[must_use]
pub fn batch(first: u64, count: u64) -> Vec<Event> {
    (first..first + count).map(event).collect()
}

/// The seqs of events.
#[must_use]
pub fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.seq().0).collect()
}

/// The texts of events.
#[must_use]
pub fn texts(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.text().as_str()).collect()
}

/// Creates a session with this [`header`].
pub async fn create(store: &dyn SessionStore, name: &str) -> Box<dyn SessionHandle> {
    store.create(header(name), &never()).await.unwrap()
}

/// Opens a session.
pub async fn open(store: &dyn SessionStore, name: &str, access: Access) -> Box<dyn SessionHandle> {
    store.open(&id(name), access, &never()).await.unwrap()
}

/// Appends a [`batch`].
pub async fn append(handle: &dyn SessionHandle, first: u64, count: u64) {
    let next = handle.append(batch(first, count), &never()).await.unwrap();
    assert_eq!(next, Seq(first + count));
}

/// Reads a whole log.
pub async fn read(handle: &dyn SessionHandle) -> Vec<Event> {
    handle.read(EventRange::ALL, &never()).await.unwrap()
}

/// Reads a range of a log and returns the seqs.
pub async fn read_range(handle: &dyn SessionHandle, offset: u64, length: u64) -> Vec<u64> {
    let range = EventRange { offset, length: Some(length) };
    seqs(&handle.read(range, &never()).await.unwrap())
}

/// Stores a session of some events and closes it.
pub async fn store_session(store: &dyn SessionStore, name: &str, count: u64) {
    let handle = create(store, name).await;
    append(&*handle, 0, count).await;
    handle.close().await.unwrap();
}
