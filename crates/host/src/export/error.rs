//! Why there is no archive.

use thiserror::Error;
use turnkeep_log::SessionId;
use turnkeep_store::{
    attachments::AttachmentError,
    error::{FlushError, ListError, OpenError, ReadError},
};

/// Why there is no archive, or why one broke off.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The session asked for cannot be opened.
    #[error(transparent)]
    Open(OpenError),
    /// A session that stems from it cannot be opened.
    #[error("a descendant of \"{root}\" cannot be exported: {source}")]
    Descendant {
        /// The session asked for.
        root: SessionId,
        /// The one that stems from it.
        session: SessionId,
        /// What is wrong with that one.
        #[source]
        source: OpenError,
    },
    /// What was published to a session cannot be stored.
    #[error(transparent)]
    Flush(#[from] FlushError),
    /// The sessions that stem from it cannot be looked for.
    #[error(transparent)]
    List(#[from] ListError),
    /// The events of a session cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An image that a session shows cannot be had.
    #[error(
        "session \"{session}\": {source}; set `attachments` to the directory that holds it, or use \
         `turnkeep events {session}`, which needs no images"
    )]
    Image {
        /// The session that shows it.
        session: SessionId,
        /// What is wrong.
        #[source]
        source: AttachmentError,
    },
    /// A session shows an image, and nobody has said where images are.
    #[error(
        "session \"{session}\" shows image \"{image}\", and there is no attachments directory; set \
         `attachments` to it, or use `turnkeep events {session}`, which needs no images"
    )]
    NoAttachments {
        /// The session that shows it.
        session: SessionId,
        /// The image's id in the log.
        image: String,
    },
    /// A session is another one by now than when it was checked.
    #[error("session \"{session}\" changed while it was exported; try again")]
    Changed {
        /// The session.
        session: SessionId,
    },
    /// The archive cannot be written, which no session is to blame for.
    #[error("the archive cannot be written: {0}; please report this")]
    Archive(#[from] std::io::Error),
}

impl ExportError {
    /// The kinds that only an export has.
    pub const KINDS: &[&str] =
        &["attachment_missing", "attachment_damaged", "no_attachments", "source_conflict"];

    /// The stable word for what went wrong, as in [`kinds`](crate::kinds).
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Open(error) | Self::Descendant { source: error, .. } => error.kind(),
            Self::Flush(error) => error.kind(),
            Self::List(error) => error.kind(),
            Self::Read(error) => error.kind(),
            Self::Image { source, .. } => source.kind(),
            Self::NoAttachments { .. } => "no_attachments",
            Self::Changed { .. } => "source_conflict",
            Self::Archive(_) => "internal",
        }
    }

    /// Whether it is the session asked for that does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Open(OpenError::NotFound(_)))
    }
}
