//! Moving through JSON text by hand, going over each byte once.

use super::{Json, JsonStr, Kind, scan};

/// A place in a value's text, moved forward value by value.
///
/// [`Json::members`] and [`Json::elements`] find the end of a value before they hand it out, so
/// whoever then looks into it goes over its text again, once per level. A walk does not: it stands
/// before a value and is told whether to step into it or over it.
///
/// The order of the calls is the caller's to keep: [`Walk::enter`] only before a container, then
/// [`Walk::next_key`] or [`Walk::next_element`] until it says that the container has ended, and
/// after each key or element exactly one value, walked or skipped. Any other order moves to a
/// meaningless place; it never panics and never leaves the text.
///
/// ```
/// use turnkeep_log::json::{Json, Walk};
///
/// let part = Json::parse(r#"{"type":"tool","state":{"output":"long","status":"running"}}"#)?;
/// let mut walk = Walk::over(part);
/// let mut status = None;
/// walk.enter();
/// while let Some(key) = walk.next_key() {
///     if key != "state" {
///         walk.value();
///         continue;
///     }
///     walk.enter();
///     while let Some(key) = walk.next_key() {
///         let value = walk.value();
///         if key == "status" {
///             status = Some(value.text());
///         }
///     }
/// }
/// assert_eq!(status, Some("\"running\""));
/// # Ok::<(), turnkeep_log::json::JsonError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// Stands before `value`.
    #[must_use]
    pub fn over(value: Json<'a>) -> Self {
        Self { text: value.text, at: 0 }
    }

    /// How many bytes of the text lie behind.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Which kind of value is next.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Json { text: self.text.get(self.at..).unwrap_or_default() }.kind()
    }

    /// Steps into the object or array that is next.
    pub fn enter(&mut self) {
        self.at = self.text.len().min(self.at + 1);
    }

    /// Moves to the next member's value and says its key; at the end of the object steps out of it.
    pub fn next_key(&mut self) -> Option<JsonStr<'a>> {
        let bytes = self.text.as_bytes();
        let start = scan::skip_separators(bytes, self.at);
        if bytes.get(start) != Some(&b'"') {
            self.at = bytes.len().min(start + 1);
            return None;
        }
        let end = scan::skip_value(bytes, start);
        self.at = scan::skip_separators(bytes, end);
        Some(JsonStr::from_raw(self.text.get(start + 1..end.checked_sub(1)?)?))
    }

    /// Moves to the next element; at the end of the array steps out of it and says no.
    pub fn next_element(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let start = scan::skip_separators(bytes, self.at);
        let more = !matches!(bytes.get(start), None | Some(b']'));
        self.at = if more { start } else { bytes.len().min(start + 1) };
        more
    }

    /// The value that has been walked from `start`, the offset it was next at, to here.
    #[must_use]
    pub fn since(&self, start: usize) -> Json<'a> {
        Json { text: self.text.get(start..self.at).unwrap_or_default() }
    }

    /// Steps over the value that is next.
    pub fn value(&mut self) -> Json<'a> {
        let start = self.at;
        self.at = scan::skip_value(self.text.as_bytes(), start);
        Json { text: self.text.get(start..self.at).unwrap_or_default() }
    }
}
