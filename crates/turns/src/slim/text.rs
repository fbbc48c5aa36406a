//! Short strings of a part, trimmed and cut the way JavaScript does it.

use turnkeep_log::json::{Json, JsonStr, is_js_whitespace, write_units};

/// A string without the white space around it, cut to a length, and not empty.
#[derive(Debug)]
pub(super) enum Trimmed<'a> {
    /// A piece of the text it came in, free of escapes.
    Plain(&'a str),
    /// Its code units, where the text has escapes or a cut went through a surrogate pair.
    Units(Vec<u16>),
}

impl<'a> Trimmed<'a> {
    /// A string value, trimmed; `None` when it is no string or nothing is left of it.
    pub(super) fn of(value: Option<Json<'a>>) -> Option<Self> {
        Self::cut(value, usize::MAX)
    }

    /// As [`Trimmed::of`], then cut after `limit` UTF-16 code units.
    pub(super) fn cut(value: Option<Json<'a>>, limit: usize) -> Option<Self> {
        let string = value?.as_str()?;
        match string.plain() {
            Some(plain) => Self::cut_plain(plain, limit),
            None => Self::cut_units(string, limit),
        }
    }

    fn cut_plain(plain: &'a str, limit: usize) -> Option<Self> {
        let text = plain.trim_matches(is_whitespace);
        if text.is_empty() {
            return None;
        }
        // No character has more code units than bytes.
        if text.len() <= limit {
            return Some(Self::Plain(text));
        }
        let mut units = 0;
        for (at, char) in text.char_indices() {
            let end = units + char.len_utf16();
            if end > limit {
                let kept = text.get(..at)?;
                if units == limit {
                    return Some(Self::Plain(kept));
                }
                return Some(Self::Units(text.encode_utf16().take(limit).collect()));
            }
            units = end;
        }
        Some(Self::Plain(text))
    }

    fn cut_units(string: JsonStr<'_>, limit: usize) -> Option<Self> {
        let mut rest = string.units().skip_while(|&unit| is_js_whitespace(unit));
        let mut units: Vec<u16> = rest.by_ref().take(limit).collect();
        // White space before the cut is inside the string when something follows it.
        if rest.all(is_js_whitespace) {
            while units.last().copied().is_some_and(is_js_whitespace) {
                units.pop();
            }
        }
        (!units.is_empty()).then_some(Self::Units(units))
    }

    /// Appends it as a JSON string literal.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Plain(text) => {
                out.push('"');
                out.push_str(text);
                out.push('"');
            }
            Self::Units(units) => write_units(out, units.iter().copied()),
        }
    }
}

impl PartialEq for Trimmed<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Plain(left), Self::Plain(right)) => left == right,
            (Self::Units(left), Self::Units(right)) => left == right,
            (Self::Plain(text), Self::Units(units)) | (Self::Units(units), Self::Plain(text)) => {
                text.encode_utf16().eq(units.iter().copied())
            }
        }
    }
}

pub(super) fn is_whitespace(char: char) -> bool {
    u16::try_from(u32::from(char)).is_ok_and(is_js_whitespace)
}
