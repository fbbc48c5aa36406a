//! The store: the asynchronous shell around the synchronous core.

use std::{io, path::Path, sync::Arc};

use turnkeep_log::{SessionHeader, SessionId};

use super::{
    JsonlOptions,
    discover::{self, check_place},
    failure::{LogFailure, Subject},
    fs::{File, Fs, OpenMode, OsFs},
    head::headerless,
    index::Keeper,
    inspect,
    layout::{Encoding, SessionDir},
    list,
    lock::Lock,
    memo::Checked,
    open_log::OpenLog,
    reader::{JsonlReader, ReadRequest, read_log},
    root::Root,
    snapshot, trash,
    writer::{JsonlLog, Registry},
};
use crate::{
    error::{
        AlreadyOwned, DeleteError, ListError, NotFound, OpenError, RestoreError, SalvageError,
        StoreError, TrashError,
    },
    recover::{Branch, Feed},
    seam::{Cancel, EventRange, ListQuery, SessionList, SessionStat},
    shell::{self, Core, Inspect, TakenUp},
    trash::{Deleted, Emptied, Emptying, Trashed},
    verify::{Progress, Verification},
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
        let registry = Registry::new("jsonl", options.live);
        Ok(Arc::new(Self { root: Arc::new(Root::open(options, fs)?), registry }))
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

shell::session_store!(JsonlStore);

/// A log that was checked, and its file, open to append.
type CheckedLog = (Checked, Box<dyn File>);

impl Shared {
    fn reader_of(&self, dir: &SessionDir) -> JsonlReader {
        let path = dir.log(self.root.encoding);
        JsonlReader::new(Arc::clone(&self.root), Arc::clone(&self.registry), path)
    }

    /// Reads and checks a whole log, and opens it to append. The session is locked.
    fn check_log(
        &self,
        id: &SessionId,
        path: &Path,
        cancel: &Cancel,
    ) -> Result<Option<CheckedLog>, LogFailure> {
        let request = ReadRequest {
            id,
            path,
            range: EventRange { offset: u64::MAX, length: None },
            known: None,
            acknowledged: None,
            cancel,
            operation: "open",
        };
        let Some(read) = read_log(&self.root, &request)? else { return Ok(None) };
        let (Some(header), Some(ending)) = (read.header, read.ending) else { return Ok(None) };
        let (progress, tail) = (Arc::new(read.progress), read.tail);
        let file = self.root.fs.open(path, OpenMode::Append);
        let file = file.map_err(|source| Subject { id, path }.io("open", source))?;
        Ok(Some((Checked { header, progress, tail, ending }, file)))
    }

    /// What a reader has just found in a log, when the file has not changed since. The session is
    /// locked, so that nobody who keeps to that changes it from here on; who does not is found out
    /// by the fence before anything is written.
    fn recall(&self, id: &SessionId, path: &Path) -> Option<CheckedLog> {
        if !self.root.memo.knows(id) {
            return None;
        }
        // What goes wrong here goes wrong again where it is reported.
        let file = self.root.fs.open(path, OpenMode::Append).ok()?;
        let checked = self.root.memo.recall(id, path, &file.stat().ok()?)?;
        Some((checked, file))
    }

    fn lock(&self, id: &SessionId, dir: &SessionDir) -> Result<Lock, OpenError> {
        let lock = dir.lock();
        match Lock::take(&*self.root.fs, &lock) {
            Ok(taken) => Ok(taken.ok_or_else(|| AlreadyOwned { id: id.clone() })?),
            // Deleted since it was found.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(NotFound { id: id.clone() }.into())
            }
            Err(source) => Err(Subject { id, path: &lock }.io("lock", source).into()),
        }
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
        let lock = self.lock(id, &dir)?;
        let path = dir.log(self.root.encoding);
        let (checked, file) = match self.recall(id, &path) {
            Some(known) => known,
            None => self.check_log(id, &path, cancel)?.ok_or_else(not_found)?,
        };
        let Checked { header, progress, tail, ending } = checked;
        check_place(&self.root, &header, &dir)?;

        let reader = self.reader_of(&dir);
        let keeper = Keeper::of_read((*progress).clone());
        let log = OpenLog::read(&self.root, dir, file, &progress, tail, ending);
        let log = JsonlLog::stored(Arc::clone(&self.root), id.clone(), log, lock, keeper);
        let next = progress.next;
        Ok(TakenUp { header, reader: reader.primed(progress), log, next })
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

impl shell::Trash for Shared {
    fn delete(&self, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError> {
        trash::delete(&self.root, id, cancel)
    }

    fn trashed(&self, cancel: &Cancel) -> Result<Vec<Trashed>, TrashError> {
        trash::list(&self.root, &self.registry, cancel)
    }

    fn restore(
        &self,
        id: &SessionId,
        deleted_at: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Deleted, RestoreError> {
        trash::restore(&self.root, id, deleted_at, cancel)
    }

    fn empty_trash(&self, which: Emptying, cancel: &Cancel) -> Result<Emptied, TrashError> {
        trash::empty(&self.root, &self.registry, which, cancel)
    }
}

impl Inspect for Shared {
    fn verify(
        &self,
        id: &SessionId,
        progress: &Progress,
        cancel: &Cancel,
    ) -> Result<Option<Verification>, LogFailure> {
        inspect::verify(&self.root, &self.registry, id, progress, cancel)
    }

    fn salvage(
        &self,
        id: &SessionId,
        branch: Option<Branch>,
        progress: &Progress,
        cancel: &Cancel,
        feed: &mut Feed,
    ) -> Result<(), SalvageError> {
        let request = inspect::SaveRequest { id, branch, progress, cancel };
        inspect::save(&self.root, &self.registry, &request, feed)
    }
}
