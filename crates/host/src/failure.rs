//! Failures as clients are told of them: a status and a small JSON object.

use serde_json::json;
use turnkeep_turns::{ChangesError, MessageError, ReconcileError, TurnPageError};

use crate::kinds;

/// A failure as a client is told of it.
///
/// Nothing in it came from the upstream or from a log: no content, no path, no token. Its text is
/// a sentence for a person at a terminal, its body what goes over the wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    kind: &'static str,
    status: u16,
    body: String,
    message: String,
}

impl Failure {
    /// The stable word for what went wrong, as in [`kinds`].
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body, `{"error":…}` with a `code` where clients expect one, as JSON text.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// A failure of this [kind](kinds), with the status and the text that the table has for it.
    pub(crate) fn of_kind(kind: &str) -> Self {
        let row = kinds::of(kind);
        Self::of_row(row, row.text)
    }

    /// The same with its kind as `code`.
    pub(crate) fn with_code(kind: &str) -> Self {
        let row = kinds::of(kind);
        let body = json!({ "error": row.text, "code": row.kind }).to_string();
        Self { body, ..Self::of_row(row, row.text) }
    }

    /// Nothing was shown that lets anyone in. The body is the one that clients of the other host
    /// show a login for.
    pub(crate) fn unauthenticated() -> Self {
        let row = kinds::of("unauthenticated");
        let body = json!({ "error": row.text, "locked": true }).to_string();
        Self { body, ..Self::of_row(row, row.text) }
    }

    /// The request is not what it must be.
    pub(crate) fn bad_request(text: &str) -> Self {
        Self::of_row(kinds::of("usage"), text)
    }

    /// The upstream takes no requests for now; clients know this body and ask again.
    pub(crate) fn restarting() -> Self {
        let row = kinds::of("restarting");
        let body = json!({ "error": row.text, "restarting": true }).to_string();
        Self { body, ..Self::of_row(row, row.text) }
    }

    /// There is nothing at this path.
    pub(crate) fn no_route(text: &str) -> Self {
        Self::of_row(kinds::of("no_route"), text)
    }

    fn of_row(row: &kinds::Kind, text: &str) -> Self {
        Self {
            kind: row.kind,
            status: row.status,
            body: json!({ "error": text }).to_string(),
            message: text.to_owned(),
        }
    }

    /// A session of the store cannot be read. Its id and the kind of the trouble are told; where
    /// the log is and what is in it are not.
    pub(crate) fn of_stored_session(kind: &str, session: &str) -> Self {
        if kind == "not_found" {
            return TurnPageError::SessionNotFound.into();
        }
        let row = kinds::of(kind);
        Self {
            kind: row.kind,
            status: row.status,
            body: json!({ "error": row.text, "code": row.kind, "session": session }).to_string(),
            // Of a damaged one the command line tells what to do, since it knows which store it is.
            message: match kind {
                "corrupt" => format!("session \"{session}\": {}", row.text),
                _ => format!(
                    "session \"{session}\": {}; `turnkeep events {session}` says where",
                    row.text
                ),
            },
        }
    }

    /// A session is there and cannot be exported. Which one it is and the kind of the trouble are
    /// told, and no more, with the one status that clients of the route know.
    pub(crate) fn of_export(kind: &str, session: &str) -> Self {
        let row = kinds::of(kind);
        let text = "the session cannot be exported";
        Self {
            kind: row.kind,
            status: 500,
            body: json!({ "error": text, "code": row.kind, "session": session }).to_string(),
            message: format!("session \"{session}\" cannot be exported: {}", row.text),
        }
    }

    /// A bug of ours.
    pub(crate) fn internal() -> Self {
        TurnPageError::Internal.into()
    }
}

macro_rules! told_as_they_are {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let (kind, status, body) = (error.kind(), error.status(), error.body());
                Self { kind, status, body, message: error.to_string() }
            }
        }
    )*};
}

told_as_they_are!(TurnPageError, MessageError, ReconcileError, ChangesError);
