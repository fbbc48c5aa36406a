//! What a write handle's queue works on.

use std::{
    error::Error,
    sync::{Arc, Mutex},
};

use turnkeep_log::{Event, Seq, SessionId};

use super::{
    queue::Queue,
    registry::{Claim, locked},
    writer::Writer,
};
use crate::error::{AppendError, CloseError, FlushError};

pub(crate) use super::writer::WriteLog;

/// The mutations of one write handle, in the order of the calls.
pub(crate) type Mutations<L> = Queue<Owned<L>>;

/// A session and the right to write it. Dropping it gives the right back.
#[derive(Debug)]
pub(crate) struct Owned<L: WriteLog> {
    // First the lock, then the claim: whoever claims the session next finds it unlocked.
    writer: Writer<L>,
    claim: Claim<L>,
}

impl<L: WriteLog> Owned<L> {
    pub(crate) fn new(writer: Writer<L>, claim: Claim<L>) -> Self {
        Self { writer, claim }
    }

    pub(crate) fn claim(&self) -> &Claim<L> {
        &self.claim
    }

    /// The seq that comes next.
    pub(crate) fn next(&self) -> Seq {
        self.writer.next()
    }

    /// How many bytes the events of one batch may have, as lines.
    pub(crate) fn max_batch_bytes(&self) -> u64 {
        self.writer.max_batch_bytes()
    }

    /// Appends a batch and does what it takes to acknowledge it.
    pub(crate) fn append(&mut self, events: &[Event]) -> Result<Seq, AppendError> {
        let next = self.writer.append(events)?;
        if self.writer.unsynced() > 0 {
            self.claim.expect_sync();
        }
        Ok(next)
    }

    /// Syncs what waits for it, if anything does.
    pub(crate) fn sync_unasked(&mut self) {
        self.writer.sync_unasked();
    }

    /// Finishes what was accepted, before the session is given back.
    pub(crate) fn close(&mut self) -> Result<(), FlushError> {
        self.writer.close()
    }

    pub(crate) fn flush(&mut self) -> Result<(), FlushError> {
        self.writer.flush()
    }
}

/// The first failure of a handle that nobody waited for, to be told when it closes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unreported(Arc<Mutex<Option<CloseError>>>);

impl Unreported {
    /// Where the outcome of an append goes that nobody waits for.
    pub(crate) fn append(&self, id: &SessionId) -> impl Fn(Result<Seq, AppendError>) + use<> {
        let (unreported, id) = (self.clone(), id.clone());
        move |outcome| {
            if let Err(error) = outcome {
                unreported.keep(&id, error.kind(), &error);
            }
        }
    }

    /// Where the outcome of a flush goes that nobody waits for.
    pub(crate) fn flush(&self, id: &SessionId) -> impl Fn(Result<(), FlushError>) + use<> {
        let (unreported, id) = (self.clone(), id.clone());
        move |outcome| {
            if let Err(error) = outcome {
                unreported.keep(&id, error.kind(), &error);
            }
        }
    }

    fn keep(&self, id: &SessionId, kind: &'static str, error: &dyn Error) {
        let message = error.to_string();
        locked(&self.0).get_or_insert(CloseError { id: id.clone(), kind, message, unstored: None });
    }

    /// What closing comes to.
    pub(crate) fn outcome(&self) -> Result<(), CloseError> {
        locked(&self.0).clone().map_or(Ok(()), Err)
    }
}
