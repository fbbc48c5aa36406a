//! Failures that are about a file.

use std::{io, path::Path};

use turnkeep_log::{GateError, HeaderError, SessionId, records::Problem};

use crate::{error::IoFailure, shell::failure::StoredLog};

pub(crate) use crate::shell::failure::{LogFailure, WriteFailure};

/// The log that a failure is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) path: &'a Path,
}

impl<'a> Subject<'a> {
    fn log(self) -> StoredLog<'a> {
        StoredLog { id: self.id, path: Some(self.path) }
    }

    /// What is stored cannot be decoded.
    pub(crate) fn corrupt(self, problem: &str) -> LogFailure {
        self.log().corrupt(problem)
    }

    /// What is stored may well make sense, to another build or with other settings.
    pub(crate) fn unsupported(self, message: String) -> LogFailure {
        self.log().unsupported(message)
    }

    pub(crate) fn header(self, error: &HeaderError) -> LogFailure {
        self.log().header(error)
    }

    pub(crate) fn gate(self, error: &GateError) -> LogFailure {
        self.log().gate(error)
    }

    pub(crate) fn records(self, problem: &Problem) -> LogFailure {
        self.log().records(problem)
    }

    /// The system refused to do something to the file.
    pub(crate) fn io(self, doing: &str, source: io::Error) -> LogFailure {
        LogFailure::Io(io_failure(self.id, doing, self.path, source))
    }
}

/// The system refused to do something, to a path, for a session.
pub(crate) fn io_failure(id: &SessionId, doing: &str, path: &Path, source: io::Error) -> IoFailure {
    IoFailure { context: format!("session \"{id}\": cannot {doing} {}", path.display()), source }
}
