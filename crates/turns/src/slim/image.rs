//! The size of an image, read from its first bytes.

/// The longest prefix any format but JPEG needs.
const HEAD: usize = 30;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimensions {
    pub(super) width: u32,
    pub(super) height: u32,
}

/// The size of a PNG, GIF, JPEG or WebP image of `length` bytes, both sides at least 1.
///
/// Only the header is looked at, never a MIME type. Bytes are asked for in order and no further
/// than needed: for JPEG up to its frame header, which may lie behind large blocks of metadata.
pub(super) fn dimensions(
    length: usize,
    bytes: impl Iterator<Item = u8> + Clone,
) -> Option<Dimensions> {
    let mut head = [0; HEAD];
    let mut known = 0;
    for (slot, byte) in head.iter_mut().zip(bytes.clone()) {
        *slot = byte;
        known += 1;
    }
    let head = head.get(..known)?;
    let found = match head {
        [0x89, b'P', b'N', b'G', ..] => png(head),
        [b'G', b'I', b'F', ..] => gif(head),
        [0xFF, 0xD8, ..] => jpeg(length, bytes),
        _ if head.starts_with(b"RIFF") && tag(head, 8) == Some(b"WEBP") => webp(head),
        _ => None,
    };
    found.filter(|size| size.width > 0 && size.height > 0)
}

fn png(head: &[u8]) -> Option<Dimensions> {
    let side = |at| tag(head, at).map(|bytes| u32::from_be_bytes(*bytes));
    Some(Dimensions { width: side(16)?, height: side(20)? })
}

fn gif(head: &[u8]) -> Option<Dimensions> {
    Some(Dimensions { width: u16_le(head, 6)?, height: u16_le(head, 8)? })
}

fn webp(head: &[u8]) -> Option<Dimensions> {
    if head.len() < HEAD {
        return None;
    }
    let is_at =
        |at: usize, expected: &[u8]| head.get(at..).is_some_and(|h| h.starts_with(expected));
    match tag(head, 12)? {
        b"VP8X" => {
            let side = |at| Some(1 + (u16_le(head, at)? | u32::from(*head.get(at + 2)?) << 16));
            Some(Dimensions { width: side(24)?, height: side(27)? })
        }
        b"VP8 " if is_at(23, &[0x9D, 0x01, 0x2A]) => {
            let side = |at| u16_le(head, at).map(|side| side & 0x3FFF);
            Some(Dimensions { width: side(26)?, height: side(28)? })
        }
        b"VP8L" if is_at(20, &[0x2F]) => {
            let bits = u32::from_le_bytes(*tag(head, 21)?);
            Some(Dimensions { width: 1 + (bits & 0x3FFF), height: 1 + (bits >> 14 & 0x3FFF) })
        }
        _ => None,
    }
}

/// Follows the marker segments to the frame header.
fn jpeg(length: usize, mut bytes: impl Iterator<Item = u8>) -> Option<Dimensions> {
    let mut read = 0;
    let mut byte_at = move |at: usize| {
        let byte = bytes.nth(at.checked_sub(read)?)?;
        read = at + 1;
        Some(byte)
    };
    let mut at = 2;
    while at + 8 < length {
        if byte_at(at)? != 0xFF {
            return None;
        }
        let marker = byte_at(at + 1)?;
        if matches!(marker, 0x01 | 0xD0..=0xD9) {
            at += 2;
            continue;
        }
        let segment = u16::from_be_bytes([byte_at(at + 2)?, byte_at(at + 3)?]);
        if segment < 2 {
            return None;
        }
        if matches!(marker, 0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF) {
            let height = u16::from_be_bytes([byte_at(at + 5)?, byte_at(at + 6)?]);
            let width = u16::from_be_bytes([byte_at(at + 7)?, byte_at(at + 8)?]);
            return Some(Dimensions { width: width.into(), height: height.into() });
        }
        at += 2 + usize::from(segment);
    }
    None
}

fn tag(head: &[u8], at: usize) -> Option<&[u8; 4]> {
    head.get(at..)?.first_chunk()
}

fn u16_le(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes).into())
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
