use crate::{
    cursor::MAX_CURSOR_UNITS,
    error::ReconcileError,
    query::{MAX_ID_UNITS, Param},
};

/// Where a request starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileStart {
    /// At the newest row, with a new round: the id of the newest message that the client is sure
    /// of.
    Anchor(String),
    /// Where the page before ended: the continuation that came with it.
    Continuation(String),
}

impl ReconcileStart {
    /// Reads the parameters `anchor` and `continuation`. Exactly one must be there, as a string
    /// with something in it; what is empty or repeated is as if it were absent.
    ///
    /// # Errors
    ///
    /// [`ReconcileError::AnchorOrContinuation`], then [`ReconcileError::BadAnchor`] for more than
    /// 512 UTF-16 units and [`ReconcileError::InvalidContinuation`] for more than 8192.
    pub fn parse(anchor: Param<'_>, continuation: Param<'_>) -> Result<Self, ReconcileError> {
        match (non_empty(anchor), non_empty(continuation)) {
            (Some(anchor), None) if anchor.encode_utf16().count() > MAX_ID_UNITS => {
                Err(ReconcileError::BadAnchor)
            }
            (Some(anchor), None) => Ok(Self::Anchor(anchor.to_owned())),
            (None, Some(text)) if text.encode_utf16().count() > MAX_CURSOR_UNITS => {
                Err(ReconcileError::InvalidContinuation)
            }
            (None, Some(text)) => Ok(Self::Continuation(text.to_owned())),
            (None, None) | (Some(_), Some(_)) => Err(ReconcileError::AnchorOrContinuation),
        }
    }
}

fn non_empty(param: Param<'_>) -> Option<&str> {
    match param {
        Param::One(text) if !text.is_empty() => Some(text),
        Param::One(_) | Param::Absent | Param::Repeated => None,
    }
}

/// A request for a page of a round, its parameters read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileRequest {
    /// The id of the session.
    pub session: String,
    /// The project directory as the client gave it.
    pub directory: Option<String>,
    /// Whether reasoning parts are sent.
    pub reasoning: bool,
    /// Where to start.
    pub start: ReconcileStart,
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
