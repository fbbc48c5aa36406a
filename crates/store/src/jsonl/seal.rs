//! What a log ends with, remembered in a few numbers.

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;

use std::{fmt, io};

use xxhash_rust::xxh64::{Xxh64, xxh64};

use super::{
    frames::{CHECKSUM, Frame},
    fs::File,
    layout::Encoding,
};

/// How much is read at once when a seal is compared.
const STEP: u64 = 64 << 10;

/// Some bytes of a file, remembered by where they are and their hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    start: u64,
    length: u64,
    hash: u64,
}

impl Seal {
    /// Of these bytes, which begin at `start` of the file.
    pub(crate) fn of(start: u64, bytes: &[u8]) -> Self {
        Self { start, length: bytes.len() as u64, hash: xxh64(bytes, 0) }
    }

    /// Of a frame, the first of these bytes: of its checksum, if it has one.
    pub(crate) fn of_frame(start: u64, bytes: &[u8], frame: Frame) -> Self {
        let from = if frame.checksum { frame.len.saturating_sub(CHECKSUM) } else { 0 };
        let sealed = bytes.get(from..frame.len).unwrap_or_default();
        Self::of(start + from as u64, sealed)
    }

    /// Of the last of these lines, each ended by its line feed.
    pub(crate) fn of_last_line(start: u64, lines: &[u8]) -> Self {
        let before = lines.len().checked_sub(1).and_then(|last| lines.get(..last));
        let from = before.and_then(|before| memchr::memrchr(b'\n', before)).map_or(0, |at| at + 1);
        Self::of(start + from as u64, lines.get(from..).unwrap_or_default())
    }

    /// Of what a log of this encoding ends with, when its last bytes are these, as we write them.
    pub(crate) fn of_written(encoding: Encoding, start: u64, bytes: &[u8]) -> Self {
        match encoding {
            Encoding::None => Self::of_last_line(start, bytes),
            Encoding::Zstd => {
                let from = bytes.len().saturating_sub(CHECKSUM);
                Self::of(start + from as u64, bytes.get(from..).unwrap_or_default())
            }
        }
    }

    /// Whether the file still has these bytes there.
    pub(crate) fn holds(&self, file: &dyn File) -> io::Result<bool> {
        let end = self.start + self.length;
        let mut hash = Xxh64::new(0);
        let mut buffer = vec![0; usize::try_from(self.length.min(STEP)).unwrap_or_default()];
        let mut at = self.start;
        while at < end {
            let wanted = usize::try_from((end - at).min(STEP)).unwrap_or_default();
            let free = buffer.get_mut(..wanted).unwrap_or_default();
            let read = file.read_at(at, free)?;
            if read == 0 {
                return Ok(false);
            }
            hash.update(free.get(..read).unwrap_or_default());
            at += read as u64;
        }
        Ok(hash.digest() == self.hash)
    }
}

/// How a log ends: its last record, and what lies behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The last frame or line.
    pub(crate) record: Seal,
    /// The tail; of no bytes when there is none.
    pub(crate) tail: Seal,
}

impl Ending {
    /// Of a log without a tail.
    pub(crate) fn clean(record: Seal) -> Self {
        Self { record, tail: Seal::of(record.start + record.length, &[]) }
    }

    /// Whether the file still ends like this, as far as it does not have another size.
    pub(crate) fn holds(&self, file: &dyn File) -> io::Result<bool> {
        Ok(self.record.holds(file)? && self.tail.holds(file)?)
    }
}

/// A seal of bytes that come one after the other.
#[derive(Clone)]
pub(crate) struct RunningSeal {
    start: u64,
    length: u64,
    hash: Xxh64,
}

impl RunningSeal {
    /// Of no bytes yet, from here on.
    pub(crate) fn from(start: u64) -> Self {
        Self { start, length: 0, hash: Xxh64::new(0) }
    }

    /// Takes the next bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.hash.update(bytes);
    }

    /// Of all that came so far.
    pub(crate) fn seal(&self) -> Seal {
        Seal { start: self.start, length: self.length, hash: self.hash.digest() }
    }
}

impl fmt::Debug for RunningSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seal().fmt(f)
    }
}
