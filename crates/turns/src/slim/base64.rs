//! Base64 read as leniently as the clients that wrote it expect.
//!
//! Both alphabets may be mixed, any other character is skipped, and the first `=` ends the text.
//! What is left over at the end gives as many whole bytes as its bits hold. An attachment can be
//! megabytes of this, of which only the decoded length and the first bytes matter: the length is
//! counted without decoding, and bytes are decoded one by one as they are asked for.

use memchr::memchr2;
use turnkeep_log::json::{JsonStr, Units};

/// A base64 text inside a JSON string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base64<'a> {
    /// The escaped text; up to its end mark when it is clean.
    text: JsonStr<'a>,
    /// How many of its characters carry bits.
    sextets: usize,
    /// Whether every character does, so that each byte's place in the text is known.
    is_clean: bool,
}

impl<'a> Base64<'a> {
    pub(super) fn new(text: JsonStr<'a>) -> Self {
        let raw = text.raw();
        let end = memchr2(b'=', b'\\', raw.as_bytes()).unwrap_or(raw.len());
        let (body, rest) = raw.split_at_checked(end).unwrap_or((raw, ""));
        if rest.starts_with('\\') {
            return Self { text, sextets: Sextets::of(text).count(), is_clean: false };
        }
        let sextets = count_sextets(body.as_bytes());
        Self { text: JsonStr::from_raw(body), sextets, is_clean: sextets == body.len() }
    }

    /// How many bytes it decodes to.
    pub(super) fn byte_len(self) -> usize {
        self.sextets / 4 * 3 + self.sextets % 4 * 3 / 4
    }

    pub(super) fn bytes(self) -> Bytes<'a> {
        if self.is_clean {
            Bytes::Clean { text: self.text.raw().as_bytes(), at: 0 }
        } else {
            Bytes::Lenient { sextets: Sextets::of(self.text), bits: 0, held: 0 }
        }
    }
}

/// Decodes byte by byte. In clean text, skipping costs nothing.
#[derive(Clone, Debug)]
pub(super) enum Bytes<'a> {
    Clean {
        text: &'a [u8],
        /// The index of the next decoded byte.
        at: usize,
    },
    Lenient {
        sextets: Sextets<'a>,
        /// The bits read and not yet given out, lowest last.
        bits: u16,
        /// How many there are.
        held: u32,
    },
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        self.nth(0)
    }

    fn nth(&mut self, skip: usize) -> Option<u8> {
        match self {
            Self::Clean { text, at } => {
                let index = at.checked_add(skip)?;
                *at = index.checked_add(1)?;
                let place = index % 3;
                let first = (index / 3).checked_mul(4)? + place;
                let left = sextet(*text.get(first)?)? << (2 * place + 2);
                let right = sextet(*text.get(first + 1)?)? >> (4 - 2 * place);
                Some(left | right)
            }
            Self::Lenient { sextets, bits, held } => {
                let mut left = skip;
                loop {
                    while *held < 8 {
                        *bits = *bits << 6 | u16::from(sextets.next()?);
                        *held += 6;
                    }
                    *held -= 8;
                    let [_, byte] = (*bits >> *held).to_be_bytes();
                    if left == 0 {
                        return Some(byte);
                    }
                    left -= 1;
                }
            }
        }
    }
}

/// The values of the characters that carry bits.
#[derive(Clone, Debug)]
pub(super) struct Sextets<'a>(Units<'a>);

impl<'a> Sextets<'a> {
    fn of(text: JsonStr<'a>) -> Self {
        Self(text.units())
    }
}

impl Iterator for Sextets<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        loop {
            let unit = self.0.next()?;
            if unit == u16::from(b'=') {
                self.0 = JsonStr::from_raw("").units();
                return None;
            }
            if let Some(value) = u8::try_from(unit).ok().and_then(sextet) {
                return Some(value);
            }
        }
    }
}

/// The six bits a character stands for.
fn sextet(char: u8) -> Option<u8> {
    match char {
        b'A'..=b'Z' => Some(char - b'A'),
        b'a'..=b'z' => Some(char - b'a' + 26),
        b'0'..=b'9' => Some(char - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// How many bytes of a text are base64 characters.
///
/// Written without branches and summed in bytes, so that it compiles to vector instructions.
fn count_sextets(text: &[u8]) -> usize {
    let is_sextet = |byte: u8| {
        let is_letter = u8::from((byte & 0xDF).wrapping_sub(b'A') < 26);
        let is_digit = u8::from(byte.wrapping_sub(b'0') < 10);
        let is_plus_or_slash = u8::from(byte == b'+') | u8::from(byte == b'/');
        let is_dash_or_line = u8::from(byte == b'-') | u8::from(byte == b'_');
        is_letter | is_digit | is_plus_or_slash | is_dash_or_line
    };
    let count =
        |chunk: &[u8]| chunk.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(is_sextet(byte)));
    text.chunks(usize::from(u8::MAX)).map(|chunk| usize::from(count(chunk))).sum()
}

#[cfg(test)]
#[path = "base64_tests.rs"]
mod tests;
