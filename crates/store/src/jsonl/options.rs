//! What a store is opened with.

use std::path::PathBuf;

use turnkeep_log::Vocabulary;

use super::layout::Encoding;
use crate::Durability;
use crate::LiveOptions;

/// How a [`JsonlStore`](super::JsonlStore) is opened.
///
/// ```
/// use turnkeep_store::jsonl::{Compression, JsonlOptions};
///
/// let options = JsonlOptions {
///     compression: Compression::None,
///     ..JsonlOptions::new("sessions")
/// };
/// assert!(options.pack_chunks);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonlOptions {
    /// The directory that holds everything. Need not exist: it is made with the first session. A
    /// relative path is resolved once, when the store is opened.
    pub root: PathBuf,
    /// How logs are encoded.
    pub compression: Compression,
    /// How many bytes a frame may unpack to. Larger ones are refused when read and not written:
    /// a few kilobytes can stand for gigabytes.
    pub max_frame_bytes: u64,
    /// The event types that reading accepts.
    pub vocabulary: Vocabulary,
    /// Whether runs of streamed deltas are written as one record. Reading does not depend on it.
    pub pack_chunks: bool,
    /// How events that are published to the store are buffered.
    pub live: LiveOptions,
    /// When an append is acknowledged.
    pub durability: Durability,
}

impl JsonlOptions {
    /// A store at this root, all else as it is by default: the encoding detected, frames of up to
    /// 1 GiB, the event types of format v0, packing on, every append on disk when it returns.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            compression: Compression::default(),
            max_frame_bytes: 1 << 30,
            vocabulary: Vocabulary::v0(),
            pack_chunks: true,
            live: LiveOptions::default(),
            durability: Durability::default(),
        }
    }
}

/// How the logs of a root are encoded. One root holds logs of one encoding; those of the other are
/// listed as foreign and not opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As the root has them: whatever the first log found is. Zstandard in a root without logs.
    #[default]
    Detect,
    /// As the root has them, and as plain text in a root without logs.
    DetectElseNone,
    /// Zstandard, whatever the root holds.
    Zstd,
    /// Plain text, whatever the root holds.
    None,
}

impl Compression {
    /// The encoding, when the root's logs are `found`.
    pub(super) fn resolve(self, found: Option<Encoding>) -> Encoding {
        match self {
            Self::Detect => found.unwrap_or(Encoding::Zstd),
            Self::DetectElseNone => found.unwrap_or(Encoding::None),
            Self::Zstd => Encoding::Zstd,
            Self::None => Encoding::None,
        }
    }

    /// Whether it depends on what the root holds.
    pub(super) fn detects(self) -> bool {
        matches!(self, Self::Detect | Self::DetectElseNone)
    }
}
