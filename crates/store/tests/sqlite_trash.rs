//! The trash of a sqlite store, down to its rows.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::fs;

use rusqlite::Connection;
use support::{
    append, batch,
    database::{Database, beside},
    disk::names,
    id, never, open, read, store_session,
};
use turnkeep_log::SessionHeader;
use turnkeep_store::{Access, Emptying, SessionStore};

fn count(connection: &Connection, query: &str) -> i64 {
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn deleting_marks_a_row_and_touches_no_frame() {
    let database = Database::new();
    let store = database.store();
    store_session(&store, "s", 3).await;
    store_session(&store, "t", 2).await;
    let before = store.stat(&id("s"), &never()).await.unwrap().unwrap();
    let connection = database.connection();
    let frames = "SELECT sum(session * 1000 + seq * 100 + length(frame)) FROM frames";
    let stored = count(&connection, frames);
    let deleted = store.delete(&id("s"), &never()).await.unwrap();
    assert_eq!(count(&connection, frames), stored);
    let marked = "SELECT deleted_at FROM sessions WHERE id = 's'";
    assert_eq!(count(&connection, marked), deleted.deleted_at);
    assert_eq!(count(&connection, "SELECT count(*) FROM sessions WHERE deleted_at IS NULL"), 1);

    store.restore(&id("s"), None, &never()).await.unwrap();
    // The same log, in the same state.
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap().unwrap(), before);
    store.delete(&id("s"), &never()).await.unwrap();
    assert_eq!(store.empty_trash(Emptying::All, &never()).await.unwrap().removed.len(), 1);
    assert_eq!(count(&connection, "SELECT count(*) FROM sessions"), 1);
    assert_eq!(count(&connection, "SELECT count(DISTINCT session) FROM frames"), 1);
    assert_eq!(count(&connection, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    // Keys are never used again.
    store_session(&store, "s", 3).await;
    let after = store.stat(&id("s"), &never()).await.unwrap().unwrap();
    assert_ne!(after.revision, before.revision);
}

#[tokio::test]
async fn what_was_removed_for_good_is_overwritten() {
    let database = Database::new();
    let store = database.store();
    store_session(&store, "kept", 1).await;
    // Long enough to fill pages of its own.
    let cwd = Some(format!("/{}", "canary-4711/".repeat(10_000)));
    let header = SessionHeader { cwd, ..support::header("s") };
    let handle = store.create(header, &never()).await.unwrap();
    append(&*handle, 0, 1).await;
    handle.close().await.unwrap();
    drop((handle, store));
    // The last connection that is closed brings everything into the file.
    let holds = || {
        drop(database.connection());
        let bytes = fs::read(database.path()).unwrap();
        bytes.windows(11).any(|window| window == b"canary-4711")
    };
    assert!(holds());
    let store = database.store();
    store.delete(&id("s"), &never()).await.unwrap();
    store.empty_trash(Emptying::All, &never()).await.unwrap();
    drop(store);
    assert!(!holds());
}

#[tokio::test]
async fn a_writer_that_lost_its_lock_writes_to_no_deleted_session() {
    for anew in [false, true] {
        let database = Database::new();
        let (first, second) = (database.store(), database.store());
        store_session(&first, "s", 2).await;
        let writer = open(&first, "s", Access::Write).await;
        assert_eq!(second.delete(&id("s"), &never()).await.unwrap_err().kind(), "already_owned");
        fs::remove_file(beside(&database.path(), ".locks").join("s")).unwrap();
        second.delete(&id("s"), &never()).await.unwrap();
        if anew {
            store_session(&second, "s", 2).await;
        }
        let error = writer.append(batch(2, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        drop(writer);
        if anew {
            second.delete(&id("s"), &never()).await.unwrap();
        }
        for trashed in second.trash(&never()).await.unwrap() {
            second.restore(&id("s"), Some(trashed.deleted_at), &never()).await.unwrap();
            let reader = open(&second, "s", Access::Read).await;
            assert_eq!(read(&*reader).await, batch(0, 2));
            second.delete(&id("s"), &never()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_trash_of_no_database_is_empty() {
    let database = Database::new();
    let store = database.store();
    assert_eq!(store.delete(&id("s"), &never()).await.unwrap_err().kind(), "not_found");
    assert_eq!(store.restore(&id("s"), None, &never()).await.unwrap_err().kind(), "not_found");
    assert!(store.trash(&never()).await.unwrap().is_empty());
    assert!(store.empty_trash(Emptying::All, &never()).await.unwrap().removed.is_empty());
    assert_eq!(names(database.dir.path()), Vec::<String>::new());
    store_session(&store, "t", 1).await;
    // No lock is made for what is not there.
    assert_eq!(store.delete(&id("s"), &never()).await.unwrap_err().kind(), "not_found");
    assert_eq!(names(&beside(&database.path(), ".locks")), ["t"]);
}
