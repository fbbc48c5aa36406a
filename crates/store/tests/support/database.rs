//! A sqlite store in a real directory, and its files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};
use tempfile::TempDir;
use turnkeep_store::sqlite::{SqliteOptions, SqliteStore};

/// A directory that is gone with the test.
pub struct Database {
    pub dir: TempDir,
}

impl Database {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("sessions.db")
    }

    pub fn store(&self) -> SqliteStore {
        SqliteStore::open(SqliteOptions::new(self.path())).unwrap()
    }

    /// Another program's connection. Stores must be gone, or it must be short.
    pub fn connection(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    /// Leaves what a process leaves that was ended while it appended to a session: the first part
    /// of a change in SQLite's log, without the commit.
    pub fn tear(&self, session: &str) {
        let connection = self.connection();
        // So little memory that what does not fit goes to the log before the commit.
        connection.pragma_update(None, "cache_size", 2).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        insert(&connection, session, 3, 1, &vec![7; 200_000]);
        let log = fs::read(beside(&self.path(), "-wal")).unwrap();
        connection.execute_batch("ROLLBACK").unwrap();
        drop(connection);
        assert!(log.len() > 32, "nothing but the header");
        fs::write(beside(&self.path(), "-wal"), log).unwrap();
    }
}

/// Inserts a row, as another program would.
pub fn insert(connection: &Connection, session: &str, seq: i64, events: i64, frame: &[u8]) {
    let inserted = connection
        .execute(
            "INSERT INTO frames SELECT key, ?2, ?3, 1, ?4 FROM sessions WHERE id = ?1",
            params![session, seq, events, frame],
        )
        .unwrap();
    assert_eq!(inserted, 1);
}

/// A file that is named after another.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
