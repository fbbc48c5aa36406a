//! Reading and writing one session.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use turnkeep_log::{Event, SessionHeader, SessionId, Vocabulary, gate};

use super::disk::{Disk, Lease};
use crate::{
    error::{AlreadyExists, AlreadyOwned, IoFailure, NotSerializable},
    seam::{Cancel, EventRange},
    shell::{
        Broken, ReadLog, Setback, Slice, WriteLog,
        failure::{LogFailure, StoredLog, WriteFailure},
    },
};

/// Reads a log for one handle.
#[derive(Debug)]
pub(super) struct MemoryReader {
    disk: Disk,
    vocabulary: Arc<Vocabulary>,
    /// How many events, from the first on, are known to be in order.
    checked: AtomicU64,
}

impl MemoryReader {
    pub(super) fn new(disk: Disk, vocabulary: Arc<Vocabulary>) -> Self {
        Self { disk, vocabulary, checked: AtomicU64::new(0) }
    }
}

impl ReadLog for MemoryReader {
    fn read(
        &self,
        id: &SessionId,
        range: EventRange,
        _: &Cancel,
    ) -> Result<Option<Slice>, LogFailure> {
        let checked = self.checked.load(Ordering::Acquire);
        let found = self.disk.look(id, |stored| {
            let unchecked = slice(&stored.events, EventRange { offset: checked, length: None });
            (unchecked, slice(&stored.events, range), stored.events.len() as u64)
        });
        let Some((unchecked, events, end)) = found else { return Ok(None) };
        gate::check(id, &unchecked, &self.vocabulary)
            .map_err(|refused| StoredLog { id, path: None }.gate(&refused))?;
        self.checked.fetch_max(end, Ordering::AcqRel);
        Ok(Some(Slice { events, end: Some(end) }))
    }
}

fn slice(events: &[Event], range: EventRange) -> Vec<Event> {
    let offset = usize::try_from(range.offset).unwrap_or(usize::MAX);
    let length = range.length.and_then(|length| usize::try_from(length).ok());
    events.iter().skip(offset).take(length.unwrap_or(usize::MAX)).cloned().collect()
}

/// One session's log, owned.
#[derive(Debug)]
pub(super) struct MemoryLog {
    disk: Disk,
    id: SessionId,
    /// The header, until it is stored.
    pending: Option<SessionHeader>,
    lease: Option<Lease>,
}

impl MemoryLog {
    /// For a session that is not stored yet.
    pub(super) fn pending(disk: Disk, header: SessionHeader) -> Self {
        Self { disk, id: header.id.clone(), pending: Some(header), lease: None }
    }

    /// For one that is.
    pub(super) fn stored(disk: Disk, id: SessionId, lease: Lease) -> Self {
        Self { disk, id, pending: None, lease: Some(lease) }
    }
}

impl WriteLog for MemoryLog {
    type Acknowledged = ();
    type Batch = Vec<Event>;

    fn encode(&self, events: &[Event]) -> Result<Vec<Event>, NotSerializable> {
        Ok(events.to_vec())
    }

    fn store(&mut self, batch: Option<Vec<Event>>) -> Result<(), Setback> {
        if self.lease.is_none() {
            let lease = self.disk.lease(&self.id);
            let owned = || AlreadyOwned { id: self.id.clone() };
            let lease = lease.ok_or_else(|| failed(WriteFailure::AlreadyOwned(owned())))?;
            self.lease = Some(lease);
        }
        if self.disk.is_full() && (batch.is_some() || self.pending.is_some()) {
            let source = io::ErrorKind::StorageFull.into();
            let context = format!("session \"{}\": cannot write to its disk", self.id);
            return Err(failed(IoFailure { context, source }.into()));
        }
        let Some(header) = &self.pending else {
            let Some(events) = batch else { return Ok(()) };
            let there = self.disk.extend(&self.id, events);
            return there.then_some(()).ok_or_else(|| {
                Setback::Broken(Broken::Lost("its log is gone; nothing was written".to_owned()))
            });
        };
        if !self.disk.insert(header, batch.unwrap_or_default()) {
            let exists = AlreadyExists { id: self.id.clone() };
            return Err(failed(WriteFailure::AlreadyExists(exists)));
        }
        self.pending = None;
        Ok(())
    }

    fn acknowledged(&self) -> Option<()> {
        self.pending.is_none().then_some(())
    }

    fn max_batch_bytes(&self) -> u64 {
        u64::MAX
    }
}

fn failed(failure: WriteFailure) -> Setback {
    Setback::Failed(failure)
}
