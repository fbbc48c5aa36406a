//! Writing a log: the part that runs on one thread at a time.

use std::{collections::VecDeque, sync::Arc};

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
    Durability,
    error::NotSerializable,
    seam::SessionHints,
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
    /// What was stored and is not acknowledged yet.
    noted: VecDeque<Noted>,
}

/// A batch that was stored, for the index.
#[derive(Debug)]
struct Noted {
    /// Where it begins.
    offset: u64,
    entries: Entries,
    /// The file behind it, and where it ends.
    file: FileStat,
    end: u64,
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
    Stored { log: Box<OpenLog>, _lock: Lock },
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
            noted: VecDeque::new(),
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
        Self {
            root,
            id,
            state: State::Stored { log: Box::new(log), _lock: lock },
            keeper: Some(keeper),
            noted: VecDeque::new(),
        }
    }

    /// Notes what was stored from this byte on.
    fn note(&mut self, offset: u64, entries: Option<Entries>) {
        if let (State::Stored { log, .. }, Some(entries)) = (&self.state, entries) {
            let Acknowledged { file, end } = log.written();
            self.noted.push_back(Noted { offset, entries, file, end });
        }
        self.keep_index();
    }

    /// Adds to the index what is acknowledged by now, and has it written if that is due. An index
    /// is only ever written of what is on disk.
    fn keep_index(&mut self) {
        let (State::Stored { log, .. }, Some(keeper)) = (&self.state, &mut self.keeper) else {
            return;
        };
        let acknowledged = log.acknowledged(&self.root).end;
        let count = self.noted.iter().take_while(|noted| noted.end <= acknowledged).count();
        for noted in self.noted.drain(..count) {
            keeper.add(noted.offset, noted.entries, noted.file, noted.end);
        }
        if log.unsynced() == 0 {
            keeper.save_later(&self.root, &self.id, log.path(), log.ending());
        }
    }

    /// Nobody can say what the log holds.
    fn forget_index(&mut self) {
        self.keeper = None;
        self.noted.clear();
    }
}

impl JsonlLog {
    /// Stores some records, and the session if it is not; from which byte on they are.
    fn store_records(&mut self, records: Option<&str>) -> Result<u64, Setback> {
        let (header, lock) = match &mut self.state {
            State::Pending { header, lock } => (header, lock),
            State::Stored { log, .. } => {
                let offset = log.written().end;
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
                    let log = Box::new(OpenLog::made(&self.root, made));
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
        if let (State::Stored { log, .. }, Some(keeper)) = (&self.state, &self.keeper)
            && log.unsynced() == 0
        {
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
            Err(Setback::Broken(_)) => self.forget_index(),
            Err(Setback::Failed(_)) => {}
        }
        stored.map(drop)
    }

    fn acknowledged(&self) -> Option<Live> {
        let State::Stored { log, .. } = &self.state else { return None };
        let hints = self.keeper.as_ref().map(Keeper::hints);
        Some(Live { acknowledged: log.acknowledged(&self.root), hints })
    }

    fn max_batch_bytes(&self) -> u64 {
        match self.root.encoding {
            Encoding::Zstd => self.root.max_frame_bytes,
            Encoding::None => u64::MAX,
        }
    }

    fn sync(&mut self) -> Result<(), Setback> {
        match &mut self.state {
            State::Pending { .. } => Ok(()),
            State::Stored { log, .. } => {
                let synced = log.sync();
                match &synced {
                    Ok(()) => self.keep_index(),
                    Err(Setback::Broken(_)) => self.forget_index(),
                    Err(Setback::Failed(_)) => {}
                }
                synced
            }
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
