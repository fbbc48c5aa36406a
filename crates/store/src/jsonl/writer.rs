//! Writing a log: the part that runs on one thread at a time.

use std::sync::Arc;

use turnkeep_log::{Event, SessionHeader, SessionId, packed};

use super::{
    failure::WriteFailure, fs::FileStat, layout::Encoding, lock::Lock, materialize::materialize,
    open_log::OpenLog, root::Root,
};
use crate::{
    error::NotSerializable,
    shell::{Broken, Setback, WriteLog},
};

/// Who writes what within a store.
pub(crate) type Registry = crate::shell::Registry<JsonlLog>;

/// What is stored of a log for certain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// The file's state after the last acknowledged write.
    pub(crate) file: FileStat,
    /// Where the last acknowledged record ends.
    pub(crate) end: u64,
}

/// One session's log, owned.
#[derive(Debug)]
pub(crate) struct JsonlLog {
    root: Arc<Root>,
    id: SessionId,
    state: State,
}

#[derive(Debug)]
enum State {
    Pending { header: Box<SessionHeader>, lock: Option<Lock> },
    Stored { log: OpenLog, _lock: Lock },
}

impl JsonlLog {
    /// For a session that is not stored yet.
    pub(crate) fn pending(root: Arc<Root>, header: SessionHeader) -> Self {
        let id = header.id.clone();
        Self { root, id, state: State::Pending { header: Box::new(header), lock: None } }
    }

    /// For a log that was read to its end, and that is locked.
    pub(crate) fn stored(root: Arc<Root>, id: SessionId, log: OpenLog, lock: Lock) -> Self {
        Self { root, id, state: State::Stored { log, _lock: lock } }
    }
}

impl WriteLog for JsonlLog {
    type Acknowledged = Acknowledged;
    type Batch = String;

    fn encode(&self, events: &[Event]) -> Result<String, NotSerializable> {
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

    fn store(&mut self, records: Option<String>) -> Result<(), Setback> {
        self.root.memo.forget(&self.id);
        let (header, lock) = match &mut self.state {
            State::Pending { header, lock } => (header, lock),
            State::Stored { log, .. } => {
                return match records {
                    Some(records) => log.append(&self.root, &self.id, &records),
                    None => log.flush(&self.root, &self.id),
                };
            }
        };
        match materialize(&self.root, header, records.as_deref(), lock) {
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

    fn acknowledged(&self) -> Option<Acknowledged> {
        match &self.state {
            State::Pending { .. } => None,
            State::Stored { log, .. } => Some(log.acknowledged()),
        }
    }

    fn max_batch_bytes(&self) -> u64 {
        match self.root.encoding {
            Encoding::Zstd => self.root.max_frame_bytes,
            Encoding::None => u64::MAX,
        }
    }
}
