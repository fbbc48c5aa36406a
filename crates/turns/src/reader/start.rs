//! What a client's token says about where to start.

use crate::{
    cursor::{self, MAX_CURSOR_UNITS, Position, Token},
    error::TurnPageError,
    page::SourceKind,
};

/// Where the reading starts; by default at the newest row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    /// The source cursor to ask with first.
    pub(crate) before: Option<String>,
    /// The row that the client has already; nothing newer than it is wanted.
    pub(crate) boundary: Option<String>,
    /// Whether that row has to be found first, since the source cursor does not stand for it.
    pub(crate) seeking: bool,
    /// The client's token itself, which a source may not give for a cursor of its own.
    pub(crate) token: Option<String>,
}

impl Start {
    /// Where a turn page's cursor says.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::InvalidCursor`], as described at [`crate::scan::TurnScan::new`].
    pub(crate) fn at(text: &str, kind: SourceKind) -> Result<Self, TurnPageError> {
        if text.encode_utf16().count() > MAX_CURSOR_UNITS {
            return Err(TurnPageError::InvalidCursor);
        }
        let start = if Token::is_one(text) {
            let token = Token::decode(text).ok_or(TurnPageError::InvalidCursor)?;
            Self::below(token.before, Some(token.boundary), kind)?
        } else {
            Self::below(Some(text.to_owned()), None, kind)?
        };
        Ok(Self { token: Some(text.to_owned()), ..start })
    }

    /// At a source cursor, below a row that the client has. A cursor that names this very row is
    /// taken to stand for it; with any other the row is looked for.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::InvalidCursor`] when the source is a log and the cursor is none of a log.
    pub(crate) fn below(
        before: Option<String>,
        boundary: Option<String>,
        kind: SourceKind,
    ) -> Result<Self, TurnPageError> {
        let (before, stands_for_row) = match (before, kind) {
            (None, _) => (None, false),
            (Some(before), SourceKind::Log) => (Some(log_cursor(&before)?), true),
            (Some(before), SourceKind::OpenCode) => {
                let named = Position::decode(&before).map(|row| row.id);
                (Some(before), named == boundary)
            }
        };
        let seeking = boundary.is_some() && !stands_for_row;
        Ok(Self { before, boundary, seeking, token: None })
    }
}

fn log_cursor(text: &str) -> Result<String, TurnPageError> {
    cursor::decode_seq(text).map(cursor::encode_seq).ok_or(TurnPageError::InvalidCursor)
}
