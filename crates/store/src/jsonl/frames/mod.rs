//! Zstandard frames: finding them, unpacking them, making them.

mod codec;
mod scan;

#[cfg(test)]
mod tests;

pub(crate) use codec::{DecodeError, Decoder, encode_frame, encode_hitched, text_of};
pub(crate) use scan::{CHECKSUM, Frame, FrameScan, MAGIC, scan_frame, scan_frame_within};
