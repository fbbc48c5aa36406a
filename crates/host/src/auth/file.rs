//! Files that decide who gets in.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

/// More than any of these files needs.
const MAX_BYTES: u64 = 8 << 20;

/// What is on disk under a path, as far as it takes to notice that it is something else now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// `None` for a file that is not there.
    pub(super) fn of(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::from(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl From<&fs::Metadata> for Stamp {
    fn from(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A file as it was read, whatever is put in its place meanwhile.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) text: String,
    /// The permission bits.
    pub(super) mode: u32,
    pub(super) stamp: Stamp,
}

/// Reads a file. What is no file is not waited for: a pipe that nobody writes to would keep whoever
/// opens it for good.
pub(super) fn read(path: &Path) -> io::Result<Read> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(Read { text, mode: metadata.permissions().mode() & 0o7777, stamp: Stamp::from(&metadata) })
}
