//! What the rows say of sessions without their logs.

use rusqlite::{Connection, OptionalExtension, Row, types::Type};
use turnkeep_log::{SessionHeader, SessionId};

use crate::seam::{Revision, SessionStat};

/// One session, and the end of its log.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) key: i64,
    pub(super) id: String,
    /// The first line of the log.
    pub(super) header: String,
    /// When a row of it was inserted last, in milliseconds since the epoch.
    pub(super) modified_at: i64,
    /// How many events it has: where its last frame ends.
    pub(super) events: u64,
}

/// The columns of a [`Session`]. Those in the trash have a `deleted_at`.
const SESSION: &str = "
    SELECT s.key, s.id, s.header, coalesce(f.stored_at, s.stored_at), coalesce(f.seq + f.events, 0)
    FROM sessions s LEFT JOIN frames f
    ON f.session = s.key AND f.seq = (SELECT max(seq) FROM frames WHERE session = s.key)";

impl Session {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(0)?,
            id: row.get(1)?,
            header: row.get(2)?,
            modified_at: row.get(3)?,
            events: count(row, 4)?,
        })
    }

    /// What is known of it, once its header has been read.
    pub(super) fn stat(&self, store: &str, header: SessionHeader) -> SessionStat {
        SessionStat {
            header,
            // Rows are only added, and keys are never used again.
            revision: Revision::new(format!("{store}:{}:{}", self.key, self.events)),
            event_count: Some(self.events),
            size_bytes: None,
            modified_at: Some(self.modified_at),
            hints: None,
        }
    }
}

/// A number that is never negative.
pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, Box::new(error))
    })
}

/// Finds a session.
pub(super) fn find(connection: &Connection, id: &SessionId) -> rusqlite::Result<Option<Session>> {
    connection
        .prepare_cached(&format!("{SESSION} WHERE s.id = ?1 AND s.deleted_at IS NULL"))?
        .query_row([id.as_str()], Session::of)
        .optional()
}

/// All sessions but those in the trash, in no order.
pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Session>> {
    connection
        .prepare_cached(&format!("{SESSION} WHERE s.deleted_at IS NULL"))?
        .query_map([], Session::of)?
        .collect()
}
