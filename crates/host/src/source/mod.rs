//! Where the rows of a turn page come from.
//!
//! A [`Source`] is one session somewhere: in the store ([`log`]) or behind an OpenCode
//! server ([`opencode`]). Either answers one request for rows at a time, where what to ask for
//! is the scan's business, and for one message by its id.

mod folds;
mod log;
mod opencode;

use std::fmt::Debug;

use async_trait::async_trait;
use turnkeep_log::Text;
use turnkeep_turns::{Answer, MessageError, PageRequest, SourceKind, TurnPageError};

pub(crate) use folds::{FoldLimits, Glimpse};
pub(crate) use log::{LogError, LogSource};
pub(crate) use opencode::OpenCodeSession;

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
    async fn page(&self, request: &PageRequest) -> Result<Answer, TurnPageError>;

    /// Asks for one message whole: the JSON text of it, which need not be a message yet.
    ///
    /// # Errors
    ///
    /// There is no such message or no such session, or the source fails.
    async fn message(&self, id: &str) -> Result<Text, MessageError>;
}

/// A fixed name for logs and listings.
pub(crate) fn label(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::OpenCode => "upstream",
        SourceKind::Log => "store",
    }
}
