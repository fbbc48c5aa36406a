use super::{Answer, TurnPageError, body};

/// Why a gap cannot be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ReconcileError {
    /// Both an anchor and a continuation were given, or neither.
    #[error("give either an anchor, to start a round, or a continuation, to go on with one")]
    AnchorOrContinuation,
    /// The anchor is longer than 512 UTF-16 units.
    #[error("the anchor is too long; ask with the id of the newest message known")]
    BadAnchor,
    /// The continuation is malformed, was signed with another key, has expired or was made for
    /// another request, its source refused it, or the row that it goes on below is gone.
    #[error(
        "the continuation is malformed or out of date; start again from the newest message known"
    )]
    InvalidContinuation,
    /// The rows cannot be had. Never [`TurnPageError::InvalidCursor`]: here that is an
    /// [`InvalidContinuation`](Self::InvalidContinuation).
    #[error(transparent)]
    Rows(TurnPageError),
}

impl From<TurnPageError> for ReconcileError {
    fn from(error: TurnPageError) -> Self {
        match error {
            TurnPageError::InvalidCursor => Self::InvalidContinuation,
            error => Self::Rows(error),
        }
    }
}

impl ReconcileError {
    /// The stable name of the error.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::AnchorOrContinuation => "anchor_or_continuation",
            Self::BadAnchor => "invalid_anchor",
            Self::InvalidContinuation => "invalid_continuation",
            Self::Rows(error) => error.kind(),
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

    fn answer(self) -> Answer {
        match self {
            Self::AnchorOrContinuation => {
                (400, "provide exactly one of anchor or continuation", None)
            }
            Self::BadAnchor => (400, "anchor is required and must be a non-empty message id", None),
            Self::InvalidContinuation => (400, "invalid continuation", None),
            Self::Rows(error) => error.answer(),
        }
    }
}
