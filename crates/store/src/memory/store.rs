//! The store.

use std::sync::Arc;

use turnkeep_log::{Seq, SessionHeader, SessionId, Vocabulary};

use super::{
    disk::{Disk, Stored},
    inspect,
    log::{MemoryLog, MemoryReader},
};
use crate::{
    LiveOptions,
    error::{
        AlreadyExists, AlreadyOwned, DeleteError, ListError, NotFound, NotInTrash, OpenError,
        RestoreError, SalvageError, TrashError,
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

/// Sessions on a [`Disk`] in memory.
///
/// Cloning it is cheap and gives the same store; [`MemoryStore::new`] on the same disk gives
/// another one, which sees what this one has stored, and not what is pending here.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    disk: Disk,
    vocabulary: Arc<Vocabulary>,
    registry: Arc<Registry<MemoryLog>>,
}

impl MemoryStore {
    /// A store on a disk, whose readers know the event types of format v0.
    #[must_use]
    pub fn new(disk: &Disk) -> Self {
        Self::with_vocabulary(disk, Vocabulary::v0())
    }

    /// A store on a disk, whose readers know these event types.
    #[must_use]
    pub fn with_vocabulary(disk: &Disk, vocabulary: Vocabulary) -> Self {
        Self::with_options(disk, vocabulary, LiveOptions::default())
    }

    /// A store on a disk, whose readers know these event types, and that buffers published events
    /// so.
    #[must_use]
    pub fn with_options(disk: &Disk, vocabulary: Vocabulary, live: LiveOptions) -> Self {
        let vocabulary = Arc::new(vocabulary);
        let registry = Registry::new("memory", live);
        Self { shared: Arc::new(Shared { disk: disk.clone(), vocabulary, registry }) }
    }
}

shell::session_store!(MemoryStore);

impl Core for Shared {
    type Reader = MemoryReader;
    type Log = MemoryLog;

    fn registry(&self) -> &Arc<Registry<MemoryLog>> {
        &self.registry
    }

    fn is_stored(&self, id: &SessionId) -> Result<bool, LogFailure> {
        Ok(self.disk.look(id, |_| ()).is_some())
    }

    fn new_log(self: &Arc<Self>, header: &SessionHeader) -> MemoryLog {
        MemoryLog::pending(self.disk.clone(), header.clone())
    }

    fn reader(self: &Arc<Self>, _: &SessionHeader) -> MemoryReader {
        MemoryReader::new(self.disk.clone(), Arc::clone(&self.vocabulary))
    }

    fn find(
        self: &Arc<Self>,
        id: &SessionId,
        _: &Cancel,
    ) -> Result<Option<(SessionHeader, MemoryReader)>, LogFailure> {
        let Some(line) = self.disk.look(id, |stored| stored.header.clone()) else {
            return Ok(None);
        };
        let header = StoredLog { id, path: None }.parse_header(&line)?;
        let reader = self.reader(&header);
        Ok(Some((header, reader)))
    }

    fn take_up(
        self: &Arc<Self>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<TakenUp<MemoryReader, MemoryLog>, OpenError> {
        let not_found = || NotFound { id: id.clone() };
        self.disk.look(id, |_| ()).ok_or_else(not_found)?;
        let lease = self.disk.lease(id).ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        let (header, reader) = self.find(id, cancel)?.ok_or_else(not_found)?;
        let nothing = EventRange { offset: u64::MAX, length: None };
        reader.read(id, nothing, cancel)?.ok_or_else(not_found)?;
        let end = self.disk.look(id, |stored| stored.events.len()).ok_or_else(not_found)?;
        let log = MemoryLog::stored(self.disk.clone(), id.clone(), lease);
        Ok(TakenUp { header, reader, log, next: Seq(0).plus(end) })
    }

    fn stat(&self, id: &SessionId) -> Result<Option<SessionStat>, LogFailure> {
        let stat = |stored: &Stored| {
            let header = StoredLog { id, path: None }.parse_header(&stored.header)?;
            Ok(stored.stat(header))
        };
        self.disk.look(id, stat).transpose()
    }

    fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        let pending = self.registry.all_pending();
        let found = self.disk.look_at_all(|id, stored| Found {
            id: id.clone(),
            modified_at: stored.modified_at,
            what: listing::entry(id, &stored.header, |header| stored.stat(header)),
        });
        listing::page(pending, found, query, cancel, |_, entry| Some(entry))
    }
}

impl shell::Trash for Shared {
    fn delete(&self, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError> {
        let not_found = || NotFound { id: id.clone() };
        self.disk.look(id, |_| ()).ok_or_else(not_found)?;
        let lease = self.disk.lease(id);
        let _lease = lease.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        shell::check(cancel, "delete")?;
        let deleted_at = self.disk.delete(id).ok_or_else(not_found)?;
        Ok(Deleted { id: id.clone(), deleted_at })
    }

    fn trashed(&self, _: &Cancel) -> Result<Vec<Trashed>, TrashError> {
        Ok(self.disk.trash())
    }

    fn restore(
        &self,
        id: &SessionId,
        deleted_at: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Deleted, RestoreError> {
        let exists = || AlreadyExists { id: id.clone() };
        if self.is_stored(id)? {
            return Err(exists().into());
        }
        let lease = self.disk.lease(id);
        let _lease = lease.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        if self.is_stored(id)? {
            return Err(exists().into());
        }
        shell::check(cancel, "restore")?;
        let deleted_at = self.disk.restore(id, deleted_at);
        let deleted_at = deleted_at.ok_or_else(|| NotInTrash { id: id.clone() })?;
        Ok(Deleted { id: id.clone(), deleted_at })
    }

    fn empty_trash(&self, which: Emptying, _: &Cancel) -> Result<Emptied, TrashError> {
        Ok(Emptied { removed: self.disk.empty_trash(which), in_use: Vec::new() })
    }
}

impl Inspect for Shared {
    fn verify(
        &self,
        id: &SessionId,
        _: &Progress,
        _: &Cancel,
    ) -> Result<Option<Verification>, LogFailure> {
        let stored = inspect::stored(&self.disk, id);
        Ok(stored.map(|(header, events)| inspect::verify(id, &header, &events, &self.vocabulary)))
    }

    fn salvage(
        &self,
        id: &SessionId,
        _: Option<Branch>,
        _: &Progress,
        _: &Cancel,
        feed: &mut Feed,
    ) -> Result<(), SalvageError> {
        let stored = inspect::stored(&self.disk, id);
        let (header, events) = stored.ok_or_else(|| NotFound { id: id.clone() })?;
        inspect::save(id, &header, events, &self.vocabulary, feed)
    }
}
