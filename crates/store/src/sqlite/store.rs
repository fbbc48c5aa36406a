//! The store.

use std::sync::Arc;

use turnkeep_log::{Seq, SessionHeader, SessionId, Vocabulary};

use super::{
    SqliteOptions,
    database::Database,
    fault::Fault,
    inspect,
    reader::SqliteReader,
    sessions::{self, Session},
    trash,
    writer::{SqliteLog, Tail},
};
use crate::{
    error::{
        AlreadyOwned, DeleteError, ListError, NotFound, OpenError, RestoreError, SalvageError,
        StoreError, TrashError,
    },
    recover::{Branch, Feed},
    seam::{Cancel, EventRange, ListQuery, SessionList, SessionStat},
    shell::{
        self, Core, Inspect, ReadLog, Registry, TakenUp,
        failure::{LogFailure, StoredLog},
        listing::{self, Found},
    },
    trash::{Deleted, Emptied, Emptying, Trashed},
    verify::{Progress, Verification},
};

/// Sessions in one SQLite database.
///
/// Cloning it is cheap and gives the same store: one set of write handles, one view of pending
/// sessions. Its operations need a Tokio runtime, whose blocking pool does the work.
///
/// ```
/// use turnkeep_log::{SessionHeader, SessionId};
/// use turnkeep_store::{
///     Cancel, SessionStore,
///     sqlite::{SqliteOptions, SqliteStore},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("sessions.db");
/// let store = SqliteStore::open(SqliteOptions::new(&file))?;
/// let id = SessionId::new("session-1").ok_or("an id is not empty")?;
/// let never = Cancel::never();
///
/// let writer = store.create(SessionHeader::new(id.clone(), 1_700_000_000_000), &never).await?;
/// assert!(!file.exists(), "made with the first session that is stored");
/// writer.flush(&never).await?;
/// let stat = store.stat(&id, &never).await?;
/// assert_eq!(stat.and_then(|stat| stat.event_count), Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    database: Arc<Database>,
    vocabulary: Arc<Vocabulary>,
    max_frame_bytes: u64,
    pack_chunks: bool,
    registry: Arc<Registry<SqliteLog>>,
}

impl SqliteStore {
    /// Opens a store. Nothing is created; a database that is not there is made with its first
    /// session.
    ///
    /// # Errors
    ///
    /// `usage` for a file that is no database of ours (it is left as it is) or that others may
    /// write to; `io` when it cannot be read.
    pub fn open(options: SqliteOptions) -> Result<Self, StoreError> {
        let database = Arc::new(Database::open(&options)?);
        let SqliteOptions { max_frame_bytes, vocabulary, pack_chunks, live, .. } = options;
        let vocabulary = Arc::new(vocabulary);
        let registry = Registry::new("sqlite", live);
        let shared = Shared { database, vocabulary, max_frame_bytes, pack_chunks, registry };
        Ok(Self { shared: Arc::new(shared) })
    }
}

shell::session_store!(SqliteStore);

impl Shared {
    /// A session's row, and the name of the store that it is in.
    fn session(&self, id: &SessionId) -> Result<Option<(Session, String)>, LogFailure> {
        let cannot_look = |fault: Fault| fault.of(id, "look into the database");
        let Some(link) = self.database.lend().map_err(cannot_look)? else { return Ok(None) };
        let session = sessions::find(&link, id).map_err(|error| cannot_look(error.into()))?;
        Ok(session.map(|session| (session, link.store().to_owned())))
    }

    fn sessions(&self) -> Result<(Vec<Session>, String), Fault> {
        let Some(link) = self.database.lend()? else { return Ok((Vec::new(), String::new())) };
        Ok((sessions::all(&link)?, link.store().to_owned()))
    }

    fn new_reader(&self) -> SqliteReader {
        let (database, vocabulary) = (Arc::clone(&self.database), Arc::clone(&self.vocabulary));
        SqliteReader::new(database, vocabulary, self.max_frame_bytes)
    }
}

impl Core for Shared {
    type Reader = SqliteReader;
    type Log = SqliteLog;

    fn registry(&self) -> &Arc<Registry<SqliteLog>> {
        &self.registry
    }

    fn is_stored(&self, id: &SessionId) -> Result<bool, LogFailure> {
        Ok(self.session(id)?.is_some())
    }

    fn new_log(self: &Arc<Self>, header: &SessionHeader) -> SqliteLog {
        let database = Arc::clone(&self.database);
        SqliteLog::pending(database, header.clone(), self.pack_chunks, self.max_frame_bytes)
    }

    fn reader(self: &Arc<Self>, _: &SessionHeader) -> SqliteReader {
        self.new_reader()
    }

    fn find(
        self: &Arc<Self>,
        id: &SessionId,
        _: &Cancel,
    ) -> Result<Option<(SessionHeader, SqliteReader)>, LogFailure> {
        let Some((session, _)) = self.session(id)? else { return Ok(None) };
        let header = StoredLog { id, path: None }.parse_header(&session.header)?;
        Ok(Some((header, self.new_reader())))
    }

    fn take_up(
        self: &Arc<Self>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<TakenUp<SqliteReader, SqliteLog>, OpenError> {
        let not_found = || NotFound { id: id.clone() };
        // Before anything is made: an absent session must leave no lock file behind.
        self.session(id)?.ok_or_else(not_found)?;
        let lock = self.database.lock(id).map_err(|fault| fault.of(id, "lock it"))?;
        let lock = lock.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        let (session, store) = self.session(id)?.ok_or_else(not_found)?;
        let header = StoredLog { id, path: None }.parse_header(&session.header)?;
        let reader = self.new_reader();
        let nothing = EventRange { offset: u64::MAX, length: None };
        reader.read(id, nothing, cancel)?.ok_or_else(not_found)?;
        let next = session.events;
        let tail = Tail { store, session: session.key, next };
        let log = self.new_log(&header).stored(tail, lock);
        Ok(TakenUp { header, reader, log, next: Seq(next) })
    }

    fn stat(&self, id: &SessionId) -> Result<Option<SessionStat>, LogFailure> {
        let Some((session, store)) = self.session(id)? else { return Ok(None) };
        let header = StoredLog { id, path: None }.parse_header(&session.header)?;
        Ok(Some(session.stat(&store, header)))
    }

    fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        // Pending ones first: one that is stored meanwhile is found then, and else it would be
        // missed.
        let pending = self.registry.all_pending();
        let (sessions, store) = self.sessions().map_err(|fault| fault.io("read the database"))?;
        let found = sessions.into_iter().filter_map(|session| {
            let id = SessionId::new(&session.id)?;
            Some(Found { id, modified_at: session.modified_at, what: session })
        });
        listing::page(pending, found.collect(), query, cancel, |id, session| {
            Some(listing::entry(&id, &session.header, |header| session.stat(&store, header)))
        })
    }
}

impl shell::Trash for Shared {
    fn delete(&self, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError> {
        trash::delete(&self.database, id, cancel)
    }

    fn trashed(&self, _: &Cancel) -> Result<Vec<Trashed>, TrashError> {
        trash::list(&self.database)
    }

    fn restore(
        &self,
        id: &SessionId,
        deleted_at: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Deleted, RestoreError> {
        trash::restore(&self.database, id, deleted_at, cancel)
    }

    fn empty_trash(&self, which: Emptying, cancel: &Cancel) -> Result<Emptied, TrashError> {
        trash::empty(&self.database, which, cancel)
    }
}

impl Shared {
    fn inspect<'a>(
        &'a self,
        id: &'a SessionId,
        progress: &'a Progress,
        cancel: &'a Cancel,
    ) -> inspect::Request<'a> {
        let (database, vocabulary) = (&*self.database, &*self.vocabulary);
        let max_frame_bytes = self.max_frame_bytes;
        inspect::Request { database, vocabulary, max_frame_bytes, id, progress, cancel }
    }
}

impl Inspect for Shared {
    fn verify_storage(&self) -> Result<Verification, LogFailure> {
        let checked = inspect::verify_storage(&self.database);
        checked.map_err(|fault| fault.io("check the database").into())
    }

    fn verify(
        &self,
        id: &SessionId,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Option<Verification>, LogFailure> {
        self.inspect(id, progress, cancel).verify()
    }

    fn salvage(
        &self,
        id: &SessionId,
        _: Option<Branch>,
        progress: &Progress,
        cancel: &Cancel,
        feed: &mut Feed,
    ) -> Result<(), SalvageError> {
        self.inspect(id, progress, cancel).save(feed)
    }
}
