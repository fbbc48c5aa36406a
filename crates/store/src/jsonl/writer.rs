//! Writing a log: the part that runs on one thread at a time.

use std::sync::Arc;

use turnkeep_log::{Event, SessionHeader, SessionId, packed};

use super::{
    failure::WriteFailure,
    fs::FileStat,
    index::{Entries, Keeper},
    layout::Encoding,
    lock::Lock,
    materialize::materialize,
    open_log::OpenLog,
    root::Root,
};
use crate::{
    error::NotSerializable,
    seam::SessionHints,
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

/// What readers in the same store are told of a log that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) acknowledged: Acknowledged,
    /// What its events say in short, as far as they are acknowledged.
    pub(crate) hints: Option<Arc<SessionHints>>,
}

/// One session's log, owned.
#[derive(Debug)]
pub(crate) struct JsonlLog {
    root: Arc<Root>,
    id: SessionId,
    state: State,
    /// For the index; absent before there is a log, and once nobody can say what it holds.
    keeper: Option<Keeper>,
}

/// A batch, as it is going to be stored.
#[derive(Debug)]
pub(crate) struct Batch {
    records: String,
    /// What it adds to the index.
    entries: Option<Entries>,
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
        Self {
            root,
            id,
            state: State::Pending { header: Box::new(header), lock: None },
            keeper: None,
        }
    }

    /// For a log that was read to its end, and that is locked.
    pub(crate) fn stored(
        root: Arc<Root>,
        id: SessionId,
        log: OpenLog,
        lock: Lock,
        keeper: Keeper,
    ) -> Self {
        Self { root, id, state: State::Stored { log, _lock: lock }, keeper: Some(keeper) }
    }

    /// Notes what was stored from this byte on.
    fn note(&mut self, offset: u64, entries: Option<Entries>) {
        let (State::Stored { log, .. }, Some(keeper)) = (&self.state, &mut self.keeper) else {
            return;
        };
        if let Some(entries) = entries {
            let Acknowledged { file, end } = log.acknowledged();
            keeper.add(offset, entries, file, end);
        }
        keeper.save_later(&self.root, &self.id, log.path(), log.ending());
    }
}

impl JsonlLog {
    /// Stores some records, and the session if it is not; from which byte on they are.
    fn store_records(&mut self, records: Option<&str>) -> Result<u64, Setback> {
        let (header, lock) = match &mut self.state {
            State::Pending { header, lock } => (header, lock),
            State::Stored { log, .. } => {
                let offset = log.acknowledged().end;
                let stored = match records {
                    Some(records) => log.append(&self.root, &self.id, records),
                    None => log.flush(&self.root, &self.id),
                };
                return stored.map(|()| offset);
            }
        };
        match materialize(&self.root, header, records, lock) {
            Ok(made) => {
                let (offset, file) = (made.records, made.stat);
                if let Some(lock) = lock.take() {
                    let log = OpenLog::made(&self.root, made);
                    self.state = State::Stored { log, _lock: lock };
                    self.keeper = Some(Keeper::of_new(file));
                }
                Ok(offset)
            }
            Err(WriteFailure::Poisoned(poisoned)) => {
                Err(Setback::Broken(Broken::Poisoned(poisoned.cause)))
            }
            Err(failure) => Err(Setback::Failed(failure)),
        }
    }
}

impl Drop for JsonlLog {
    /// Leaves an index behind, for whoever comes next.
    fn drop(&mut self) {
        if let (State::Stored { log, .. }, Some(keeper)) = (&self.state, &self.keeper) {
            keeper.finish(&self.root, &self.id, log.path(), log.ending());
        }
    }
}

impl WriteLog for JsonlLog {
    type Acknowledged = Live;
    type Batch = Batch;

    fn encode(&self, events: &[Event]) -> Result<Batch, NotSerializable> {
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
        Ok(Batch { records, entries: Entries::of(events) })
    }

    fn store(&mut self, batch: Option<Batch>) -> Result<(), Setback> {
        self.root.memo.forget(&self.id);
        let (records, entries) = batch.map(|batch| (batch.records, batch.entries)).unzip();
        let stored = self.store_records(records.as_deref());
        match &stored {
            Ok(offset) => self.note(*offset, entries.flatten()),
            Err(Setback::Broken(_)) => self.keeper = None,
            Err(Setback::Failed(_)) => {}
        }
        stored.map(drop)
    }

    fn acknowledged(&self) -> Option<Live> {
        let State::Stored { log, .. } = &self.state else { return None };
        let hints = self.keeper.as_ref().map(Keeper::hints);
        Some(Live { acknowledged: log.acknowledged(), hints })
    }

    fn max_batch_bytes(&self) -> u64 {
        match self.root.encoding {
            Encoding::Zstd => self.root.max_frame_bytes,
            Encoding::None => u64::MAX,
        }
    }
}
