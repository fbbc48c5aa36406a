//! Data URLs: how many bytes they carry, and the first of those bytes.

use memchr::memchr2;
use turnkeep_log::json::JsonStr;

use super::{
    base64::{self, Base64},
    percent::Percent,
    text::is_whitespace,
};

/// What a data URL carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum DataUrl<'a> {
    Base64(Base64<'a>),
    /// Text, percent-encoded; all of it can be decoded.
    Text {
        text: JsonStr<'a>,
        byte_len: usize,
    },
}

impl<'a> DataUrl<'a> {
    /// Reads `data:<header>,<body>`, the scheme in lower case. `None` for any other URL, and for
    /// a text body that is no percent-encoded UTF-8.
    pub(super) fn parse(url: JsonStr<'a>) -> Option<Self> {
        let (is_base64, body) = split(url)?;
        if is_base64 {
            return Some(Self::Base64(Base64::new(body)));
        }
        let byte_len = match body.plain() {
            Some(plain) if !plain.contains('%') => plain.len(),
            _ => Percent::of(body).byte_len()?,
        };
        Some(Self::Text { text: body, byte_len })
    }

    /// How many bytes the URL carries once decoded.
    pub(super) fn byte_len(self) -> usize {
        match self {
            Self::Base64(base64) => base64.byte_len(),
            Self::Text { byte_len, .. } => byte_len,
        }
    }

    /// The bytes the URL carries, decoded as they are asked for.
    pub(super) fn bytes(self) -> Bytes<'a> {
        match self {
            Self::Base64(base64) => Bytes::Base64(base64.bytes()),
            Self::Text { text, .. } => Bytes::Text(Percent::of(text)),
        }
    }
}

/// The bytes of a data URL in order; `nth` is the way to skip.
#[derive(Clone, Debug)]
pub(super) enum Bytes<'a> {
    Base64(base64::Bytes<'a>),
    Text(Percent<'a>),
}

impl Iterator for Bytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        self.nth(0)
    }

    fn nth(&mut self, skip: usize) -> Option<u8> {
        match self {
            Self::Base64(bytes) => bytes.nth(skip),
            Self::Text(bytes) => bytes.nth(skip),
        }
    }
}

/// Splits at the first comma, and says whether the header asks for base64.
fn split(url: JsonStr<'_>) -> Option<(bool, JsonStr<'_>)> {
    let raw = url.raw();
    let mark = memchr2(b',', b'\\', raw.as_bytes())?;
    let (before, after) = raw.split_at_checked(mark)?;
    if let Some(body) = after.strip_prefix(',') {
        let header = before.strip_prefix("data:")?;
        return Some((asks_for_base64(header), JsonStr::from_raw(body)));
    }
    let mut units = url.units();
    if !"data:".encode_utf16().all(|expected| units.next() == Some(expected)) {
        return None;
    }
    let mut header = Vec::new();
    loop {
        match units.next()? {
            0x2C => break,
            unit => header.push(unit),
        }
    }
    Some((asks_for_base64(&String::from_utf16_lossy(&header)), units.rest()))
}

/// Whether the header's last parameter is the word `base64`, in any case.
fn asks_for_base64(header: &str) -> bool {
    const WORD: &[u8] = b"base64";
    let header = header.trim_matches(is_whitespace).as_bytes();
    let Some((parameters, word)) =
        header.len().checked_sub(WORD.len()).and_then(|at| header.split_at_checked(at))
    else {
        return false;
    };
    word.eq_ignore_ascii_case(WORD) && matches!(parameters, [] | [.., b';'])
}

#[cfg(test)]
#[path = "data_url_tests.rs"]
mod tests;
