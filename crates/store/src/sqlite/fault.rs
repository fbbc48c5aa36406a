//! What goes wrong with a database, before it is about a session.

use std::{fmt, io};

use rusqlite::ErrorCode;
use turnkeep_log::SessionId;

use crate::{
    error::IoFailure,
    shell::failure::{LogFailure, StoredLog},
};

/// Why a database could not be used.
#[derive(Debug)]
pub(super) enum Fault {
    /// SQLite says so.
    Sqlite(rusqlite::Error),
    /// The system says so.
    Io(io::Error),
    /// It is not one of ours, or not safe to use; and what to do.
    Refused(String),
}

impl Fault {
    /// What it means to an operation that is not about one session.
    pub(super) fn io(self, doing: &str) -> IoFailure {
        let source = match self {
            Self::Sqlite(error) => io::Error::other(error),
            Self::Io(error) => error,
            Self::Refused(problem) => io::Error::other(problem),
        };
        IoFailure { context: format!("cannot {doing}"), source }
    }

    /// What it means to an operation on one session.
    pub(super) fn of(self, id: &SessionId, doing: &str) -> LogFailure {
        match &self {
            Self::Sqlite(error) if is_damage(error) => {
                StoredLog { id, path: None }.corrupt(&format!("the database is damaged: {error}"))
            }
            _ => {
                let IoFailure { context, source } = self.io(doing);
                IoFailure { context: format!("session \"{id}\": {context}"), source }.into()
            }
        }
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Refused(problem) => f.write_str(problem),
        }
    }
}
