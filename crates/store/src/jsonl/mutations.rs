//! What a write handle's queue works on.

use turnkeep_log::{Event, Seq};

use super::{queue::Queue, registry::Claim, writer::Writer};
use crate::error::{AppendError, CloseError, FlushError};

/// The mutations of one write handle, in the order of the calls.
pub(crate) type Mutations = Queue<Owned>;

/// A session and the right to write it. Dropping it gives the right back.
#[derive(Debug)]
pub(crate) struct Owned {
    // First the lock, then the claim: whoever claims the session next finds it unlocked.
    writer: Writer,
    claim: Claim,
    /// The first failure that nobody waited for.
    unreported: Option<CloseError>,
}

impl Owned {
    pub(crate) fn new(writer: Writer, claim: Claim) -> Self {
        Self { writer, claim, unreported: None }
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    pub(crate) fn append(&mut self, events: &[Event]) -> Result<Seq, AppendError> {
        self.writer.append(events)
    }

    pub(crate) fn flush(&mut self) -> Result<(), FlushError> {
        self.writer.flush()
    }

    /// Keeps the failure of an append whose caller went away, to be told when the handle closes.
    pub(crate) fn append_missed(&mut self, outcome: Result<Seq, AppendError>) {
        if let Err(error) = outcome {
            self.miss(error.kind(), error.to_string());
        }
    }

    /// As [`Owned::append_missed`], for a flush.
    pub(crate) fn flush_missed(&mut self, outcome: Result<(), FlushError>) {
        if let Err(error) = outcome {
            self.miss(error.kind(), error.to_string());
        }
    }

    fn miss(&mut self, kind: &'static str, message: String) {
        let id = self.claim.id().clone();
        self.unreported.get_or_insert(CloseError { id, kind, message });
    }

    /// Gives the session back.
    pub(crate) fn release(self) -> Result<(), CloseError> {
        self.unreported.map_or(Ok(()), Err)
    }
}
