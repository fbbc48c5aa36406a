//! Appending to a log.

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;

use std::sync::Arc;

use rusqlite::{ErrorCode, Transaction, params};
use turnkeep_log::{Event, SessionHeader, SessionId, packed};

use super::{
    database::{Database, Lent},
    fault::Fault,
    reader::column,
    schema, sessions,
};
use crate::{
    error::{AlreadyExists, AlreadyOwned, NotSerializable},
    jsonl::{frames::encode_frame, lock::Lock},
    shell::{Broken, Setback, WriteLog, failure::WriteFailure, now},
};

/// How much text goes into one frame, unless one event alone is longer: who reads an event unpacks
/// its frame.
const FRAME: usize = 1 << 20;

/// The longest value that SQLite keeps, and some room for the rest of the row.
const LONGEST: usize = 999_000_000;

/// One session's log, owned.
#[derive(Debug)]
pub(super) struct SqliteLog {
    database: Arc<Database>,
    id: SessionId,
    pack_chunks: bool,
    max_frame_bytes: u64,
    state: State,
    /// Absent until the session is stored, or about to be.
    lock: Option<Lock>,
}

#[derive(Debug)]
enum State {
    Pending(Box<SessionHeader>),
    Stored(Tail),
}

/// The end of a log, as this handle left it or found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) store: String,
    pub(super) session: i64,
    pub(super) next: u64,
}

/// A row to be.
#[derive(Debug)]
pub(super) struct Frame {
    seq: u64,
    events: u64,
    bytes: Vec<u8>,
}

impl SqliteLog {
    /// For a session that is not stored yet.
    pub(super) fn pending(
        database: Arc<Database>,
        header: SessionHeader,
        pack_chunks: bool,
        max_frame_bytes: u64,
    ) -> Self {
        let id = header.id.clone();
        let state = State::Pending(Box::new(header));
        Self { database, id, pack_chunks, max_frame_bytes, state, lock: None }
    }

    /// The same for one that is, and that is locked.
    pub(super) fn stored(self, tail: Tail, lock: Lock) -> Self {
        Self { state: State::Stored(tail), lock: Some(lock), ..self }
    }

    fn frame(&self, events: &[Event]) -> Result<Option<Frame>, NotSerializable> {
        let Some(first) = events.first() else { return Ok(None) };
        let records =
            if self.pack_chunks { packed::pack_batch(events) } else { packed::lines(events) };
        if records.len() as u64 > self.max_frame_bytes {
            return Err(self.unserializable(format!(
                "event {} has {} bytes, and readers take {} at once; raise `max_frame_bytes`",
                first.seq(),
                records.len(),
                self.max_frame_bytes
            )));
        }
        let bytes = encode_frame(&records)
            .map_err(|error| self.unserializable(format!("it cannot be compressed: {error}")))?;
        if bytes.len() > LONGEST {
            return Err(self.unserializable(format!(
                "event {} has {} bytes, compressed, and a database takes {LONGEST}",
                first.seq(),
                bytes.len()
            )));
        }
        Ok(Some(Frame { seq: first.seq().0, events: events.len() as u64, bytes }))
    }

    fn unserializable(&self, problem: String) -> NotSerializable {
        NotSerializable { id: self.id.clone(), what: "the batch".to_owned(), problem }
    }

    fn failed(&self, fault: Fault) -> Setback {
        Setback::Failed(fault.of(&self.id, "write to the database").into())
    }

    /// What it means that a change could not be committed.
    fn uncommitted(&self, error: rusqlite::Error) -> Setback {
        // The disk was full, or someone else in the way, before the commit was written.
        let unwritten = [Some(ErrorCode::DiskFull), Some(ErrorCode::DatabaseBusy)];
        if unwritten.contains(&error.sqlite_error_code()) {
            return self.failed(error.into());
        }
        // It may have been written, and not have been synced.
        let cause = format!("a batch could not be committed: {error}");
        Setback::Broken(Broken::Poisoned(cause))
    }

    fn materialize(&mut self, frames: &[Frame]) -> Result<(), Setback> {
        self.database.make().map_err(|fault| self.failed(fault))?;
        if self.lock.is_none() {
            let lock = self.database.lock(&self.id).map_err(|fault| self.failed(fault))?;
            let owned = || WriteFailure::AlreadyOwned(AlreadyOwned { id: self.id.clone() });
            self.lock = Some(lock.ok_or_else(|| Setback::Failed(owned()))?);
        }
        let State::Pending(header) = &self.state else { return Ok(()) };
        let tail = self.transact(|transaction, store| {
            if sessions::find(transaction, &self.id)?.is_some() {
                let exists = AlreadyExists { id: self.id.clone() };
                return Ok(Err(Setback::Failed(WriteFailure::AlreadyExists(exists))));
            }
            transaction
                .prepare_cached("INSERT INTO sessions (id, header, stored_at) VALUES (?1, ?2, ?3)")?
                .execute(params![self.id.as_str(), header.to_line(), now()])?;
            let tail =
                Tail { store: store.to_owned(), session: transaction.last_insert_rowid(), next: 0 };
            insert(transaction, tail, frames).map(Ok)
        })?;
        self.state = State::Stored(tail);
        Ok(())
    }

    fn append(&mut self, frames: &[Frame]) -> Result<(), Setback> {
        let State::Stored(left) = &self.state else { return Ok(()) };
        let tail = self.transact(|transaction, store| {
            let found = sessions::find(transaction, &self.id)?.map(|session| Tail {
                store: store.to_owned(),
                session: session.key,
                next: session.events,
            });
            match found {
                Some(found) if found == *left => insert(transaction, found, frames).map(Ok),
                Some(found) if (&found.store, found.session) == (&left.store, left.session) => {
                    Ok(Err(lost(&format!(
                        "its log has {} events, where this handle left {}",
                        found.next, left.next
                    ))))
                }
                Some(_) => Ok(Err(lost("its log was replaced by another"))),
                None => Ok(Err(lost("its log was removed"))),
            }
        })?;
        self.state = State::Stored(tail);
        Ok(())
    }

    /// Runs some work as one change of the database, durable when this returns.
    fn transact<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>, &str) -> rusqlite::Result<Result<T, Setback>>,
    ) -> Result<T, Setback> {
        let _turn = self.database.turn();
        let lent = self.database.lend().map_err(|fault| self.failed(fault))?;
        let link = lent.ok_or_else(|| lost("its database was removed"))?;
        let (outcome, intact) = self.transact_on(&link, work);
        if !intact {
            link.discard();
        }
        outcome
    }

    /// As [`transact`](Self::transact), and whether the connection may be used again.
    fn transact_on<T>(
        &self,
        link: &Lent<'_>,
        work: impl FnOnce(&Transaction<'_>, &str) -> rusqlite::Result<Result<T, Setback>>,
    ) -> (Result<T, Setback>, bool) {
        let transaction = match link.begin() {
            Ok(transaction) => transaction,
            Err(error) => return (Err(self.failed(error.into())), false),
        };
        if let Err(fault) = schema::check_version(&transaction) {
            return (Err(self.failed(fault)), false);
        }
        match work(&transaction, link.store()) {
            // Dropping the transaction takes back what it did.
            Err(error) => (Err(self.failed(error.into())), false),
            Ok(Err(setback)) => (Err(setback), true),
            Ok(Ok(done)) => match transaction.commit() {
                Ok(()) => (Ok(done), true),
                Err(error) => (Err(self.uncommitted(error)), false),
            },
        }
    }
}

impl WriteLog for SqliteLog {
    type Acknowledged = ();
    type Batch = Vec<Frame>;

    fn encode(&self, events: &[Event]) -> Result<Vec<Frame>, NotSerializable> {
        let mut frames = Vec::new();
        let (mut start, mut length) = (0, 0);
        for (index, event) in events.iter().enumerate() {
            if length > 0 && length + event.text().len() > FRAME {
                frames.extend(self.frame(events.get(start..index).unwrap_or_default())?);
                (start, length) = (index, 0);
            }
            length += event.text().len();
        }
        frames.extend(self.frame(events.get(start..).unwrap_or_default())?);
        Ok(frames)
    }

    fn store(&mut self, batch: Option<Vec<Frame>>) -> Result<(), Setback> {
        match (&self.state, batch) {
            (State::Pending(_), batch) => self.materialize(&batch.unwrap_or_default()),
            (State::Stored(_), Some(frames)) => self.append(&frames),
            (State::Stored(_), None) => Ok(()),
        }
    }

    fn acknowledged(&self) -> Option<()> {
        matches!(self.state, State::Stored(_)).then_some(())
    }

    fn max_batch_bytes(&self) -> u64 {
        // Rows are made as they fit; what must fit is one event, however badly it compresses.
        self.max_frame_bytes.min(LONGEST as u64 - (LONGEST as u64 >> 7))
    }
}

fn insert(transaction: &Transaction<'_>, tail: Tail, frames: &[Frame]) -> rusqlite::Result<Tail> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO frames (session, seq, events, stored_at, frame) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut next = tail.next;
    for Frame { seq, events, bytes } in frames {
        insert.execute(params![tail.session, column(*seq), column(*events), now(), bytes])?;
        next = seq + events;
    }
    Ok(Tail { next, ..tail })
}

fn lost(evidence: &str) -> Setback {
    Setback::Broken(Broken::Lost(format!("{evidence}; nothing was written")))
}
