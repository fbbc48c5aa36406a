//! The file that an index is in.

use std::io;

use super::{
    Head, Index,
    form::{self, MAX_BYTES, MAX_HEAD_BYTES},
};
use crate::jsonl::{
    bytes::FileBytes,
    fs::{File, Fs, OpenMode},
    layout::SessionDir,
    open_log::write_all,
};

/// How much is read at once: a head is mostly shorter, and a listing reads one a session.
const STEP: usize = 4 << 10;

/// The head of an index; `None` when there is none, or it cannot be read.
pub(super) fn head(fs: &dyn Fs, dir: &SessionDir) -> Option<Head> {
    let file = fs.open(&dir.index(), OpenMode::Read).ok()?;
    let mut bytes = FileBytes::new(&*file, MAX_HEAD_BYTES, STEP);
    let mut least = 1;
    loop {
        bytes.fill(0, least).ok()?;
        let held = bytes.held();
        if let Some(feed) = memchr::memchr(b'\n', held) {
            return form::head(std::str::from_utf8(held.get(..feed)?).ok()?);
        }
        if bytes.reaches_end() {
            return None;
        }
        least = held.len() + 1;
    }
}

/// All of an index; `None` when there is none, or it cannot be read.
pub(super) fn index(fs: &dyn Fs, dir: &SessionDir) -> Option<Index> {
    let file = fs.open(&dir.index(), OpenMode::Read).ok()?;
    let size = file.stat().ok()?.size;
    if size > MAX_BYTES {
        return None;
    }
    let mut bytes = FileBytes::new(&*file, size, STEP);
    bytes.fill_all(0).ok()?;
    form::parse(std::str::from_utf8(bytes.held()).ok()?)
}

/// An index that is being made.
pub(super) struct Draft<'a> {
    fs: &'a dyn Fs,
    dir: &'a SessionDir,
    file: Box<dyn File>,
}

impl<'a> Draft<'a> {
    /// Finds out whether an index can be made here at all.
    pub(super) fn begin(fs: &'a dyn Fs, dir: &'a SessionDir) -> io::Result<Self> {
        let path = dir.index_being_made();
        let open = || fs.open(&path, OpenMode::CreateNew);
        let file = match open() {
            // Someone was killed while making one, or is making one: then either is as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs.unlink(&path)?;
                open()?
            }
            file => file?,
        };
        Ok(Self { fs, dir, file })
    }

    /// Puts the index into its place. It is whole there or not at all, unless the power goes.
    pub(super) fn publish(&self, text: &str) -> io::Result<()> {
        write_all(&*self.file, text.as_bytes()).map_err(|torn| torn.source)?;
        self.fs.replace(&self.dir.index_being_made(), &self.dir.index())
    }

    /// Leaves nothing behind.
    pub(super) fn give_up(&self) {
        let _ = self.fs.unlink(&self.dir.index_being_made());
    }
}
