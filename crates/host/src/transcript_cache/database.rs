//! The database file: opened, checked, set up.
//!
//! The tables are those of the clients' other host, so that either opens the other's file:
//!
//! | table | holds |
//! |---|---|
//! | `transcript_cache_meta` | `schema_version`: `1` |
//! | `transcript_cache_index` | what is known of each message: identity, place in its session, hash, completeness, size, last access |
//! | `transcript_cache_content` | the JSON of each message, under the same identity; goes with its row of the index |
//!
//! A message is known by transport, generation, directory, session and its id. Whatever is not
//! exactly these tables of this version is dropped and made anew: it is a cache.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, config::DbConfig,
};
use thiserror::Error;

use super::path::BadPath;

/// The first version without a fault in WAL mode that can damage a database.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long to wait for another process that writes to the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait before trying again what SQLite does not wait for itself.
const RETRY: Duration = Duration::from_millis(10);

/// What of SQLite's log stays on disk once it has been taken over.
const LOG_BYTES: i64 = 16 << 20;

/// The version of the tables.
const VERSION: &str = "1";

/// Where the access clock is not believed: it would soon run out of numbers that clients can hold.
const LAST_BELIEVED: i64 = 1 << 52;

const TABLES: [&str; 3] =
    ["transcript_cache_meta", "transcript_cache_index", "transcript_cache_content"];

const MAKE: &str = "
CREATE TABLE IF NOT EXISTS transcript_cache_meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS transcript_cache_index (
  transport TEXT NOT NULL,
  generation INTEGER NOT NULL,
  directory TEXT NOT NULL,
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  content_hash TEXT NOT NULL,
  completeness TEXT NOT NULL CHECK (completeness IN ('slim', 'full')),
  byte_size INTEGER NOT NULL,
  last_accessed_at INTEGER NOT NULL,
  PRIMARY KEY (transport, generation, directory, session_id, message_id)
);
CREATE TABLE IF NOT EXISTS transcript_cache_content (
  transport TEXT NOT NULL,
  generation INTEGER NOT NULL,
  directory TEXT NOT NULL,
  session_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  info_json TEXT NOT NULL,
  parts_json TEXT NOT NULL,
  part_completeness_json TEXT NOT NULL,
  PRIMARY KEY (transport, generation, directory, session_id, message_id),
  FOREIGN KEY (transport, generation, directory, session_id, message_id)
    REFERENCES transcript_cache_index (transport, generation, directory, session_id, message_id)
    ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS transcript_cache_index_session_order ON transcript_cache_index
  (transport, generation, directory, session_id, created_at, message_id);
CREATE INDEX IF NOT EXISTS transcript_cache_index_lru ON transcript_cache_index
  (last_accessed_at, created_at, message_id);
CREATE INDEX IF NOT EXISTS transcript_cache_index_generation ON transcript_cache_index
  (transport, generation);
";

/// Everything the operations ask of the tables, to see whether they have it.
const PROBE: &str = "
SELECT idx.rowid, idx.transport, idx.generation, idx.directory, idx.session_id, idx.message_id,
  idx.created_at, idx.content_hash, idx.completeness, idx.byte_size, idx.last_accessed_at,
  content.transport, content.generation, content.directory, content.session_id,
  content.message_id, content.info_json, content.parts_json, content.part_completeness_json
FROM transcript_cache_index AS idx, transcript_cache_content AS content";

/// Why there is no cache.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// The setting names no file that can be one.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// The library is too old.
    #[error("this build has SQLite {0}; 3.51.3 is needed")]
    Version(&'static str),
    /// The file is no file, or not to be trusted.
    #[error("{0}")]
    Refused(&'static str),
    /// The system says no.
    #[error("{0}; the directory must exist, and be ours to write to")]
    Io(#[from] io::Error),
    /// SQLite says no.
    #[error("{0}; name another file, or remove it")]
    Sqlite(#[from] rusqlite::Error),
}

/// The cache, open.
#[derive(Debug)]
pub(crate) struct Database {
    pub(super) connection: Connection,
    /// How large the file may grow.
    pub(super) most_bytes: u64,
    /// The last time the access clock showed.
    last_access: i64,
}

impl Database {
    /// Opens a file, which is made if it is not there. It grows to `most_bytes` at most.
    pub(super) fn open(path: &Path, most_bytes: u64) -> Result<Self, OpenError> {
        if rusqlite::version_number() < OLDEST_SQLITE {
            return Err(OpenError::Version(rusqlite::version()));
        }
        prepare_file(path)?;
        let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, access)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        refuse_others(&connection)?;
        set_up(&connection)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        make(&transaction)?;
        let last_access = last_access(&transaction)?;
        transaction.commit()?;
        let page_bytes: u64 = connection.pragma_query_value(None, "page_size", |row| {
            row.get::<_, i64>(0).map(i64::unsigned_abs)
        })?;
        let pages = i64::try_from(most_bytes / page_bytes.max(1)).unwrap_or(i64::MAX);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Self { connection, most_bytes, last_access })
    }

    /// The right to write, until the transaction ends.
    pub(super) fn begin(&self) -> rusqlite::Result<Transaction<'_>> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
    }

    /// The time of an access: never the same twice, and never before an earlier one.
    pub(super) fn access(&mut self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(LAST_BELIEVED);
        self.last_access = now.max(self.last_access.saturating_add(1));
        self.last_access
    }

    /// Gives the room of removed rows back to the system, unless somebody else is at the file.
    pub(super) fn shrink(&self) {
        let shrunk = self
            .connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.connection.execute_batch("VACUUM"))
            .and_then(|()| {
                self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            });
        let restored = self.connection.busy_timeout(BUSY_TIMEOUT);
        if let Err(error) = shrunk.and(restored) {
            tracing::debug!(code = ?error.sqlite_error_code(), "transcript cache keeps its size");
        }
    }
}

/// Makes the file if it is not there, for its owner alone; else sees whether it can be trusted.
fn prepare_file(path: &Path) -> Result<(), OpenError> {
    /// Permission bits that let everyone write.
    const WRITABLE_BY_ALL: u32 = 0o002;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = fs::metadata(path)?;
            if !file.is_file() {
                return Err(OpenError::Refused("it is no file; name another one"));
            }
            if file.permissions().mode() & WRITABLE_BY_ALL != 0 {
                return Err(OpenError::Refused("everyone can write to it; use chmod o-w"));
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// A database in which there is something, but no table of ours, is someone else's.
fn refuse_others(connection: &Connection) -> Result<(), OpenError> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    if names.is_empty() || names.iter().any(|name| TABLES.contains(&name.as_str())) {
        return Ok(());
    }
    Err(OpenError::Refused("it is a database of something else; name another file"))
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    use_wal(connection)?;
    for (setting, value) in [
        // A crash of the system may cost the last messages, which come again.
        ("synchronous", 1),
        ("foreign_keys", 1),
        // What a person had removed is overwritten.
        ("secure_delete", 1),
        ("trusted_schema", 0),
        ("cell_size_check", 1),
    ] {
        connection.pragma_update(None, setting, value)?;
    }
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))
}

/// Two processes that come at the same time are in each other's way, which SQLite does not wait for
/// here.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < BUSY_TIMEOUT =>
            {
                sleep(RETRY);
            }
            done => return done,
        }
    }
}

fn make(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    if !is_ours(transaction) {
        // The one that refers to the other first.
        for table in TABLES.iter().rev() {
            transaction.execute(&format!("DROP TABLE IF EXISTS {table}"), [])?;
        }
    }
    transaction.execute_batch(MAKE)?;
    transaction.execute(
        "INSERT OR REPLACE INTO transcript_cache_meta (key, value) VALUES ('schema_version', ?1)",
        [VERSION],
    )?;
    Ok(())
}

/// Whether the tables are there, of this version, with what the operations ask of them.
fn is_ours(transaction: &Transaction<'_>) -> bool {
    let version = transaction.query_row(
        "SELECT CAST(value AS TEXT) FROM transcript_cache_meta WHERE key = 'schema_version'",
        [],
        |row| row.get::<_, String>(0),
    );
    let cascades = transaction.query_row(
        "SELECT count(*) FROM pragma_foreign_key_list('transcript_cache_content') \
         WHERE \"table\" = 'transcript_cache_index' AND on_delete = 'CASCADE'",
        [],
        |row| row.get::<_, i64>(0),
    );
    version.is_ok_and(|version| version == VERSION)
        && transaction.prepare(PROBE).is_ok()
        && cascades.is_ok_and(|columns| columns == 5)
}

/// The access clock goes on where it was, should the system's have been put back.
fn last_access(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    let last: Option<i64> = transaction.query_row(
        "SELECT CAST(max(last_accessed_at) AS INTEGER) FROM transcript_cache_index \
         WHERE last_accessed_at < ?1",
        [LAST_BELIEVED],
        |row| row.get(0),
    )?;
    Ok(last.unwrap_or(0))
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
