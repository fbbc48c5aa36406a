//! A ZIP archive that is written to memory and taken from there, piece by piece.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use zip::{
    CompressionMethod, DateTime, ZipWriter,
    result::ZipError,
    write::{SimpleFileOptions, StreamWriter},
};

/// An entry of more bytes than this gets sizes of 64 bits. Its compressed form may be a little
/// longer than the limit of 32 allows.
const LARGE: u64 = 0xf000_0000;

/// How hard text is compressed, 0 to 9.
const TEXT_LEVEL: i64 = 6;

/// The same for images, which are compressed already.
const IMAGE_LEVEL: i64 = 1;

/// What an entry holds, which says how to compress it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Text,
    Image,
}

/// Writes an archive.
///
/// Only [`finish`](Self::finish) writes the directory without which no reader takes the bytes for an
/// archive. Dropped before, it leaves nothing behind that was not taken.
#[derive(Debug)]
pub(super) struct Packer {
    /// Until it is finished.
    zip: Option<ZipWriter<StreamWriter<Written>>>,
    written: Written,
}

impl Packer {
    pub(super) fn new() -> Self {
        let written = Written::default();
        Self { zip: Some(ZipWriter::new_stream(written.clone())), written }
    }

    /// Begins an entry of about so many bytes.
    pub(super) fn begin(&mut self, name: &str, content: Content, bytes: u64) -> io::Result<()> {
        let level = match content {
            Content::Text => TEXT_LEVEL,
            Content::Image => IMAGE_LEVEL,
        };
        // Always the same time, so that the same sessions make the same archive.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(level))
            .last_modified_time(DateTime::DEFAULT)
            .unix_permissions(0o600)
            .large_file(bytes > LARGE);
        self.zip()?.start_file(name, options).map_err(failed)
    }

    /// Goes on with the entry.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.zip()?.write_all(bytes)
    }

    /// Ends the archive.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let zip = self.zip.take().ok_or_else(finished)?;
        zip.finish().map(drop).map_err(failed)
    }

    /// What has been written since the last time.
    pub(super) fn take(&mut self) -> Vec<u8> {
        mem::take(&mut self.written.lock().bytes)
    }

    fn zip(&mut self) -> io::Result<&mut ZipWriter<StreamWriter<Written>>> {
        self.zip.as_mut().ok_or_else(finished)
    }
}

impl Drop for Packer {
    /// The writer ends its archive when it is dropped, which must not look like success to anyone.
    fn drop(&mut self) {
        self.written.lock().ignored = true;
    }
}

fn finished() -> io::Error {
    io::Error::other("the archive is finished")
}

fn failed(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// What was written and not yet taken.
#[derive(Clone, Debug, Default)]
struct Written(Arc<Mutex<Bytes>>);

#[derive(Debug, Default)]
struct Bytes {
    bytes: Vec<u8>,
    /// Nobody will take it any more.
    ignored: bool,
}

impl Written {
    fn lock(&self) -> MutexGuard<'_, Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.lock();
        if !written.ignored {
            written.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[path = "packer_tests.rs"]
mod tests;
