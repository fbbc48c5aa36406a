//! Writing a log: the part that runs on one thread at a time.

use std::{fmt, ops::RangeInclusive, sync::Arc};

use turnkeep_log::{Event, Seq, SessionId};

use super::{
    failure::WriteFailure,
    registry::{Owner, Standing},
};
use crate::{
    Durability,
    error::{AppendError, FlushError, NotSerializable, OwnershipLost, Poisoned, SeqMismatch},
};

/// What a backend does for a session that is owned: the log itself, from before it is stored until
/// it is given back. Dropping it gives up whatever keeps other writers out.
pub(crate) trait WriteLog: fmt::Debug + Send + Sized + 'static {
    /// What is stored of a log for certain, as readers in this store want to know it.
    type Acknowledged: Clone + fmt::Debug + Send + 'static;

    /// A batch, as it is going to be stored.
    type Batch;

    /// Makes a batch of consecutive events, at least one, that continue the log.
    fn encode(&self, events: &[Event]) -> Result<Self::Batch, NotSerializable>;

    /// Stores a batch; and the session itself, if it is not stored yet. Without a batch, only the
    /// latter, and makes everything durable. With one, that may be left to [`sync`](Self::sync).
    fn store(&mut self, batch: Option<Self::Batch>) -> Result<(), Setback>;

    /// What is stored, as far as readers may see it; nothing while the session is pending.
    fn acknowledged(&self) -> Option<Self::Acknowledged>;

    /// How many bytes the events of one batch may have, as lines.
    fn max_batch_bytes(&self) -> u64;

    /// Makes the batches durable that were stored and are not.
    fn sync(&mut self) -> Result<(), Setback> {
        Ok(())
    }

    /// How many bytes were stored and are not known to be durable.
    fn unsynced(&self) -> u64 {
        0
    }

    /// When an append is acknowledged.
    fn durability(&self) -> Durability {
        Durability::Append
    }
}

/// Why a log did not take a batch.
#[derive(Debug)]
pub(crate) enum Setback {
    /// Nothing counts of it, and it may be tried again.
    Failed(WriteFailure),
    /// Nobody can say what the log holds now, or it is no longer ours.
    Broken(Broken),
}

/// Why nothing may be written any more.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    /// Someone else writes; what gave it away.
    Lost(String),
    /// What could not be confirmed.
    Poisoned(String),
}

/// One session, owned: what its write handle appends goes through here.
#[derive(Debug)]
pub(crate) struct Writer<L: WriteLog> {
    id: SessionId,
    owner: Arc<Owner<L>>,
    next: Seq,
    /// The events before this one are durable.
    durable: Seq,
    log: L,
    /// Why nothing may be written any more.
    broken: Option<Broken>,
    /// Whether that takes accepted events back, and nobody has heard of it.
    untold: bool,
}

impl<L: WriteLog> Writer<L> {
    /// For a log that holds the events before `next`.
    pub(crate) fn new(id: SessionId, owner: Arc<Owner<L>>, log: L, next: Seq) -> Self {
        let writer = Self { id, owner, next, durable: next, log, broken: None, untold: false };
        writer.acknowledge();
        writer
    }

    /// The seq that comes next.
    pub(crate) fn next(&self) -> Seq {
        self.next
    }

    pub(crate) fn max_batch_bytes(&self) -> u64 {
        self.log.max_batch_bytes()
    }

    /// Stores a batch and does what it takes to acknowledge it: syncs it, if that is how durable it
    /// has to be, or if too much waits to be synced. The seq that comes next then.
    ///
    /// Each batch has a sync of its own, also where several wait. One for all would be cheaper, but
    /// then a frame would be written behind one that is not on disk, and could no longer prove that
    /// what lies before it was acknowledged.
    pub(crate) fn append(&mut self, events: &[Event]) -> Result<Seq, AppendError> {
        self.check_intact()?;
        if events.is_empty() {
            return Ok(self.next);
        }
        self.check_seqs(events)?;
        let batch = self.log.encode(events)?;
        self.store(Some(batch), events.len())?;
        let must_sync = match self.log.durability() {
            Durability::Append => self.durable < self.next,
            Durability::Flush => self.log.unsynced() >= Durability::MOST_UNSYNCED,
        };
        if must_sync {
            let synced = self.log.sync();
            self.note(synced, 0)?;
        }
        Ok(self.next)
    }

    /// Makes what was accepted durable; stores the session if it is not.
    pub(crate) fn flush(&mut self) -> Result<(), FlushError> {
        self.check_intact()?;
        Ok(self.store(None, 0)?)
    }

    /// Makes what was accepted durable, without being asked to. Whoever does something next hears
    /// what became of it.
    pub(crate) fn sync_unasked(&mut self) {
        if self.broken.is_some() || self.log.unsynced() == 0 {
            return;
        }
        if let Err(failure) = self.flush() {
            tracing::error!(session = %self.id, %failure, "accepted events could not be synced");
            self.untold = true;
        }
    }

    /// Makes what was accepted durable, for the last time; or says what was taken back, unless
    /// someone has been told.
    pub(crate) fn close(&mut self) -> Result<(), FlushError> {
        match &self.broken {
            Some(_) if !self.untold => Ok(()),
            None if self.log.unsynced() == 0 => Ok(()),
            _ => self.flush(),
        }
    }

    /// How many bytes wait to be synced.
    pub(crate) fn unsynced(&self) -> u64 {
        if self.broken.is_some() { 0 } else { self.log.unsynced() }
    }

    fn check_intact(&mut self) -> Result<(), WriteFailure> {
        match &self.broken {
            None => Ok(()),
            Some(broken) => {
                self.untold = false;
                Err(self.refusal(broken))
            }
        }
    }

    fn check_seqs(&self, events: &[Event]) -> Result<(), SeqMismatch> {
        let expected = |index| self.next.plus(index);
        match events.iter().enumerate().find(|(index, event)| event.seq() != expected(*index)) {
            None => Ok(()),
            Some((index, event)) => Err(SeqMismatch {
                id: self.id.clone(),
                expected: expected(index),
                index,
                got: event.seq(),
            }),
        }
    }

    fn store(&mut self, batch: Option<L::Batch>, events: usize) -> Result<(), WriteFailure> {
        let stored = self.log.store(batch);
        self.note(stored, events)
    }

    /// Notes what became of an operation that was to store so many events, and how far the log goes
    /// by now: a rollback or a repair may have changed the storage even where it failed.
    fn note(&mut self, done: Result<(), Setback>, events: usize) -> Result<(), WriteFailure> {
        if done.is_ok() {
            self.next = self.next.plus(events);
        }
        if self.log.unsynced() == 0 {
            self.durable = self.next;
        }
        self.acknowledge();
        match done {
            Ok(()) => Ok(()),
            Err(Setback::Failed(failure)) => Err(failure),
            Err(Setback::Broken(broken)) => {
                let broken = self.with_losses(broken);
                let refusal = self.refusal(&broken);
                self.broken = Some(broken);
                Err(refusal)
            }
        }
    }

    /// The events that were accepted, and that nobody can vouch for any more.
    fn accepted(&self) -> Option<RangeInclusive<u64>> {
        let is_accepted = self.log.durability() == Durability::Flush && self.durable < self.next;
        is_accepted.then(|| self.durable.0..=self.next.0.saturating_sub(1))
    }

    fn with_losses(&self, broken: Broken) -> Broken {
        let Some(events) = self.accepted() else { return broken };
        let (first, last) = events.into_inner();
        let losses = format!("events {first} to {last} were accepted, but are not on disk");
        match broken {
            Broken::Lost(evidence) => Broken::Lost(format!("{evidence}; {losses}")),
            Broken::Poisoned(cause) => Broken::Poisoned(format!("{cause}; {losses}")),
        }
    }

    fn refusal(&self, broken: &Broken) -> WriteFailure {
        let id = self.id.clone();
        match broken.clone() {
            Broken::Lost(evidence) => WriteFailure::OwnershipLost(OwnershipLost { id, evidence }),
            Broken::Poisoned(cause) => WriteFailure::Poisoned(Poisoned { id, cause }),
        }
    }

    /// Tells readers how far the log goes.
    fn acknowledge(&self) {
        if let Some(acknowledged) = self.log.acknowledged() {
            self.owner.set_standing(Standing::Stored(acknowledged));
        }
        self.owner.set_unsynced(self.unsynced() > 0);
    }
}

impl<L: WriteLog> Drop for Writer<L> {
    /// Nothing is waited for where a handle is dropped; who wants it synced closes it.
    fn drop(&mut self) {
        let is_news = self.broken.is_none() || self.untold;
        if let Some(events) = self.accepted().filter(|_| is_news) {
            tracing::warn!(
                session = %self.id,
                first = *events.start(),
                last = *events.end(),
                "a handle was dropped before these events were flushed",
            );
        }
    }
}
