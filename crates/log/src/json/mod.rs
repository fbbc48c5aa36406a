//! JSON as spans of text.
//!
//! A session log and a transcript page are both mostly payload that nobody asked to look into:
//! tool output, patches, images. This module checks that a text is JSON once, and from then on
//! hands out [`Json`] values that are nothing but slices of it. Members and elements are found by
//! skipping over their neighbours, so what is not asked for is never decoded, and what leaves
//! again leaves with the bytes it came with: key order, duplicate keys, number spelling and lone
//! surrogates included.
//!
//! The grammar is the one of ECMAScript's `JSON.parse` (which is RFC 8259): that is what the
//! existing writers and readers use. Nothing here recurses, so nesting depth is bounded by memory
//! alone.
//!
//! ```
//! use turnkeep_log::json::Json;
//!
//! let event = Json::parse(r#"{"type":"todo/write","seq":7,"data":{"todos":[]}}"#)?;
//! assert_eq!(event.get("seq").and_then(Json::as_safe_integer), Some(7));
//! assert_eq!(event.get("data").map(|data| data.text()), Some(r#"{"todos":[]}"#));
//! # Ok::<(), turnkeep_log::json::JsonError>(())
//! ```

mod scan;
mod shared;
mod string;
mod walk;
mod write;

#[cfg(test)]
mod tests;

pub use scan::JsonError;
pub use shared::JsonText;
pub use string::{JsonStr, Units, is_js_whitespace};
pub use walk::Walk;
pub use write::{write_compact, write_number, write_str, write_units};

/// The largest integer that every reader of JSON holds exactly: JavaScript's, 2^53 − 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The kinds of value JSON has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number literal.
    Number,
    /// A string literal.
    String,
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

/// One JSON value: the exact text of it, without surrounding white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a> {
    text: &'a str,
}

impl<'a> Json<'a> {
    /// Checks that `text` is one JSON value, white space around it allowed.
    ///
    /// # Errors
    ///
    /// The byte offset and the nature of the first thing that `JSON.parse` would refuse.
    pub fn parse(text: &'a str) -> Result<Self, JsonError> {
        let bytes = text.as_bytes();
        let start = scan::skip_whitespace(bytes, 0);
        let end = scan::check_value(bytes, start)?;
        let rest = scan::skip_whitespace(bytes, end);
        if rest != bytes.len() {
            return Err(JsonError::trailing(rest));
        }
        Ok(Self { text: text.get(start..end).unwrap_or_default() })
    }

    /// As [`Json::parse`]; when the value is an object, its members are handed out on the way, which
    /// saves walking them again.
    ///
    /// # Errors
    ///
    /// As [`Json::parse`]; members that come before the fault have been handed out by then.
    pub fn parse_members(
        text: &'a str,
        mut found: impl FnMut(Member<'a>),
    ) -> Result<Self, JsonError> {
        let bytes = text.as_bytes();
        let start = scan::skip_whitespace(bytes, 0);
        if bytes.get(start) != Some(&b'{') {
            return Self::parse(text);
        }
        let end = scan::check_members(bytes, start, |key, value| {
            found(Member {
                key: JsonStr::from_raw(text.get(key.start + 1..key.end - 1).unwrap_or_default()),
                value: Json::checked(text.get(value).unwrap_or_default()),
            });
        })?;
        let rest = scan::skip_whitespace(bytes, end);
        if rest != bytes.len() {
            return Err(JsonError::trailing(rest));
        }
        Ok(Self::checked(text.get(start..end).unwrap_or_default()))
    }

    /// Checks the one JSON value that `text` starts with and says where it ends.
    ///
    /// # Errors
    ///
    /// As [`Json::parse`], except that anything may follow the value.
    pub fn parse_prefix(text: &'a str) -> Result<(Self, usize), JsonError> {
        let bytes = text.as_bytes();
        let start = scan::skip_whitespace(bytes, 0);
        let end = scan::check_value(bytes, start)?;
        Ok((Self { text: text.get(start..end).unwrap_or_default() }, end))
    }

    /// `text` is exactly one value of a text that has been checked.
    pub(crate) fn checked(text: &'a str) -> Self {
        Self { text }
    }

    /// The literal or container that `text`, the rest of a checked text, starts with.
    pub(crate) fn first_in(text: &'a str) -> Self {
        Self { text: text.get(..scan::skip_value(text.as_bytes(), 0)).unwrap_or_default() }
    }

    /// The exact text of the value.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Which kind of value this is.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The value of a `true` or `false`.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.text == "true")
    }

    /// The members of an object in the order of the text, duplicates included.
    #[must_use]
    pub fn members(self) -> Option<Members<'a>> {
        (self.kind() == Kind::Object).then_some(Members { text: self.text, at: 1 })
    }

    /// The elements of an array in order.
    #[must_use]
    pub fn elements(self) -> Option<Elements<'a>> {
        (self.kind() == Kind::Array).then_some(Elements { text: self.text, at: 1 })
    }

    /// The member of an object with this key; the last one where a key repeats, as `JSON.parse`
    /// has it. `None` as well when this is no object.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Json<'a>> {
        self.members()?.filter(|member| member.key == *key).last().map(|member| member.value)
    }

    /// Follows [`Json::get`] along several keys.
    #[must_use]
    pub fn path(self, keys: &[&str]) -> Option<Json<'a>> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The text of a string literal, still escaped.
    #[must_use]
    pub fn as_str(self) -> Option<JsonStr<'a>> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        Some(JsonStr::from_raw(inner))
    }

    /// The double that `JSON.parse` makes of a number literal; infinite past the double range.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        (self.kind() == Kind::Number).then(|| self.text.parse().ok()).flatten()
    }

    /// The value of a number that JavaScript calls a safe integer, however it is spelled (`1`,
    /// `1.0`, `1e0`): at most 2^53 − 1 in magnitude. `-0` is one, and is 0 here.
    #[must_use]
    pub fn as_safe_integer(self) -> Option<i64> {
        const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
        if let Some(value) = self.short_natural() {
            return Some(value);
        }
        let number = self.as_f64()?;
        if number.fract() != 0.0 || number.abs() > MAX_SAFE {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "integral and within ±2^53")]
        Some(number as i64)
    }

    /// The value of up to 15 digits: the way nearly every integer is spelled.
    fn short_natural(self) -> Option<i64> {
        let digits = self.text.as_bytes();
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        digits.iter().try_fold(0, |value, digit| {
            digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0'))
        })
    }

    /// The value of a safe integer that is neither negative nor spelled as negative zero.
    #[must_use]
    pub fn as_natural(self) -> Option<u64> {
        if self.text.starts_with('-') {
            return None;
        }
        self.as_safe_integer().and_then(|value| u64::try_from(value).ok())
    }

    /// Whether JavaScript would take the value as true: all but `false`, `0`, `""` and `null`.
    #[must_use]
    pub fn is_truthy(self) -> bool {
        match self.kind() {
            Kind::Null => false,
            Kind::Bool => self.text == "true",
            Kind::Number => self.as_f64().is_some_and(|number| number != 0.0),
            Kind::String => self.text.len() > 2,
            Kind::Array | Kind::Object => true,
        }
    }
}

/// One member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The key, still escaped.
    pub key: JsonStr<'a>,
    /// The value.
    pub value: Json<'a>,
}

/// Iterates over the members of an object.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let bytes = self.text.as_bytes();
        let key_start = scan::skip_separators(bytes, self.at);
        if bytes.get(key_start) != Some(&b'"') {
            return None;
        }
        let key_end = scan::skip_value(bytes, key_start);
        let value_start = scan::skip_separators(bytes, key_end);
        let value_end = scan::skip_value(bytes, value_start);
        self.at = value_end;
        Some(Member {
            key: JsonStr::from_raw(self.text.get(key_start + 1..key_end.checked_sub(1)?)?),
            value: Json { text: self.text.get(value_start..value_end)? },
        })
    }
}

/// Iterates over the elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        let bytes = self.text.as_bytes();
        let start = scan::skip_separators(bytes, self.at);
        if matches!(bytes.get(start), None | Some(b']')) {
            return None;
        }
        let end = scan::skip_value(bytes, start);
        self.at = end;
        Some(Json { text: self.text.get(start..end)? })
    }
}
