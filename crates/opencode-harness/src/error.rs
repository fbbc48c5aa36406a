//! What can go wrong before a test has its server.

use std::{fmt, io, path::PathBuf};

/// Why the server could not be started or did not do what was asked.
///
/// `Debug` prints the sentence too, since a test shows errors by unwrapping them.
#[derive(thiserror::Error)]
pub enum HarnessError {
    /// A program the harness runs is not on this machine.
    #[error("{program} was not found, run ./scripts/test (or ./scripts/setup) to install it")]
    NotInstalled {
        /// What was looked for: a path or a command's name.
        program: String,
    },
    /// A file or process operation of the harness itself failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, as it reads after "cannot".
        action: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A program ended with a failure, or did not become ready in time.
    #[error("{program} {problem}, its log ends with:\n{log}")]
    Failed {
        /// Which program.
        program: &'static str,
        /// What it did, as it reads after the program's name.
        problem: String,
        /// The last lines it printed.
        log: String,
    },
    /// No answer came: the connection failed or the time ran out.
    #[error("no answer to {request}: {source}")]
    NoAnswer {
        /// Method and path.
        request: String,
        /// The client's reason.
        source: reqwest::Error,
    },
    /// The server answered with a status other than 2xx, or a body that is not what it should be.
    #[error("{request} was answered with {status}: {body}")]
    Refused {
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The body as it came.
        body: String,
    },
    /// A turn did not end within two minutes.
    #[error("session {session} still runs a turn after two minutes, abort it or script less")]
    StillRunning {
        /// The session's id.
        session: String,
    },
    /// The server was killed and not started again.
    #[error("the server is not running, call restart first")]
    NotRunning,
    /// A path is not UTF-8, which the server's configuration cannot express.
    #[error("the path {} is not UTF-8, use another folder", .0.display())]
    PathNotUtf8(PathBuf),
}

impl fmt::Debug for HarnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl HarnessError {
    /// For `map_err`: wraps the system's reason with what was tried.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
}
