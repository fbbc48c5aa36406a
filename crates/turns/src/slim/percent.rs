//! Percent-encoded text as UTF-8 bytes.

use std::char::{self, DecodeUtf16};

use turnkeep_log::json::{JsonStr, Units};

/// The bytes of a text once its percent escapes are decoded, as JavaScript's `decodeURIComponent`
/// decodes them. A lone surrogate counts as U+FFFD, the way UTF-8 encoders replace it.
///
/// Ends early where the escapes are malformed; [`Percent::byte_len`] tells.
#[derive(Clone, Debug)]
pub(super) struct Percent<'a> {
    chars: DecodeUtf16<Units<'a>>,
    /// Bytes of the character read last, the first `given` of them given out already.
    held: [u8; 4],
    held_len: usize,
    given: usize,
}

/// An escape that is cut short, or that is no piece of UTF-8.
struct Malformed;

impl<'a> Percent<'a> {
    pub(super) fn of(text: JsonStr<'a>) -> Self {
        let chars = char::decode_utf16(text.units());
        Self { chars, held: [0; 4], held_len: 0, given: 0 }
    }

    /// How many bytes there are; `None` when an escape is malformed.
    pub(super) fn byte_len(mut self) -> Option<usize> {
        let mut length = 0;
        while let Some(char) = self.next_char() {
            length += char.ok()?.len_utf8();
        }
        Some(length)
    }

    fn next_char(&mut self) -> Option<Result<char, Malformed>> {
        Some(match self.chars.next()? {
            Ok('%') => self.escaped_char().ok_or(Malformed),
            Ok(char) => Ok(char),
            Err(_lone) => Ok(char::REPLACEMENT_CHARACTER),
        })
    }

    /// The character whose first `%` has just been read.
    fn escaped_char(&mut self) -> Option<char> {
        let lead = self.escaped_byte()?;
        let length = match lead.leading_ones() {
            0 => 1,
            ones @ 2..=4 => ones as usize,
            _ => return None,
        };
        let mut bytes = [lead, 0, 0, 0];
        for byte in bytes.get_mut(1..length)? {
            if self.chars.next() != Some(Ok('%')) {
                return None;
            }
            *byte = self.escaped_byte()?;
        }
        std::str::from_utf8(bytes.get(..length)?).ok()?.chars().next()
    }

    fn escaped_byte(&mut self) -> Option<u8> {
        let mut digit = || self.chars.next()?.ok()?.to_digit(16);
        u8::try_from(digit()? * 16 + digit()?).ok()
    }
}

impl Iterator for Percent<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.given == self.held_len {
            let char = self.next_char()?.ok()?;
            self.held_len = char.encode_utf8(&mut self.held).len();
            self.given = 0;
        }
        let byte = self.held.get(self.given).copied();
        self.given += 1;
        byte
    }
}
