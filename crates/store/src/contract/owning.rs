//! Who may write, where several instances share a place.

use super::{
    Backend,
    steps::{append, batch, create, id, never, open, read, store_session},
};
use crate::{Access, ListQuery};

/// What one instance has open to write, no other opens to write; reading is free to all.
pub async fn a_session_has_one_writer_among_all_instances(backend: &impl Backend) {
    let (first, second) = (backend.instance(), backend.instance());
    store_session(&*first, "s", 1).await;
    let writer = open(&*first, "s", Access::Write).await;
    // Twice: a refused open leaves nothing behind.
    for _ in 0..2 {
        let error = second.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        assert!(error.to_string().contains("is already owned by an active write handle"));
    }
    append(&*writer, 1, 1).await;
    let reader = open(&*second, "s", Access::Read).await;
    assert_eq!(read(&*reader).await, batch(0, 2));
    // Another session is another matter.
    append(&*create(&*second, "t").await, 0, 1).await;

    writer.close().await.unwrap();
    let writer = open(&*second, "s", Access::Write).await;
    append(&*writer, 2, 1).await;
    let error = first.open(&id("s"), Access::Write, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
}

/// Two instances may have one id pending; the first to store it has it, the other finds out when
/// it writes, and nothing of its batch is stored.
pub async fn of_rival_creators_the_first_to_store_wins(backend: &impl Backend) {
    let (first, second) = (backend.instance(), backend.instance());
    let winner = create(&*first, "s").await;
    let loser = create(&*second, "s").await;
    append(&*winner, 0, 2).await;
    let error = loser.append(batch(0, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
    winner.close().await.unwrap();
    let error = loser.append(batch(0, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_exists");
    assert_eq!(loser.flush(&never()).await.unwrap_err().kind(), "already_exists");
    // What is stored counts, and counts once.
    let list = second.list(&ListQuery::default(), &never()).await.unwrap();
    assert_eq!(list.entries.len(), 1);
    loser.close().await.unwrap();
    let reader = open(&*second, "s", Access::Read).await;
    assert_eq!(read(&*reader).await, batch(0, 2));
}
