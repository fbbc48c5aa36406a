//! Failures of the synchronous core, before they become those of an operation.

use std::path::Path;

use turnkeep_log::{GateError, HeaderError, SessionHeader, SessionId, records::Problem};

use crate::error::{
    AlreadyExists, AlreadyOwned, AppendError, Cancelled, Corrupt, CreateError, DeleteError,
    FlushError, FormatUnsupported, IoFailure, OpenError, OwnershipLost, Poisoned, ReadError,
    RestoreError, SalvageError, StatError,
};

/// Why a log could not be found or read.
#[derive(Debug)]
pub(crate) enum LogFailure {
    FormatUnsupported(FormatUnsupported),
    Corrupt(Corrupt),
    Io(IoFailure),
    Cancelled(Cancelled),
}

/// Why a log could not be made or written to.
#[derive(Debug)]
pub(crate) enum WriteFailure {
    Log(LogFailure),
    AlreadyExists(AlreadyExists),
    AlreadyOwned(AlreadyOwned),
    OwnershipLost(OwnershipLost),
    Poisoned(Poisoned),
}

/// The stored log that a failure is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredLog<'a> {
    pub(crate) id: &'a SessionId,
    /// Its file, where it has one of its own.
    pub(crate) path: Option<&'a Path>,
}

impl StoredLog<'_> {
    /// What is stored cannot be decoded.
    pub(crate) fn corrupt(self, problem: &str) -> LogFailure {
        self.corrupt_as(format!("session \"{}\": stored log is corrupt: {problem}", self.id))
    }

    fn corrupt_as(self, message: String) -> LogFailure {
        LogFailure::Corrupt(Corrupt {
            id: self.id.clone(),
            message,
            path: self.path.map(Path::to_owned),
        })
    }

    /// What is stored may well make sense, to another build or with other settings.
    pub(crate) fn unsupported(self, message: String) -> LogFailure {
        LogFailure::FormatUnsupported(FormatUnsupported {
            id: self.id.clone(),
            message,
            path: self.path.map(Path::to_owned),
        })
    }

    pub(crate) fn header(self, error: &HeaderError) -> LogFailure {
        match error {
            HeaderError::Unsupported { .. } => self.unsupported(error.to_string()),
            HeaderError::Corrupt { .. } => self.corrupt(&error.to_string()),
        }
    }

    /// Reads the line that is stored as the header.
    pub(crate) fn parse_header(self, line: &str) -> Result<SessionHeader, LogFailure> {
        SessionHeader::parse(line, Some(self.id)).map_err(|error| self.header(&error))
    }

    pub(crate) fn gate(self, error: &GateError) -> LogFailure {
        match error {
            GateError::Unsupported { .. } => self.unsupported(error.to_string()),
            GateError::Corrupt { .. } => self.corrupt_as(error.to_string()),
        }
    }

    /// The records do not make a log, or more of one than can be read at once.
    pub(crate) fn records(self, problem: &Problem) -> LogFailure {
        match problem {
            Problem::TooLong { .. } => {
                self.unsupported(format!("session \"{}\": {problem}, by this build", self.id))
            }
            problem => self.corrupt(&problem.to_string()),
        }
    }
}

impl From<IoFailure> for LogFailure {
    fn from(failure: IoFailure) -> Self {
        Self::Io(failure)
    }
}

impl From<Cancelled> for LogFailure {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}

impl From<LogFailure> for WriteFailure {
    fn from(failure: LogFailure) -> Self {
        Self::Log(failure)
    }
}

impl From<IoFailure> for WriteFailure {
    fn from(failure: IoFailure) -> Self {
        Self::Log(LogFailure::Io(failure))
    }
}

/// Lets the failures of the core become those of an operation that can meet them all.
macro_rules! become_operations {
    ($from:ident [$($failure:ident),+] => $($operation:ident),+) => {
        become_operations!(@each $from [$($failure),+] $([$operation])+);
    };
    (@each $from:ident $failures:tt $([$operation:ident])+) => {
        $(become_operations!(@one $from $failures $operation);)+
    };
    (@one $from:ident [$($failure:ident),+] $operation:ident) => {
        impl From<$from> for $operation {
            fn from(failure: $from) -> Self {
                match failure {
                    $($from::$failure(failure) => failure.into(),)+
                }
            }
        }
    };
}

become_operations! {
    LogFailure [FormatUnsupported, Corrupt, Io, Cancelled]
    => CreateError, OpenError, StatError, ReadError, AppendError, FlushError, DeleteError,
       RestoreError, SalvageError
}

become_operations! {
    WriteFailure [Log, AlreadyExists, AlreadyOwned, OwnershipLost, Poisoned]
    => AppendError, FlushError
}
