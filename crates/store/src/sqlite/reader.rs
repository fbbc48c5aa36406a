//! Reading a log.

use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, Rows, params};
use turnkeep_log::{Seq, SessionId, Text, Vocabulary};

use super::{
    database::Database,
    fault::Fault,
    sessions::{self, count},
};
use crate::{
    error::IoFailure,
    jsonl::frames::{DecodeError, Decoder, FrameScan, scan_frame},
    seam::{Cancel, EventRange},
    shell::{
        ReadLog, Slice, check,
        failure::{LogFailure, StoredLog},
        intake::Intake,
        locked,
    },
};

/// Reads one log for one handle.
#[derive(Debug)]
pub(super) struct SqliteReader {
    database: Arc<Database>,
    vocabulary: Arc<Vocabulary>,
    max_frame_bytes: u64,
    /// What was read before and found to be in order.
    checked: Mutex<Option<Checked>>,
}

/// The beginning of a log, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Checked {
    store: String,
    session: i64,
    /// How many events, which end with a frame.
    events: u64,
}

impl SqliteReader {
    pub(super) fn new(
        database: Arc<Database>,
        vocabulary: Arc<Vocabulary>,
        max_frame_bytes: u64,
    ) -> Self {
        Self { database, vocabulary, max_frame_bytes, checked: Mutex::new(None) }
    }

    fn checked(&self, store: &str, session: i64) -> Option<u64> {
        let checked = locked(&self.checked).clone()?;
        (checked.store == store && checked.session == session).then_some(checked.events)
    }

    fn advance(&self, read: Checked) {
        let mut checked = locked(&self.checked);
        if checked.as_ref().is_none_or(|checked| {
            (&checked.store, checked.session) != (&read.store, read.session)
                || checked.events < read.events
        }) {
            *checked = Some(read);
        }
    }
}

impl ReadLog for SqliteReader {
    fn read(
        &self,
        id: &SessionId,
        range: EventRange,
        cancel: &Cancel,
    ) -> Result<Option<Slice>, LogFailure> {
        let cannot_read = |fault: Fault| fault.of(id, "read the database");
        let Some(link) = self.database.lend().map_err(cannot_read)? else { return Ok(None) };
        let snapshot = link.snapshot().map_err(|error| cannot_read(error.into()))?;
        let session = sessions::find(&snapshot, id).map_err(|error| cannot_read(error.into()))?;
        let Some(session) = session else { return Ok(None) };

        // Who asks for the whole log wants it checked, too.
        let known = self.checked(link.store(), session.key).filter(|_| range != EventRange::ALL);
        let known = known.unwrap_or(0).min(session.events);
        let wanted_end = range.length.map(|length| range.offset.saturating_add(length));
        let pass = Pass {
            log: StoredLog { id, path: None },
            session: session.key,
            // What was checked need not be read again, only what is wanted of it.
            from: range.offset.min(known),
            to: wanted_end.filter(|end| *end <= known).unwrap_or(session.events),
            cancel,
            decoder: Decoder::new(self.max_frame_bytes)
                .map_err(|error| cannot_read(Fault::Io(error)))?,
            max_frame_bytes: self.max_frame_bytes,
        };
        let intake =
            pass.run(&snapshot, |first| Intake::new(id, &self.vocabulary, range, first))?;
        if intake.records.next_seq().0 >= session.events {
            let store = link.store().to_owned();
            self.advance(Checked { store, session: session.key, events: session.events });
        }
        Ok(Some(Slice { events: intake.events, end: Some(session.events) }))
    }
}

/// One reading of a log, from the frame that holds one event to the frame before another.
struct Pass<'a> {
    log: StoredLog<'a>,
    session: i64,
    from: u64,
    to: u64,
    cancel: &'a Cancel,
    decoder: Decoder,
    max_frame_bytes: u64,
}

impl Pass<'_> {
    fn run<'i>(
        mut self,
        snapshot: &Connection,
        intake: impl FnOnce(Seq) -> Intake<'i>,
    ) -> Result<Intake<'i>, LogFailure> {
        let cannot_read =
            |log: StoredLog<'_>, error| Fault::Sqlite(error).of(log.id, "read the database");
        let start = frame_of(snapshot, self.session, self.from)
            .map_err(|error| cannot_read(self.log, error))?
            .unwrap_or(0);
        let mut intake = intake(Seq(start));
        let mut statement = snapshot
            .prepare_cached(
                "SELECT seq, events, frame FROM frames WHERE session = ?1 AND seq >= ?2 AND \
                 seq < ?3 ORDER BY seq",
            )
            .map_err(|error| cannot_read(self.log, error))?;
        let mut frames = statement
            .query(params![self.session, column(start), column(self.to)])
            .map_err(|error| cannot_read(self.log, error))?;
        while let Some((end, text)) = self.next(&mut frames)? {
            check(self.cancel, "read")?;
            intake.take(&text);
            if let Some(problem) = intake.records.problem() {
                return Err(self.log.records(problem));
            }
            let next = intake.records.next_seq();
            if next.0 != end {
                return Err(self.log.corrupt(&format!(
                    "a frame says that it ends before event {end}, and ends before event {next}"
                )));
            }
        }
        if intake.records.next_seq().0 < self.to {
            return Err(self.log.corrupt("the frames end before the log does"));
        }
        match &intake.refused {
            Some(refused) => Err(self.log.gate(refused)),
            None => Ok(intake),
        }
    }

    /// The next frame: the seq after it, and its records.
    fn next(&mut self, frames: &mut Rows<'_>) -> Result<Option<(u64, Text)>, LogFailure> {
        let log = self.log;
        let cannot_read = |error| Fault::Sqlite(error).of(log.id, "read the database");
        let Some(row) = frames.next().map_err(cannot_read)? else { return Ok(None) };
        let seq = count(row, 0).map_err(cannot_read)?;
        let events = count(row, 1).map_err(cannot_read)?;
        let bytes = row.get_ref(2).map_err(cannot_read)?;
        let bytes = bytes.as_blob().map_err(|error| cannot_read(error.into()))?;
        let text = match scan_frame(bytes) {
            FrameScan::Complete(frame) if frame.len == bytes.len() => {
                self.decoder.decode(bytes, frame)
            }
            _ => Err(DecodeError::Invalid("it is not exactly one frame")),
        };
        let text = text.map_err(|error| self.undecodable(seq, error))?;
        Ok(Some((seq.saturating_add(events), text)))
    }

    fn undecodable(&self, seq: u64, error: DecodeError) -> LogFailure {
        let id = self.log.id;
        match error {
            DecodeError::Invalid(problem) => {
                self.log.corrupt(&format!("the frame of event {seq} failed validation ({problem})"))
            }
            DecodeError::TooLarge => self.log.unsupported(format!(
                "session \"{id}\": the frame of event {seq} unpacks to more than {} bytes; \
                 raise `max_frame_bytes` to read it",
                self.max_frame_bytes
            )),
            DecodeError::NoMemory => {
                let context = format!("session \"{id}\": cannot unpack the frame of event {seq}");
                IoFailure { context, source: std::io::ErrorKind::OutOfMemory.into() }.into()
            }
        }
    }
}

/// The first event of the frame that holds an event; of the frame after the last one, when the
/// event is still to come.
fn frame_of(connection: &Connection, session: i64, event: u64) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached(
            "SELECT CASE WHEN seq + events > ?2 THEN seq ELSE seq + events END FROM frames WHERE \
             session = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![session, column(event)], |row| count(row, 0))
        .optional()
}

/// A seq as a column's value. No log has as many events as would not fit.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
