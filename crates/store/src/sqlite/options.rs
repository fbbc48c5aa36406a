//! What a store is opened with.

use std::{path::PathBuf, time::Duration};

use turnkeep_log::Vocabulary;

use crate::LiveOptions;

/// How a [`SqliteStore`](super::SqliteStore) is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The database. Need not exist: it is made with the first session, and so are the directories
    /// above it. A relative path is resolved once, when the store is opened.
    pub path: PathBuf,
    /// How long an operation waits while another process writes to the database.
    pub busy_timeout: Duration,
    /// How many bytes a frame may unpack to. Larger ones are refused when read and not written:
    /// a few kilobytes can stand for gigabytes.
    pub max_frame_bytes: u64,
    /// The event types that reading accepts.
    pub vocabulary: Vocabulary,
    /// Whether runs of streamed deltas are written as one record. Reading does not depend on it.
    pub pack_chunks: bool,
    /// How events that are published to the store are buffered.
    pub live: LiveOptions,
}

impl SqliteOptions {
    /// A store in this database, all else as it is by default: waiting for 5 seconds, frames of up
    /// to 1 GiB, the event types of format v0, packing on.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            busy_timeout: Duration::from_secs(5),
            max_frame_bytes: 1 << 30,
            vocabulary: Vocabulary::v0(),
            pack_chunks: true,
            live: LiveOptions::default(),
        }
    }
}
