//! The store: the asynchronous shell around the synchronous core.

use std::sync::Arc;

use async_trait::async_trait;
use turnkeep_log::{SessionHeader, SessionId};

use super::{
    JsonlOptions,
    discover::{self, check_place},
    failure::{LogFailure, Subject},
    fs::{Fs, OpenMode, OsFs},
    head::headerless,
    layout::{Encoding, SessionDir},
    list,
    lock::Lock,
    open_log::OpenLog,
    reader::{JsonlReader, ReadRequest, read_log},
    root::Root,
    snapshot,
    writer::{JsonlLog, Registry},
};
use crate::{
    error::{
        AlreadyOwned, CreateError, FlushStoreError, ListError, NotFound, OpenError, StatError,
        StoreError,
    },
    seam::{
        Access, Cancel, EventRange, ListQuery, SessionHandle, SessionList, SessionStat,
        SessionStore,
    },
    shell::{self, Core, TakenUp},
};

/// Sessions as files below one directory.
///
/// Cloning it is cheap and gives the same store: one set of write handles, one view of pending
/// sessions. Its operations need a Tokio runtime, whose blocking pool does the file work.
///
/// The layout, and why appending to it is safe, are described in `docs/format.md`.
#[derive(Clone, Debug)]
pub struct JsonlStore {
    shared: Arc<Shared>,
}

/// What a store and its handles have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    root: Arc<Root>,
    registry: Arc<Registry>,
}

impl Shared {
    pub(crate) fn open_on(options: JsonlOptions, fs: Arc<dyn Fs>) -> Result<Arc<Self>, StoreError> {
        let root = Arc::new(Root::open(options, fs)?);
        Ok(Arc::new(Self { root, registry: Registry::new("jsonl") }))
    }
}

impl JsonlStore {
    /// Opens a store. Nothing is created; a root that is not there is made with its first session.
    ///
    /// # Errors
    ///
    /// `usage` when the root is no directory, or one that others may write to; `io` when it cannot
    /// be read.
    pub fn open(options: JsonlOptions) -> Result<Self, StoreError> {
        Self::open_on(options, Arc::new(OsFs))
    }

    /// Opens a store on a file system of your own.
    ///
    /// # Errors
    ///
    /// As [`JsonlStore::open`].
    pub fn open_on(options: JsonlOptions, fs: Arc<dyn Fs>) -> Result<Self, StoreError> {
        Shared::open_on(options, fs).map(|shared| Self { shared })
    }

    /// How the logs of this root are encoded.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.shared.root.encoding
    }
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn create(
        &self,
        header: SessionHeader,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, CreateError> {
        shell::create(&self.shared, header, cancel).await
    }

    async fn open(
        &self,
        id: &SessionId,
        access: Access,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, OpenError> {
        shell::open(&self.shared, id, access, cancel).await
    }

    async fn stat(
        &self,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<SessionStat>, StatError> {
        shell::stat(&self.shared, id, cancel).await
    }

    async fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        shell::list(&self.shared, query, cancel).await
    }

    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushStoreError> {
        shell::flush(&self.shared, cancel).await
    }
}

impl Shared {
    fn reader_of(&self, dir: &SessionDir) -> JsonlReader {
        let path = dir.log(self.root.encoding);
        JsonlReader::new(Arc::clone(&self.root), Arc::clone(&self.registry), path)
    }

    fn lock(&self, id: &SessionId, dir: &SessionDir) -> Result<Option<Lock>, LogFailure> {
        let lock = dir.lock();
        Lock::take(&*self.root.fs, &lock)
            .map_err(|source| Subject { id, path: &lock }.io("lock", source))
    }
}

impl Core for Shared {
    type Reader = JsonlReader;
    type Log = JsonlLog;

    fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    fn is_stored(&self, id: &SessionId) -> Result<bool, LogFailure> {
        Ok(discover::find(&self.root, id)?.is_some())
    }

    fn new_log(self: &Arc<Self>, header: &SessionHeader) -> JsonlLog {
        JsonlLog::pending(Arc::clone(&self.root), header.clone())
    }

    fn reader(self: &Arc<Self>, header: &SessionHeader) -> JsonlReader {
        self.reader_of(&self.root.layout.session_dir(header))
    }

    fn find(
        self: &Arc<Self>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<(SessionHeader, JsonlReader)>, LogFailure> {
        let Some(dir) = discover::find(&self.root, id)? else { return Ok(None) };
        shell::check(cancel, "open")?;
        let path = dir.log(self.root.encoding);
        let Some((head, _)) = snapshot::read_head(&self.root, &self.registry, id, &dir)? else {
            return Ok(None);
        };
        let header = head
            .header()?
            .ok_or_else(|| headerless(Subject { id, path: &path }, self.root.encoding))?;
        check_place(&self.root, &header, &dir)?;
        Ok(Some((header, self.reader_of(&dir))))
    }

    fn take_up(
        self: &Arc<Self>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<TakenUp<JsonlReader, JsonlLog>, OpenError> {
        let not_found = || NotFound { id: id.clone() };
        // Before anything is made: an absent session must leave no lock file behind.
        let dir = discover::find(&self.root, id)?.ok_or_else(not_found)?;
        let lock = self.lock(id, &dir)?.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        let path = dir.log(self.root.encoding);
        let request = ReadRequest {
            id,
            path: &path,
            range: EventRange { offset: u64::MAX, length: None },
            known: None,
            acknowledged: None,
            cancel,
            operation: "open",
        };
        let read = read_log(&self.root, &request)?.ok_or_else(not_found)?;
        let (Some(header), Some(ending)) = (read.header, read.ending) else {
            return Err(not_found().into());
        };
        check_place(&self.root, &header, &dir)?;
        let file = self
            .root
            .fs
            .open(&path, OpenMode::Append)
            .map_err(|source| Subject { id, path: &path }.io("open", source))?;

        let reader = self.reader_of(&dir);
        let log = OpenLog::read(&self.root, dir, file, &read.progress, read.tail, ending);
        let log = JsonlLog::stored(Arc::clone(&self.root), id.clone(), log, lock);
        let next = read.progress.next;
        Ok(TakenUp { header, reader: reader.primed(read.progress), log, next })
    }

    fn stat(&self, id: &SessionId) -> Result<Option<SessionStat>, LogFailure> {
        match discover::find(&self.root, id)? {
            Some(dir) => snapshot::take(&self.root, &self.registry, id, &dir),
            None => Ok(None),
        }
    }

    fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        list::list(&self.root, &self.registry, query, cancel)
    }
}
