//! The store without its asynchronous shell.
//!
//! Every operation runs to its end on the caller's thread, through the very code that
//! [`JsonlStore`](super::JsonlStore) runs on the blocking pool. Without threads and queues, the
//! same calls make the same file operations in the same order, which is what a simulator needs
//! that replays them from a seed.

use std::sync::Arc;

use turnkeep_log::{Event, Seq, SessionHeader, SessionId};

use super::{JsonlOptions, fs::Fs, reader::JsonlReader, store::Shared, writer::JsonlLog};
use crate::{
    error::{
        AlreadyExists, AlreadyOwned, AppendError, CreateError, DeleteError, FlushError, NotFound,
        OpenError, ReadError, RestoreError, StatError, StoreError, TrashError,
    },
    seam::{Cancel, EventRange, SessionStat},
    shell::{self, Core, Owned, Reading, Trash},
    trash::{Deleted, Emptied, Emptying},
};

/// A store, called from one thread.
#[derive(Clone, Debug)]
pub struct BlockingStore {
    shared: Arc<Shared>,
}

/// A session held open to write. Dropping it gives the session back.
#[derive(Debug)]
pub struct BlockingHandle {
    reading: Reading<JsonlReader, JsonlLog>,
    owned: Owned<JsonlLog>,
}

impl BlockingStore {
    /// Opens a store on a file system.
    ///
    /// # Errors
    ///
    /// As [`JsonlStore::open`](super::JsonlStore::open).
    pub fn open_on(options: JsonlOptions, fs: Arc<dyn Fs>) -> Result<Self, StoreError> {
        Shared::open_on(options, fs).map(|shared| Self { shared })
    }

    /// Reserves a new session; its header is not checked.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::create`](crate::SessionStore::create).
    pub fn create(&self, header: SessionHeader) -> Result<BlockingHandle, CreateError> {
        let claim = self.shared.registry().claim(&header.id);
        let claim = claim.ok_or_else(|| AlreadyExists { id: header.id.clone() })?;
        let (reading, owned) = shell::reserve(&self.shared, header, claim, &Cancel::never())?;
        Ok(BlockingHandle { reading, owned })
    }

    /// Opens a stored session to write.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::open`](crate::SessionStore::open).
    pub fn open(&self, id: &SessionId) -> Result<BlockingHandle, OpenError> {
        let claim = self.shared.registry().claim(id);
        let claim = claim.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        let (reading, owned) = shell::own(&self.shared, id, claim, &Cancel::never())?;
        Ok(BlockingHandle { reading, owned })
    }

    /// Moves a session to the trash.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::delete`](crate::SessionStore::delete).
    pub fn delete(&self, id: &SessionId) -> Result<Deleted, DeleteError> {
        let claim = self.shared.registry().claim(id);
        let _claim = claim.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        self.shared.delete(id, &Cancel::never())
    }

    /// Moves a session back that was deleted last.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::restore`](crate::SessionStore::restore).
    pub fn restore(&self, id: &SessionId) -> Result<Deleted, RestoreError> {
        let claim = self.shared.registry().claim(id);
        let _claim = claim.ok_or_else(|| AlreadyExists { id: id.clone() })?;
        self.shared.restore(id, None, &Cancel::never())
    }

    /// Removes everything from the trash.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::empty_trash`](crate::SessionStore::empty_trash).
    pub fn empty_trash(&self) -> Result<Emptied, TrashError> {
        self.shared.empty_trash(Emptying::All, &Cancel::never())
    }

    /// The events in a range of a stored session, read through a handle of its own.
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::read`](crate::SessionHandle::read).
    pub fn read(&self, id: &SessionId, range: EventRange) -> Result<Vec<Event>, ReadError> {
        let never = Cancel::never();
        let found = self.shared.find(id, &never)?;
        let (header, reader) = found.ok_or_else(|| NotFound { id: id.clone() })?;
        Reading::<_, JsonlLog>::new(header, reader, None, 0).read(range, &never)
    }

    /// What is known of a session without reading its events.
    ///
    /// # Errors
    ///
    /// As [`SessionStore::stat`](crate::SessionStore::stat).
    pub fn stat(&self, id: &SessionId) -> Result<Option<SessionStat>, StatError> {
        Ok(self.shared.stat(id)?)
    }
}

impl BlockingHandle {
    /// Appends a batch and returns the seq that the next event must carry.
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::append`](crate::SessionHandle::append).
    pub fn append(&mut self, events: &[Event]) -> Result<Seq, AppendError> {
        self.owned.append(events).inspect(|next| self.reading.observe(next.0))
    }

    /// Makes everything accepted so far durable; stores a pending session without events.
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::flush`](crate::SessionHandle::flush).
    pub fn flush(&mut self) -> Result<(), FlushError> {
        self.owned.flush()
    }

    /// Makes everything accepted so far durable, and gives the session back.
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::close`](crate::SessionHandle::close).
    pub fn close(mut self) -> Result<(), FlushError> {
        self.owned.close()
    }

    /// The events in a range of the log.
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::read`](crate::SessionHandle::read).
    pub fn read(&self, range: EventRange) -> Result<Vec<Event>, ReadError> {
        self.reading.read(range, &Cancel::never())
    }
}
