use super::{Answer, TurnPageError, body};

/// Why there is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MessageError {
    /// The session id is empty or longer than 512 UTF-16 units.
    #[error("the session id is empty or too long; ask with the id as the session list has it")]
    BadSession,
    /// The message id is missing, empty or longer than 512 UTF-16 units.
    #[error("the message id is missing or too long; ask with the id as a turn page has it")]
    BadMessage,
    /// There is no such session.
    #[error("no such session; list the sessions again")]
    SessionNotFound,
    /// There is no such message in the session.
    #[error("no such message; read the turns around it again")]
    NotFound,
    /// The source failed, or what it sent makes no sense.
    #[error("the OpenCode server failed or sent no message; see its log and ours, and try again")]
    Upstream,
    /// The source is not there, or not yet.
    #[error("the OpenCode server does not answer; try again when it is up")]
    Unavailable,
    /// The time that a request has ran out.
    #[error("the OpenCode server took too long; try again")]
    TimedOut,
    /// A bug on this side.
    #[error("a message was read wrongly; please report this")]
    Internal,
}

impl From<TurnPageError> for MessageError {
    /// What it means that the rows of the session cannot be read on.
    fn from(error: TurnPageError) -> Self {
        match error {
            TurnPageError::SessionNotFound => Self::SessionNotFound,
            TurnPageError::Unavailable => Self::Unavailable,
            TurnPageError::TimedOut => Self::TimedOut,
            TurnPageError::Internal => Self::Internal,
            _ => Self::Upstream,
        }
    }
}

impl MessageError {
    /// The stable name of the error.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::BadSession => "invalid_session",
            Self::BadMessage => "invalid_message",
            Self::SessionNotFound => "session_not_found",
            Self::NotFound => "message_not_found",
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

    /// The exact JSON body of the answer.
    #[must_use]
    pub fn body(self) -> String {
        let (_, error, code) = self.answer();
        body(error, code)
    }

    pub(super) fn answer(self) -> Answer {
        let kind = Some(self.kind());
        match self {
            Self::BadSession => (400, "sessionID is required", kind),
            Self::BadMessage => (400, "messageID is required", kind),
            Self::SessionNotFound => (404, "session not found", kind),
            Self::NotFound => (404, "not found", Some("not_found")),
            Self::Upstream => (502, "upstream", None),
            Self::Unavailable => (503, "upstream unavailable", None),
            Self::TimedOut => (504, "upstream timeout", None),
            Self::Internal => (500, "internal error", None),
        }
    }
}
