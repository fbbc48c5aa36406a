//! Telling whether a session is intact, and saving one.

use super::{
    Backend,
    steps::{append, create, event_of, id, never, open, read, store_session, texts},
};
use crate::{
    Access,
    recover::{RecoverOptions, recover},
    verify::{Progress, Severity, Verification},
};

async fn verify(backend: &impl Backend, session: &str) -> Verification {
    let store = backend.instance();
    store.verify(&id(session), &Progress::none(), &never()).await.unwrap()
}

/// What was stored is intact, and all of it is counted.
pub async fn a_stored_session_is_intact(backend: &impl Backend) {
    store_session(&*backend.instance(), "s", 5).await;
    let found = verify(backend, "s").await;
    assert!(found.is_intact(), "{found:?}");
    assert_eq!((found.events, found.found, found.verdict()), (5, 5, "intact"));
    let storage = backend.instance().verify_storage(&never()).await.unwrap();
    assert!(storage.is_intact(), "{storage:?}");
    let missing = backend.instance().verify(&id("no"), &Progress::none(), &never()).await;
    assert_eq!(missing.unwrap_err().kind(), "not_found");
}

/// A session that is being written is verified without waiting for its writer, and a pending one
/// has nothing to verify.
pub async fn verifying_needs_no_ownership(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    let pending = store.verify(&id("s"), &Progress::none(), &never()).await.unwrap();
    assert!(pending.pending && pending.is_intact() && pending.events == 0);
    append(&*handle, 0, 3).await;
    assert!(verify(backend, "s").await.is_intact());
    assert_eq!(verify(backend, "s").await.events, 3);
    append(&*handle, 3, 1).await;
    assert_eq!(verify(backend, "s").await.events, 4);
}

/// Every event that readers refuse is found, not only the first.
pub async fn verifying_tells_every_event_that_readers_refuse(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 2).await;
    let strange = vec![
        event_of("user/message", 2, "{}"),
        event_of("acme/unknown", 3, "{}"),
        event_of("todo/write", 4, "{}"),
    ];
    handle.append(strange, &never()).await.unwrap();
    handle.close().await.unwrap();
    let found = verify(backend, "s").await;
    let told: Vec<_> = found
        .findings
        .iter()
        .map(|finding| (finding.kind.as_str(), finding.seq.map(|seq| seq.0), finding.before))
        .collect();
    let expected = [("malformed_message", Some(2), 2), ("unknown_type", Some(3), 3)];
    assert_eq!(told, expected);
    assert_eq!(found.refused, Some("format_unsupported"));
    assert_eq!(found.severity(), Some(Severity::Damaged));
}

/// What can be saved of a session becomes one that readers take, and the other stays as it is.
pub async fn recovering_keeps_what_readers_take(backend: &impl Backend) {
    let store = backend.instance();
    let handle = create(&*store, "s").await;
    append(&*handle, 0, 3).await;
    handle.append(vec![event_of("acme/unknown", 3, "{}")], &never()).await.unwrap();
    append(&*handle, 4, 2).await;
    handle.close().await.unwrap();
    let options = RecoverOptions { into: id("saved"), branch: None, cwd: None };
    let progress = Progress::none();
    let saved = recover(&*store, &id("s"), &options, &progress, &never()).await.unwrap();
    assert_eq!((saved.kept, saved.left, saved.header_lost), (3, 3, false));
    assert!(saved.stopped.unwrap().contains("event 3"));
    let reader = open(&*backend.instance(), "saved", Access::Write).await;
    assert_eq!(read(&*reader).await.len(), 3);
    assert_eq!(reader.header().cwd.as_deref(), Some("/work/proj"));
    assert_eq!(verify(backend, "s").await.events, 6);

    let again = recover(&*store, &id("s"), &options, &progress, &never()).await;
    assert_eq!(again.unwrap_err().kind(), "already_exists");
    let missing = recover(&*store, &id("no"), &options, &progress, &never()).await;
    assert_eq!(missing.unwrap_err().kind(), "not_found");
}

/// An intact session is saved as it is.
pub async fn recovering_an_intact_session_copies_it(backend: &impl Backend) {
    let store = backend.instance();
    store_session(&*store, "s", 400).await;
    let options = RecoverOptions { into: id("copy"), branch: None, cwd: None };
    let saved = recover(&*store, &id("s"), &options, &Progress::none(), &never()).await.unwrap();
    assert_eq!((saved.kept, saved.left, saved.salvaged, saved.stopped), (400, 0, 0, None));
    let copy = read(&*open(&*store, "copy", Access::Read).await).await;
    let whole = read(&*open(&*store, "s", Access::Read).await).await;
    assert_eq!(texts(&copy), texts(&whole));
}
