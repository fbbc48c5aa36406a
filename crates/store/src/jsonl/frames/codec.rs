//! Packing and unpacking one frame.

use std::{cell::RefCell, io};

use turnkeep_log::Text;
use zstd_safe::{
    CCtx, CParameter, DCtx, InBuffer, OutBuffer, get_error_name, is_error_kind,
    zstd_sys::ZSTD_ErrorCode,
};

use super::{Frame, scan::HITCH};

/// The compression level: the one that existing writers use.
const LEVEL: i32 = 3;

/// How long the header of our frames is: the magic, the descriptor and the window descriptor.
const HEADER: usize = 6;

/// How much of a frame is unpacked at a time when only its beginning may be there.
const STEP: usize = 128 << 10;

thread_local! {
    /// One compressor a thread: making one costs more than packing a small batch.
    static ENCODER: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// Packs a text into one frame: level 3, with a checksum, without its size.
///
/// # Errors
///
/// Only memory can be missing.
pub(crate) fn encode_frame(text: &str) -> io::Result<Vec<u8>> {
    ENCODER.with_borrow_mut(|slot| {
        let encoder = match slot {
            Some(encoder) => encoder,
            None => slot.insert(encoder().map_err(io::Error::other)?),
        };
        let mut frame = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
        encoder
            .compress2(&mut frame, text.as_bytes())
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        Ok(frame)
    })
}

/// The same, into a frame that says it goes behind bytes that are not synced yet.
///
/// # Errors
///
/// Only memory can be missing.
pub(crate) fn encode_hitched(text: &str) -> io::Result<Vec<u8>> {
    let mut frame = encode_frame(text)?;
    frame.splice(HEADER..HEADER, HITCH);
    Ok(frame)
}

fn encoder() -> Result<CCtx<'static>, &'static str> {
    let mut encoder = CCtx::try_create().ok_or("no memory for a compressor")?;
    for parameter in [
        CParameter::CompressionLevel(LEVEL),
        CParameter::ChecksumFlag(true),
        CParameter::ContentSizeFlag(false),
    ] {
        encoder.set_parameter(parameter).map_err(get_error_name)?;
    }
    Ok(encoder)
}

/// Why a complete frame could not be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// Its content is damaged, or it needs a dictionary.
    Invalid(&'static str),
    /// It unpacks to more than the limit.
    TooLarge,
    /// There is no memory for what it unpacks to.
    NoMemory,
}

/// Unpacks frames, one after the other.
pub(crate) struct Decoder {
    context: DCtx<'static>,
    unpacked: Vec<u8>,
    limit: usize,
}

impl Decoder {
    /// A decoder that refuses frames which unpack to more than `limit` bytes.
    ///
    /// # Errors
    ///
    /// Only memory can be missing.
    pub(crate) fn new(limit: u64) -> io::Result<Self> {
        let context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            context,
            unpacked: Vec::new(),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }

    /// The most that unpacking a complete frame can take, in bytes read and written.
    pub(crate) fn work(&self, frame: Frame) -> usize {
        frame.len.saturating_add(frame.unpacked.min(self.limit))
    }

    /// The text of a complete frame, its checksum verified. Bytes that are not UTF-8 are read as
    /// U+FFFD, as existing readers do.
    pub(crate) fn decode(&mut self, bytes: &[u8], frame: Frame) -> Result<Text, DecodeError> {
        let bytes = bytes.get(..frame.len).unwrap_or(bytes);
        self.unpacked.clear();
        self.unpacked
            .try_reserve_exact(frame.unpacked.min(self.limit))
            .map_err(|_| DecodeError::NoMemory)?;
        // The buffer may be larger than asked for; the limit is what was set all the same.
        let unpacked = self.context.decompress(&mut self.unpacked, bytes);
        match unpacked {
            Ok(length) if length > self.limit => Err(DecodeError::TooLarge),
            Ok(_) => Ok(text_of(&self.unpacked)),
            Err(code)
                if frame.unpacked > self.limit
                    && is_error_kind(code, ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall) =>
            {
                Err(DecodeError::TooLarge)
            }
            Err(code) => Err(DecodeError::Invalid(get_error_name(code))),
        }
    }

    /// What can be unpacked of the beginning of a frame, up to where it ends or breaks, or to the
    /// limit. Nothing vouches for it but what it says.
    pub(crate) fn unpack_part(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut unpacked = Vec::new();
        let mut output = vec![0; STEP];
        let mut input = InBuffer::around(bytes);
        if self.context.init().is_err() {
            return unpacked;
        }
        while unpacked.len() <= self.limit {
            let before = input.pos();
            let mut buffer = OutBuffer::around(output.as_mut_slice());
            let step = self.context.decompress_stream(&mut buffer, &mut input);
            let written = buffer.pos();
            unpacked.extend_from_slice(buffer.as_slice());
            match step {
                Ok(hint) if hint > 0 && (written > 0 || input.pos() > before) => {}
                _ => break,
            }
        }
        unpacked.truncate(self.limit);
        unpacked
    }

    /// Whether what can be unpacked of a broken frame holds a whole line.
    pub(crate) fn salvages_a_line(&mut self, bytes: &[u8]) -> bool {
        let mut output = vec![0; STEP];
        let mut input = InBuffer::around(bytes);
        let mut produced = 0;
        if self.context.init().is_err() {
            return false;
        }
        while produced <= self.limit {
            let before = input.pos();
            let mut buffer = OutBuffer::around(output.as_mut_slice());
            let step = self.context.decompress_stream(&mut buffer, &mut input);
            let written = buffer.pos();
            if buffer.as_slice().contains(&b'\n') {
                return true;
            }
            produced += written;
            match step {
                Ok(hint) if hint > 0 && (written > 0 || input.pos() > before) => {}
                _ => return false,
            }
        }
        false
    }
}

/// Bytes as text, with U+FFFD for what is not UTF-8.
pub(crate) fn text_of(bytes: &[u8]) -> Text {
    match std::str::from_utf8(bytes) {
        Ok(text) => Text::from(text),
        Err(_) => Text::from(String::from_utf8_lossy(bytes).into_owned()),
    }
}
