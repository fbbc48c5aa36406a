//! Connections, and how they are set up.

use std::{
    ops::Deref,
    path::Path,
    sync::{Mutex, MutexGuard},
    thread::sleep,
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, config::DbConfig,
};
use turnkeep_log::SessionId;

use super::{
    SqliteOptions,
    fault::Fault,
    place::{FileId, Place},
    schema,
};
use crate::{
    error::{BadRoot, StoreError},
    jsonl::lock::Lock,
    shell::locked,
};

/// The first version without a fault in WAL mode that can damage a database.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How many connections wait for their next use.
const IDLE: usize = 4;

/// How long to wait before trying again what SQLite does not wait for itself.
const RETRY: Duration = Duration::from_millis(10);

/// One database, which need not be there yet.
#[derive(Debug)]
pub(super) struct Database {
    place: Place,
    busy_timeout: Duration,
    idle: Mutex<Vec<Link>>,
    /// Held while this process writes, so that only other processes are waited for by trying.
    writing: Mutex<()>,
}

/// A connection to the file that it was opened on.
#[derive(Debug)]
struct Link {
    connection: Connection,
    file: FileId,
    /// What the store in this file is called.
    store: String,
}

/// A connection in use, which goes back to the others when dropped.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    database: &'a Database,
    link: Option<Link>,
}

impl Database {
    /// Looks at the database, which need not exist.
    pub(super) fn open(options: &SqliteOptions) -> Result<Self, StoreError> {
        let refuse = |problem| StoreError::from(BadRoot { root: options.path.clone(), problem });
        if rusqlite::version_number() < OLDEST_SQLITE {
            let version = rusqlite::version();
            return Err(refuse(format!("this build has SQLite {version}; 3.51.3 is needed")));
        }
        let failed = |fault| match fault {
            Fault::Refused(problem) => refuse(problem),
            Fault::Sqlite(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
                refuse("it is not a SQLite database; name another file".to_owned())
            }
            fault => fault.io(&format!("open {}", options.path.display())).into(),
        };
        let place = Place::resolve(&options.path).map_err(failed)?;
        let (idle, writing) = (Mutex::default(), Mutex::default());
        let database = Self { place, busy_timeout: options.busy_timeout, idle, writing };
        database.lend().map_err(failed)?;
        Ok(database)
    }

    /// A connection to what is there now; `None` when nothing is.
    pub(super) fn lend(&self) -> Result<Option<Lent<'_>>, Fault> {
        loop {
            let Some(file) = self.place.look()? else {
                locked(&self.idle).clear();
                return Ok(None);
            };
            let idle = {
                let mut idle = locked(&self.idle);
                // Those of a file that was replaced are of no use any more.
                idle.retain(|link| link.file == file);
                idle.pop()
            };
            let link = match idle {
                Some(link) => link,
                None => Link::open(self.place.database(), file, self.busy_timeout)?,
            };
            // Else another file was put there between looking and opening.
            if self.place.look()? == Some(file) {
                return Ok(Some(Lent { database: self, link: Some(link) }));
            }
        }
    }

    /// Makes the database if it is not there.
    pub(super) fn make(&self) -> Result<(), Fault> {
        self.place.make()
    }

    /// Takes the lock of a session; `None` when someone else has it.
    pub(super) fn lock(&self, id: &SessionId) -> Result<Option<Lock>, Fault> {
        self.place.lock(id)
    }

    /// Waits for the turn to write.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        locked(&self.writing)
    }
}

impl Link {
    fn open(path: &Path, file: FileId, busy_timeout: Duration) -> Result<Self, Fault> {
        // First without the right to write, so that what is not ours stays as it is.
        let looking = connect(path, false)?;
        looking.busy_timeout(busy_timeout)?;
        schema::check(&looking)?;
        let connection = connect(path, true)?;
        set_up(&connection, busy_timeout)?;
        drop(looking);
        let store = schema::check(&connection)?;
        Ok(Self { connection, file, store })
    }
}

impl Lent<'_> {
    /// What the store in this file is called.
    pub(super) fn store(&self) -> &str {
        self.link.as_ref().map_or("", |link| &link.store)
    }

    /// One state of the database, to be read from.
    pub(super) fn snapshot(&self) -> rusqlite::Result<Transaction<'_>> {
        self.unchecked_transaction()
    }

    /// The right to write, until the transaction ends.
    pub(super) fn begin(&self) -> rusqlite::Result<Transaction<'_>> {
        Transaction::new_unchecked(self, TransactionBehavior::Immediate)
    }

    /// Closes the connection instead of giving it back.
    pub(super) fn discard(mut self) {
        drop(self.link.take());
    }
}

impl Deref for Lent<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        match &self.link {
            Some(link) => &link.connection,
            None => unreachable!("a connection is given back or discarded with its loan"),
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // One that is still in a transaction could not end it.
        let Some(link) = self.link.take().filter(|link| link.connection.is_autocommit()) else {
            return;
        };
        let mut idle = locked(&self.database.idle);
        if idle.len() < IDLE {
            idle.push(link);
        }
    }
}

/// Opens an existing file.
pub(super) fn connect(path: &Path, to_write: bool) -> rusqlite::Result<Connection> {
    let access =
        if to_write { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Sets a connection up, and reads back what it comes to: SQLite leaves out silently what it cannot
/// do.
pub(super) fn set_up(connection: &Connection, busy_timeout: Duration) -> Result<(), Fault> {
    connection.busy_timeout(busy_timeout)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    use_wal(connection, busy_timeout)?;
    let settings = [
        // Every commit syncs the log, and nothing is acknowledged before.
        ("synchronous", 2),
        // On macOS, where a sync is none otherwise. No such setting has an effect elsewhere.
        ("fullfsync", 1),
        ("checkpoint_fullfsync", 1),
        ("foreign_keys", 1),
        // What is removed from the trash is overwritten.
        ("secure_delete", 1),
        ("trusted_schema", 0),
        ("cell_size_check", 1),
    ];
    for (setting, wanted) in settings {
        connection.pragma_update(None, setting, wanted)?;
        let found: i32 = connection.pragma_query_value(None, setting, |row| row.get(0))?;
        if found != wanted {
            return Err(Fault::Refused(format!("SQLite cannot set {setting} to {wanted} here")));
        }
    }
    Ok(())
}

fn use_wal(connection: &Connection, busy_timeout: Duration) -> Result<(), Fault> {
    let started = Instant::now();
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Fault::Refused(format!(
                    "SQLite cannot keep a write-ahead log beside it (journal mode {mode}); \
                     use a local file system"
                )));
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < busy_timeout =>
            {
                sleep(RETRY);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
