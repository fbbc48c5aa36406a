//! What a client's cursor says about where to start.

use super::SourceKind;
use crate::{
    cursor::{self, MAX_CURSOR_UNITS, Position, Token},
    error::TurnPageError,
};

/// Where a scan starts.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// The source cursor to ask with first.
    pub(super) before: Option<String>,
    /// The row that the client has already; nothing newer than it is wanted.
    pub(super) boundary: Option<String>,
    /// Whether that row has to be found first, since the source cursor does not stand for it.
    pub(super) seeking: bool,
}

impl Start {
    /// # Errors
    ///
    /// [`TurnPageError::InvalidCursor`], as described at [`super::TurnScan::new`].
    pub(super) fn at(text: &str, kind: SourceKind) -> Result<Self, TurnPageError> {
        if text.encode_utf16().count() > MAX_CURSOR_UNITS {
            return Err(TurnPageError::InvalidCursor);
        }
        if !Token::is_one(text) {
            let before = match kind {
                SourceKind::OpenCode => text.to_owned(),
                SourceKind::Log => log_cursor(text)?,
            };
            return Ok(Self { before: Some(before), ..Self::default() });
        }
        let token = Token::decode(text).ok_or(TurnPageError::InvalidCursor)?;
        let (before, seeking) = match (token.before, kind) {
            (None, _) => (None, true),
            (Some(before), SourceKind::Log) => (Some(log_cursor(&before)?), false),
            (Some(before), SourceKind::OpenCode) => {
                let own = Position::decode(&before).is_some_and(|row| row.id == token.boundary);
                (Some(before), !own)
            }
        };
        Ok(Self { before, boundary: Some(token.boundary), seeking })
    }
}

fn log_cursor(text: &str) -> Result<String, TurnPageError> {
    cursor::decode_seq(text).map(cursor::encode_seq).ok_or(TurnPageError::InvalidCursor)
}
