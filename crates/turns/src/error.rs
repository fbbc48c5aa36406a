//! What can go wrong, and what a client is told about it: one enum per operation.
//!
//! Each has the same three ways out: `kind`, a stable name; `status`, the HTTP status; `body`, the
//! exact JSON that goes with it, `{"error":…}` with a `code` where clients expect one. The texts
//! are what existing clients look for, and nothing that came from a source or from the client is
//! ever repeated in them.

mod changes;
mod message;
mod reconcile;

#[cfg(test)]
mod tests;

use turnkeep_log::json::write_str;

pub use self::{changes::ChangesError, message::MessageError, reconcile::ReconcileError};

/// Status, text, and code if there is one.
type Answer = (u16, &'static str, Option<&'static str>);

/// Why there is no turn page.
///
/// All that reads the rows of a session can fail in these ways, so this is the error of
/// [`crate::page`] as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TurnPageError {
    /// The session id is empty or longer than 512 UTF-16 units.
    #[error("the session id is empty or too long, ask with the id as the session list has it")]
    BadSession,
    /// `turns` is not an integer from 1 to 10.
    #[error("`turns` must be a whole number from 1 to 10; the default is 3")]
    BadTurns,
    /// `scanLimit` is not an integer from 10 to 200.
    #[error("`scanLimit` must be a whole number from 10 to 200; the default is 100")]
    BadScanLimit,
    /// The cursor is malformed or oversized, the source refused it, or what it points to is gone.
    #[error("the cursor is malformed or out of date; ask again without it for the newest turns")]
    InvalidCursor,
    /// There is no such session.
    #[error("no such session; list the sessions again")]
    SessionNotFound,
    /// More pages would have to be read than one request may.
    #[error("too many pages to scan for one turn page, ask for fewer turns or a larger scan limit")]
    MaxScanPages,
    /// More rows would have to be read than one request may.
    #[error("too many messages to scan for one turn page, ask for fewer turns")]
    MaxScanMessages,
    /// The source sent a cursor that it had been asked with before: reading on would not end.
    #[error("the source repeats a cursor, try again later")]
    DuplicateCursor,
    /// The source sent no row and yet says that there are more.
    #[error("the source sent an empty page that has a cursor, try again later")]
    EmptyPageWithCursor,
    /// The source sent a row without an id.
    #[error("the source sent a row without an id, see what is wrong with the session there")]
    MissingId,
    /// The source failed, or what it sent makes no sense.
    #[error(
        "the OpenCode server failed, refused the login, or sent no page; see its log and ours, and try again"
    )]
    Upstream,
    /// The source is not there, or not yet.
    #[error("the OpenCode server does not answer; try again when it is up")]
    Unavailable,
    /// The time that a request has ran out.
    #[error("the OpenCode server took too long; try again")]
    TimedOut,
    /// The scan was driven wrongly: a bug on this side.
    #[error("a turn scan was fed or ended out of order, please report this")]
    Internal,
}

impl TurnPageError {
    /// The stable name of the error.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::BadSession => "bad_session",
            Self::BadTurns => "bad_turns",
            Self::BadScanLimit => "bad_scan_limit",
            Self::InvalidCursor => "invalid_cursor",
            Self::SessionNotFound => "session_not_found",
            Self::MaxScanPages => "max_scan_pages",
            Self::MaxScanMessages => "max_scan_messages",
            Self::DuplicateCursor => "duplicate_cursor",
            Self::EmptyPageWithCursor => "empty_page_with_cursor",
            Self::MissingId => "missing_id",
            Self::Upstream => "upstream",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
            Self::Internal => "internal",
        }
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn status(self) -> u16 {
        self.answer().0
    }

    /// The exact JSON body of the answer: `{"error":…}`, with a `code` where clients expect one.
    #[must_use]
    pub fn body(self) -> String {
        let (_, error, code) = self.answer();
        body(error, code)
    }

    /// Status, text, code.
    fn answer(self) -> Answer {
        let kind = Some(self.kind());
        match self {
            Self::BadSession => (400, "sessionID is required", None),
            Self::BadTurns => (400, "turns must be an integer between 1 and 10", None),
            Self::BadScanLimit => (400, "scanLimit must be an integer between 10 and 200", None),
            Self::InvalidCursor => (400, "invalid cursor", None),
            Self::SessionNotFound => (404, "session not found", kind),
            Self::MaxScanPages => (413, "scan page limit exceeded", kind),
            Self::MaxScanMessages => (413, "scan message limit exceeded", kind),
            Self::DuplicateCursor => (502, "duplicate cursor", None),
            Self::EmptyPageWithCursor => (502, "empty page with cursor", None),
            Self::MissingId => (502, "upstream record missing id", None),
            Self::Upstream => (502, "upstream", None),
            Self::Unavailable => (503, "upstream unavailable", None),
            Self::TimedOut => (504, "upstream timeout", None),
            Self::Internal => (500, "internal error", None),
        }
    }
}

/// The body of an error's answer.
fn body(error: &str, code: Option<&str>) -> String {
    let mut body = String::from(r#"{"error":"#);
    write_str(&mut body, error);
    if let Some(code) = code {
        body.push_str(r#","code":"#);
        write_str(&mut body, code);
    }
    body.push('}');
    body
}
