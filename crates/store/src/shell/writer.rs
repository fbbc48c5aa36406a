//! Writing a log: the part that runs on one thread at a time.

use std::{fmt, sync::Arc};

use turnkeep_log::{Event, Seq, SessionId};

use super::{
    failure::WriteFailure,
    registry::{Owner, Standing},
};
use crate::error::{
    AppendError, FlushError, NotSerializable, OwnershipLost, Poisoned, SeqMismatch,
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

    /// Stores a batch, durably; and the session itself, if it is not stored yet. Without a batch,
    /// only the latter.
    fn store(&mut self, batch: Option<Self::Batch>) -> Result<(), Setback>;

    /// What is stored; nothing while the session is pending.
    fn acknowledged(&self) -> Option<Self::Acknowledged>;

    /// How many bytes the events of one batch may have, as lines.
    fn max_batch_bytes(&self) -> u64;
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
    log: L,
    /// Why nothing may be written any more.
    broken: Option<Broken>,
}

impl<L: WriteLog> Writer<L> {
    /// For a log that holds the events before `next`.
    pub(crate) fn new(id: SessionId, owner: Arc<Owner<L>>, log: L, next: Seq) -> Self {
        let writer = Self { id, owner, next, log, broken: None };
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

    /// Appends a batch; the seq that comes next then.
    pub(crate) fn append(&mut self, events: &[Event]) -> Result<Seq, AppendError> {
        self.check_intact()?;
        if events.is_empty() {
            return Ok(self.next);
        }
        self.check_seqs(events)?;
        let batch = self.log.encode(events)?;
        self.store(Some(batch))?;
        self.next = self.next.plus(events.len());
        Ok(self.next)
    }

    /// Stores the session if it is not; what was appended before is stored already.
    pub(crate) fn flush(&mut self) -> Result<(), FlushError> {
        self.check_intact()?;
        Ok(self.store(None)?)
    }

    fn check_intact(&self) -> Result<(), WriteFailure> {
        match &self.broken {
            None => Ok(()),
            Some(broken) => Err(self.refusal(broken)),
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

    fn store(&mut self, batch: Option<L::Batch>) -> Result<(), WriteFailure> {
        match self.log.store(batch) {
            Ok(()) => {
                self.acknowledge();
                Ok(())
            }
            Err(Setback::Failed(failure)) => {
                // A rollback or a repair may have changed the storage all the same.
                self.acknowledge();
                Err(failure)
            }
            Err(Setback::Broken(broken)) => {
                let refusal = self.refusal(&broken);
                self.broken = Some(broken);
                Err(refusal)
            }
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
    }
}
