//! The sqlite store and its files: who may get at them, and what is ours.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use rusqlite::Connection;
use support::{
    append, batch, create,
    database::{Database, beside},
    disk::names,
    id, never, open, read, store_session,
};
use turnkeep_store::{
    Access, ListQuery, SessionStore,
    sqlite::{SqliteOptions, SqliteStore},
};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn nothing_is_made_before_the_first_session_is_stored() {
    let database = Database::new();
    let store = database.store();
    assert_eq!(store.stat(&id("s"), &never()).await.unwrap(), None);
    assert!(store.list(&ListQuery::default(), &never()).await.unwrap().entries.is_empty());
    store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
    let handle = create(&store, "s").await;
    assert!(read(&*handle).await.is_empty());
    drop(handle);
    assert_eq!(names(database.dir.path()), Vec::<String>::new());

    store_session(&store, "s", 1).await;
    // No lock is made for what is not there.
    store.open(&id("t"), Access::Write, &never()).await.unwrap_err();
    drop(store);
    assert_eq!(names(database.dir.path()), ["sessions.db", "sessions.db.locks"]);
    assert_eq!(names(&beside(&database.path(), ".locks")), ["s"]);
}

#[tokio::test]
async fn files_are_for_their_owner_alone() {
    let database = Database::new();
    let path = database.dir.path().join("a/b/sessions.db");
    let store = SqliteStore::open(SqliteOptions::new(&path)).unwrap();
    let handle = create(&store, "s").await;
    append(&*handle, 0, 1).await;
    for file in [path.clone(), beside(&path, "-wal"), beside(&path, "-shm")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let locks = beside(&path, ".locks");
    assert_eq!(mode(&locks.join("s")), 0o600);
    for dir in [locks, database.dir.path().join("a/b"), database.dir.path().join("a")] {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
    }
}

#[tokio::test]
async fn long_ids_have_locks_of_their_own() {
    let database = Database::new();
    let store = database.store();
    let (first, second) = ("é".repeat(300), "é".repeat(299) + "e");
    let writer = create(&store, &first).await;
    append(&*writer, 0, 1).await;
    store_session(&store, &second, 1).await;
    let elsewhere = database.store();
    let error = elsewhere.open(&id(&first), Access::Write, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
    open(&elsewhere, &second, Access::Write).await;
}

#[tokio::test]
async fn one_file_has_one_set_of_locks_whatever_it_is_called() {
    let database = Database::new();
    let store = database.store();
    let link = database.dir.path().join("link.db");
    symlink(database.path(), &link).unwrap();
    store_session(&store, "s", 1).await;
    let writer = open(&store, "s", Access::Write).await;
    let linked = SqliteStore::open(SqliteOptions::new(&link)).unwrap();
    let error = linked.open(&id("s"), Access::Write, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
    append(&*writer, 1, 1).await;
    assert_eq!(read(&*open(&linked, "s", Access::Read).await).await, batch(0, 2));
    assert!(!beside(&link, ".locks").exists() && !beside(&link, "-wal").exists());
}

/// What makes a file no database of ours, and what is said about it.
type Case = (&'static str, fn(&Path));

const CASES: [Case; 10] = [
    ("is not a SQLite database", |path| fs::write(path, vec![b'x'; 5000]).unwrap()),
    ("is empty, and no database", |path| fs::write(path, "").unwrap()),
    ("is not a file", |path| fs::remove_file(path).and_then(|()| fs::create_dir(path)).unwrap()),
    ("belongs to another program", |path| {
        fs::remove_file(path).unwrap();
        alter(path, "CREATE TABLE notes (text TEXT)");
    }),
    ("belongs to another program", |path| alter(path, "PRAGMA application_id = 1")),
    ("made by a newer build; upgrade", |path| alter(path, "PRAGMA user_version = 3")),
    ("are of version 1, not 2", |path| alter(path, "PRAGMA user_version = 1")),
    ("`notes` is not as this build makes it", |path| alter(path, "CREATE TABLE notes (text TEXT)")),
    ("`frames` is not as this build makes it", |path| {
        alter(path, "ALTER TABLE frames ADD COLUMN extra TEXT");
    }),
    ("tables are missing", |path| alter(path, "DROP TABLE frames")),
];

fn alter(path: &Path, change: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(change).unwrap();
}

#[tokio::test]
async fn what_is_not_ours_is_refused_and_left_as_it_is() {
    for (problem, make) in CASES {
        let database = Database::new();
        store_session(&database.store(), "s", 1).await;
        fs::remove_dir_all(beside(&database.path(), ".locks")).unwrap();
        make(&database.path());
        let before = fs::read(database.path()).ok();
        let error = SqliteStore::open(SqliteOptions::new(database.path())).unwrap_err();
        assert_eq!(error.kind(), "usage", "{problem}");
        assert!(error.to_string().contains(problem), "{problem}: {error}");
        assert_eq!(fs::read(database.path()).ok(), before, "{problem}");
    }
}

#[tokio::test]
async fn a_store_that_others_may_write_to_is_refused() {
    let database = Database::new();
    store_session(&database.store(), "s", 1).await;
    let refused = |problem: &str| {
        let error = SqliteStore::open(SqliteOptions::new(database.path())).unwrap_err();
        assert_eq!(error.kind(), "usage");
        assert!(error.to_string().contains(problem), "{error}");
    };
    for others in [0o620, 0o602] {
        set_mode(&database.path(), others);
        refused("others than its owner may write to it");
    }
    set_mode(&database.path(), 0o600);
    set_mode(database.dir.path(), 0o777);
    refused("others than its owner may write to the directory");
    set_mode(database.dir.path(), 0o700);
    fs::hard_link(database.path(), database.dir.path().join("other.db")).unwrap();
    refused("it has other names");
    fs::remove_file(database.dir.path().join("other.db")).unwrap();
    // Also for a store that is open already.
    let store = database.store();
    set_mode(&database.path(), 0o666);
    let error = store.open(&id("s"), Access::Read, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    set_mode(&database.path(), 0o600);
    open(&store, "s", Access::Read).await;
}

#[tokio::test]
async fn stores_that_begin_at_once_make_one_database() {
    let database = Database::new();
    let stores: Vec<_> = (0..8).map(|_| database.store()).collect();
    let tasks = stores.into_iter().enumerate().map(|(index, store)| {
        tokio::spawn(async move { store_session(&store, &format!("s{index}"), 3).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let list = database.store().list(&ListQuery::default(), &never()).await.unwrap();
    assert_eq!(list.entries.len(), 8);
    assert_eq!(names(database.dir.path()), ["sessions.db", "sessions.db.locks"]);
}

#[tokio::test]
async fn what_is_left_of_a_lost_database_is_not_taken_for_the_new_ones() {
    let database = Database::new();
    store_session(&database.store(), "s", 3).await;
    database.tear("s");
    fs::remove_file(database.path()).unwrap();
    let store = database.store();
    let handle = create(&store, "t").await;
    let error = handle.append(batch(0, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    assert!(error.to_string().contains("of a database that is gone"), "{error}");
    assert!(!database.path().exists());
    fs::remove_file(beside(&database.path(), "-wal")).unwrap();
    append(&*handle, 0, 1).await;
}
