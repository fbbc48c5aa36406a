//! Writing a log: the part that runs on one thread at a time.

use std::sync::Arc;

use turnkeep_log::{Event, Seq, SessionHeader, SessionId, packed};

use super::{
    failure::WriteFailure,
    layout::Encoding,
    lock::Lock,
    materialize::materialize,
    open_log::{Broken, OpenLog, Setback},
    registry::{Owner, Standing},
    root::Root,
};
use crate::error::{
    AppendError, FlushError, NotSerializable, OwnershipLost, Poisoned, SeqMismatch,
};

/// One session, owned: what its write handle appends goes through here.
#[derive(Debug)]
pub(crate) struct Writer {
    root: Arc<Root>,
    id: SessionId,
    owner: Arc<Owner>,
    next: Seq,
    state: State,
    /// Why nothing may be written any more.
    broken: Option<Broken>,
}

#[derive(Debug)]
enum State {
    Pending { header: Box<SessionHeader>, lock: Option<Lock> },
    Stored { log: OpenLog, _lock: Lock },
}

impl Writer {
    /// For a session that is not stored yet.
    pub(crate) fn pending(root: Arc<Root>, owner: Arc<Owner>, header: SessionHeader) -> Self {
        let id = header.id.clone();
        let state = State::Pending { header: Box::new(header), lock: None };
        Self { root, id, owner, next: Seq(0), state, broken: None }
    }

    /// For a log that was read to its end, and that is locked.
    pub(crate) fn stored(
        root: Arc<Root>,
        owner: Arc<Owner>,
        id: SessionId,
        log: OpenLog,
        next: Seq,
        lock: Lock,
    ) -> Self {
        let writer =
            Self { root, id, owner, next, state: State::Stored { log, _lock: lock }, broken: None };
        writer.acknowledge();
        writer
    }

    /// Appends a batch; the seq that comes next then.
    pub(crate) fn append(&mut self, events: &[Event]) -> Result<Seq, AppendError> {
        self.check_intact()?;
        if events.is_empty() {
            return Ok(self.next);
        }
        self.check_seqs(events)?;
        let records = self.records(events)?;
        self.store(Some(&records))?;
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

    fn records(&self, events: &[Event]) -> Result<String, NotSerializable> {
        let records =
            if self.root.pack_chunks { packed::pack_batch(events) } else { packed::lines(events) };
        let limit = self.root.max_frame_bytes;
        if self.root.encoding == Encoding::Zstd && records.len() as u64 > limit {
            return Err(NotSerializable {
                id: self.id.clone(),
                what: "the batch".to_owned(),
                problem: format!(
                    "it has {} bytes, and readers take {limit} at once; split it, or raise \
                     `max_frame_bytes`",
                    records.len()
                ),
            });
        }
        Ok(records)
    }

    fn store(&mut self, records: Option<&str>) -> Result<(), WriteFailure> {
        let outcome = match &mut self.state {
            State::Pending { header, lock } => {
                match materialize(&self.root, header, records, lock) {
                    Ok(made) => {
                        if let Some(lock) = lock.take() {
                            let log = OpenLog::made(&self.root, made);
                            self.state = State::Stored { log, _lock: lock };
                        }
                        Ok(())
                    }
                    Err(WriteFailure::Poisoned(poisoned)) => {
                        Err(Setback::Broken(Broken::Poisoned(poisoned.cause)))
                    }
                    Err(failure) => Err(Setback::Failed(failure)),
                }
            }
            State::Stored { log, .. } => match records {
                Some(records) => log.append(&self.root, &self.id, records),
                None => log.flush(&self.root, &self.id),
            },
        };
        match outcome {
            Ok(()) => {
                self.acknowledge();
                Ok(())
            }
            Err(Setback::Failed(failure)) => {
                // A rollback or a repair may have changed the file all the same.
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
        if let State::Stored { log, .. } = &self.state {
            self.owner.set_standing(Standing::Stored(log.acknowledged()));
        }
    }
}
