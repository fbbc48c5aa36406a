//! Writing a log: the part that runs on one thread at a time.

use std::sync::Arc;

use turnkeep_log::{Event, SessionHeader, SessionId, packed};

use super::{
    failure::WriteFailure, fs::FileStat, layout::Encoding, lock::Lock, materialize::materialize,
    open_log::OpenLog, root::Root,
};
use crate::{
    Durability,
    error::NotSerializable,
    shell::{Broken, Setback, WriteLog},
};

/// Who writes what within a store.
pub(crate) type Registry = crate::shell::Registry<JsonlLog>;

/// What readers in this store may rely on of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// The file's state after the last write that counts.
    pub(crate) file: FileStat,
    /// Where the last record ends that counts.
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
    Stored { log: Box<OpenLog>, _lock: Lock },
}

impl JsonlLog {
    /// For a session that is not stored yet.
    pub(crate) fn pending(root: Arc<Root>, header: SessionHeader) -> Self {
        let id = header.id.clone();
        Self { root, id, state: State::Pending { header: Box::new(header), lock: None } }
    }

    /// For a log that was read to its end, and that is locked.
    pub(crate) fn stored(root: Arc<Root>, id: SessionId, log: OpenLog, lock: Lock) -> Self {
        Self { root, id, state: State::Stored { log: Box::new(log), _lock: lock } }
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
                    let log = Box::new(OpenLog::made(&self.root, made));
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
            State::Stored { log, .. } => Some(log.acknowledged(&self.root)),
        }
    }

    fn sync(&mut self) -> Result<(), Setback> {
        match &mut self.state {
            State::Pending { .. } => Ok(()),
            State::Stored { log, .. } => log.sync(),
        }
    }

    fn unsynced(&self) -> u64 {
        match &self.state {
            State::Pending { .. } => 0,
            State::Stored { log, .. } => log.unsynced(),
        }
    }

    fn durability(&self) -> Durability {
        self.root.durability
    }
}
