//! Shared slices of text.

use std::{fmt, ops::Range, sync::Arc};

/// A slice of a text that is shared by everything cut from it: a frame, a page.
///
/// Cloning and slicing cost a reference count. Holding a slice keeps the whole text alive.
#[derive(Clone)]
pub struct Text {
    /// A `String` rather than a `str`, so that a decoded file becomes one without being copied.
    whole: Arc<String>,
    start: usize,
    end: usize,
}

impl Text {
    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.whole.get(self.start..self.end).unwrap_or_default()
    }

    /// The slice at this byte range of the text; empty where the range does not fit it.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let (start, end) = (self.start + range.start, self.start + range.end);
        if end <= self.end && self.whole.get(start..end).is_some() {
            Self { whole: Arc::clone(&self.whole), start, end }
        } else {
            Self { whole: Arc::clone(&self.whole), start: self.end, end: self.end }
        }
    }

    /// The slice that `part` is, when it was borrowed from this text; a copy of it otherwise.
    #[must_use]
    pub fn slice_of(&self, part: &str) -> Self {
        let base = self.as_str().as_ptr() as usize;
        let at = (part.as_ptr() as usize).wrapping_sub(base);
        if at <= self.as_str().len() && part.len() <= self.as_str().len() - at {
            self.slice(at..at + part.len())
        } else {
            Self::from(part)
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        let end = text.len();
        Self { whole: Arc::new(text), start: 0, end }
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
