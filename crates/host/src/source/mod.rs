//! Where the rows of a turn page come from.
//!
//! A [`Source`] is one session somewhere: in the store ([`log`]) or behind an OpenCode
//! server ([`opencode`]). Either answers one request for rows at a time, where what to ask for
//! is the scan's business, and for one message by its id.

mod flights;
mod folds;
mod log;
mod opencode;

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use turnkeep_log::Text;
use turnkeep_turns::{Answer, MessageError, PageRequest, SourceKind, TurnPageError};

use crate::upstream::Room;

pub(crate) use folds::{FoldLimits, Glimpse};
pub(crate) use log::{LogError, LogSession, LogSource, RecordPage};
pub(crate) use opencode::OpenCodeSource;

/// An answer, and what it costs to hold it.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) answer: Answer,
    /// How many bytes there are to look through.
    pub(crate) bytes: usize,
    /// To be dropped after the answer.
    pub(crate) room: Option<Arc<Room>>,
}

impl From<Answer> for Fetched {
    /// An answer of a few bytes.
    fn from(answer: Answer) -> Self {
        Self { answer, bytes: 0, room: None }
    }
}

/// A JSON text that is read whole.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    pub(crate) text: Text,
    /// To be dropped after the text.
    pub(crate) room: Option<Arc<Room>>,
}

/// One session, as rows to be read in pages.
#[async_trait]
pub(crate) trait Source: Debug + Send + Sync {
    /// Which order and which cursors the rows have.
    fn kind(&self) -> SourceKind;

    /// Asks for one page.
    ///
    /// There is no deadline here: whoever asks stops waiting, which drops whatever was under way.
    ///
    /// # Errors
    ///
    /// Only for rows that no scan could go on from; every other outcome is an [`Answer`].
    async fn page(&self, request: &PageRequest) -> Result<Fetched, TurnPageError>;

    /// Asks for one message whole: the JSON text of it, which need not be a message yet. `None`
    /// when the source has the message and cannot send it by itself; a page may hold it.
    ///
    /// # Errors
    ///
    /// There is no such message or no such session, which not every source tells apart, or the
    /// source fails.
    async fn message(&self, id: &str) -> Result<Option<Whole>, MessageError>;

    /// Asks for the diffs of the files that one message changed: the JSON text of them, an array
    /// if all is well. A message that is not there changed none.
    ///
    /// # Errors
    ///
    /// There is no such session, or the source fails.
    async fn diffs(&self, message: &str) -> Result<Whole, MessageError>;
}

/// A fixed name for logs and listings.
pub(crate) fn label(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::OpenCode => "upstream",
        SourceKind::Log => "store",
    }
}
