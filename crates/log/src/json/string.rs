//! String literals, read the way JavaScript reads them: as UTF-16 code units.

use std::borrow::Cow;

/// The inside of a JSON string literal, still escaped.
///
/// Two literals are equal when they spell the same code units, however they are escaped.
#[derive(Clone, Copy, Debug)]
pub struct JsonStr<'a> {
    raw: &'a str,
}

impl<'a> JsonStr<'a> {
    /// `raw` is the text between the quotes of a checked literal, or a piece of it that starts and
    /// ends between two escapes. Of other text this makes a string of no particular meaning.
    #[must_use]
    pub fn from_raw(raw: &'a str) -> Self {
        Self { raw }
    }

    /// The text between the quotes, as it was sent.
    #[must_use]
    pub fn raw(self) -> &'a str {
        self.raw
    }

    /// The string itself when it holds no escape.
    #[must_use]
    pub fn plain(self) -> Option<&'a str> {
        (!self.raw.as_bytes().contains(&b'\\')).then_some(self.raw)
    }

    /// Whether the string is `""`.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// The UTF-16 code units of the string, lone surrogates included.
    #[must_use]
    pub fn units(self) -> Units<'a> {
        Units { rest: self.raw, low: None }
    }

    /// The length JavaScript reports: UTF-16 code units.
    #[must_use]
    pub fn utf16_len(self) -> usize {
        match self.plain() {
            Some(plain) if plain.is_ascii() => plain.len(),
            Some(plain) => plain.chars().map(char::len_utf16).sum(),
            None => self.units().count(),
        }
    }

    /// The string as UTF-8; `None` when it holds a lone surrogate, which UTF-8 cannot spell.
    #[must_use]
    pub fn decode(self) -> Option<Cow<'a, str>> {
        if let Some(plain) = self.plain() {
            return Some(Cow::Borrowed(plain));
        }
        let chars: Result<String, _> = char::decode_utf16(self.units()).collect();
        chars.ok().map(Cow::Owned)
    }

    /// The string as UTF-8, with U+FFFD where a lone surrogate stands.
    #[must_use]
    pub fn decode_lossy(self) -> Cow<'a, str> {
        if let Some(plain) = self.plain() {
            return Cow::Borrowed(plain);
        }
        let chars = char::decode_utf16(self.units());
        Cow::Owned(chars.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
    }
}

impl PartialEq<str> for JsonStr<'_> {
    fn eq(&self, other: &str) -> bool {
        // An escape is longer than what it stands for.
        if self.raw.len() <= other.len() {
            self.raw == other && self.plain().is_some()
        } else {
            self.plain().is_none() && self.units().eq(other.encode_utf16())
        }
    }
}

impl PartialEq<&str> for JsonStr<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq for JsonStr<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw || self.units().eq(other.units())
    }
}

impl Eq for JsonStr<'_> {}

/// Iterates over the UTF-16 code units of a string literal.
#[derive(Clone, Debug)]
pub struct Units<'a> {
    rest: &'a str,
    low: Option<u16>,
}

impl<'a> Units<'a> {
    /// The text that is still to be read, escaped as it was sent; without the second half of a
    /// surrogate pair whose first half has been read.
    #[must_use]
    pub fn rest(&self) -> JsonStr<'a> {
        JsonStr::from_raw(self.rest)
    }
}

impl Iterator for Units<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if let Some(low) = self.low.take() {
            return Some(low);
        }
        let mut chars = self.rest.chars();
        let first = chars.next()?;
        self.rest = chars.as_str();
        if first != '\\' {
            let mut pair = [0; 2];
            let (unit, low) = match first.encode_utf16(&mut pair) {
                [high, low] => (*high, Some(*low)),
                [unit] => (*unit, None),
                _ => return None,
            };
            self.low = low;
            return Some(unit);
        }
        let escape = chars.next()?;
        self.rest = chars.as_str();
        Some(match escape {
            'b' => 0x08,
            'f' => 0x0C,
            'n' => 0x0A,
            'r' => 0x0D,
            't' => 0x09,
            'u' => {
                let (digits, rest) = self.rest.split_at_checked(4)?;
                self.rest = rest;
                u16::from_str_radix(digits, 16).ok()?
            }
            other => u16::try_from(u32::from(other)).ok()?,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.rest.len() + 1))
    }
}

/// Whether ECMAScript's `trim` removes this code unit: its white space and line terminators.
///
/// Rust's own `trim` differs: it removes U+0085 and keeps U+FEFF.
#[must_use]
pub fn is_js_whitespace(unit: u16) -> bool {
    matches!(
        unit,
        0x0009..=0x000D
            | 0x0020
            | 0x00A0
            | 0x1680
            | 0x2000..=0x200A
            | 0x2028
            | 0x2029
            | 0x202F
            | 0x205F
            | 0x3000
            | 0xFEFF
    )
}
