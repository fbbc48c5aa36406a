//! The images that logs refer to, in the directory where their writer keeps them.
//!
//! A log holds references only. DSH keeps the bytes below its home, next to the sessions, each under
//! the digest that is its name:
//!
//! ```text
//! attachments/v1/objects/<first two digits>/<sha256>     for the id sha256:<sha256>
//! ```
//!
//! Any other arrangement will do whose files are called like the ids, with or without the ending of
//! their media type: `<id>`, `<id>.png`, `<id>.jpg` or `<id>.jpeg`, `<id>.webp`, `<id>.gif`. That
//! is also what the `media/` of an export holds.
//!
//! An id is what somebody wrote into a log. It is never taken for a path: what could lead out of the
//! directory names nothing, and no link is followed below it.

mod below;

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use turnkeep_log::json::{Json, JsonStr};

/// Longer ids than this are no file names.
const MAX_ID_BYTES: usize = 200;

/// The directory of the images that logs refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachments {
    directory: PathBuf,
}

/// What an image block says of the image it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentRef {
    /// The name of the image, as the log has it.
    pub id: String,
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// How many bytes it has, if the log says so.
    pub bytes: Option<u64>,
}

/// Why an image cannot be had.
#[derive(Debug, Error)]
pub enum AttachmentError {
    /// There is no such file.
    #[error("image \"{id}\" is not in the attachments directory")]
    Missing {
        /// The id in the log.
        id: String,
    },
    /// The file is not what the log refers to.
    #[error("image \"{id}\" is damaged: {problem}")]
    Damaged {
        /// The id in the log.
        id: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It is there and cannot be read.
    #[error("image \"{id}\" cannot be read: {source}")]
    Io {
        /// The id in the log.
        id: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl AttachmentError {
    /// Every kind there is.
    pub const KINDS: &[&str] = &["attachment_missing", "attachment_damaged", "io"];

    /// The stable word for what went wrong.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "attachment_missing",
            Self::Damaged { .. } => "attachment_damaged",
            Self::Io { .. } => "io",
        }
    }
}

impl AttachmentRef {
    /// Reads the `attachment` of an image block; `None` when it names nothing.
    ///
    /// What the log has in a place and is no text there counts as absent, but for the id. A lone
    /// surrogate becomes U+FFFD, with which no stored image is named.
    #[must_use]
    pub fn parse(attachment: Json<'_>) -> Option<Self> {
        let text = |key| attachment.get(key).and_then(Json::as_str).map(JsonStr::decode_lossy);
        Some(Self {
            id: text("attachmentId")?.into_owned(),
            media_type: text("mediaType").unwrap_or_default().into_owned(),
            bytes: attachment.get("bytes").and_then(Json::as_natural),
        })
    }

    /// The ending of a file of this media type: `png`, `jpg`, `webp` or `gif`; `bin` for any other.
    #[must_use]
    pub fn extension(&self) -> &'static str {
        self.extensions().first().copied().unwrap_or("bin")
    }

    fn extensions(&self) -> &'static [&'static str] {
        match self.media_type.strip_prefix("image/").unwrap_or(&self.media_type) {
            "png" => &["png"],
            "jpeg" | "jpg" => &["jpg", "jpeg"],
            "webp" => &["webp"],
            "gif" => &["gif"],
            _ => &[],
        }
    }

    /// The digest of the content that the id names, if it does.
    fn digest(&self) -> Option<&str> {
        let digest = self.id.strip_prefix("sha256:")?;
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digest.len() == 64 && digest.bytes().all(is_hex)).then_some(digest)
    }

    /// Whether the id can be the name of a file, on its own and in an archive.
    fn is_file_name(&self) -> bool {
        let id = self.id.as_str();
        let is_plain = |char: char| !char.is_control() && !['/', '\\', '\u{fffd}'].contains(&char);
        !id.is_empty()
            && id.len() <= MAX_ID_BYTES
            && !id.starts_with('.')
            && id.chars().all(is_plain)
    }
}

impl Attachments {
    /// The images in this directory, which need not exist yet.
    #[must_use]
    pub fn at(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The directory where DSH keeps the images of the sessions below this root, if it is there.
    #[must_use]
    pub fn beside(sessions: &Path) -> Option<PathBuf> {
        // Not `..`, which leads elsewhere when the root is a link.
        let sessions = std::path::absolute(sessions).ok()?;
        let directory = sessions.parent()?.join("attachments");
        directory.is_dir().then_some(directory)
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Opens an image. This blocks.
    ///
    /// # Errors
    ///
    /// There is no such file, or it has another length than the log says.
    pub fn open(&self, image: &AttachmentRef) -> Result<StoredAttachment, AttachmentError> {
        let id = || image.id.clone();
        let failed = |source| AttachmentError::Io { id: id(), source };
        let file = self.find(image).map_err(failed)?;
        let file = file.ok_or_else(|| AttachmentError::Missing { id: id() })?;
        let length = file.metadata().map_err(failed)?.len();
        if image.bytes.is_some_and(|bytes| bytes != length) {
            let problem = "it has another length than the session says";
            return Err(AttachmentError::Damaged { id: id(), problem });
        }
        let digest = image.digest().map(|digest| (Sha256::new(), digest.to_owned()));
        Ok(StoredAttachment { id: id(), file, length, left: length, digest })
    }

    fn find(&self, image: &AttachmentRef) -> io::Result<Option<File>> {
        if !image.is_file_name() {
            return Ok(None);
        }
        if let Some(digest) = image.digest() {
            let bucket = digest.get(..2).unwrap_or_default();
            // The setting may name the home of all versions, or of the one.
            for path in [&["v1", "objects", bucket, digest][..], &["objects", bucket, digest]] {
                if let Some(file) = below::open(&self.directory, path)? {
                    return Ok(Some(file));
                }
            }
        }
        let endings = image.extensions().iter().map(|ending| format!("{}.{ending}", image.id));
        for name in std::iter::once(image.id.clone()).chain(endings) {
            if let Some(file) = below::open(&self.directory, &[&name])? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }
}

/// An image, open to be read from its beginning to its end.
#[derive(Debug)]
pub struct StoredAttachment {
    id: String,
    file: File,
    length: u64,
    left: u64,
    /// What was read so far, and the digest it must have in the end.
    digest: Option<(Sha256, String)>,
}

impl StoredAttachment {
    /// How many bytes it has.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads on, `buffer` full at most; 0 at the end, and only when all of it was as it must be.
    /// This blocks.
    ///
    /// # Errors
    ///
    /// The file got shorter or longer meanwhile, or is not what the digest in its id stands for.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, AttachmentError> {
        let read = loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(AttachmentError::Io { id: self.id.clone(), source }),
                Ok(read) => break read,
            }
        };
        if read == 0 && self.left > 0 {
            return Err(self.damaged("it got shorter while it was read"));
        }
        let Some(left) = self.left.checked_sub(read as u64) else {
            return Err(self.damaged("it got longer while it was read"));
        };
        self.left = left;
        if let Some((hasher, _)) = &mut self.digest {
            hasher.update(buffer.get(..read).unwrap_or_default());
        }
        if read == 0
            && let Some((hasher, expected)) = self.digest.take()
            && !hex(&hasher.finalize()).eq(&expected)
        {
            return Err(self.damaged("its content is not what its id stands for"));
        }
        Ok(read)
    }

    fn damaged(&self, problem: &'static str) -> AttachmentError {
        AttachmentError::Damaged { id: self.id.clone(), problem }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
