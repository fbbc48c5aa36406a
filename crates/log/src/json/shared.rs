//! JSON values that own their text.

use std::fmt;

use super::{Json, JsonError};
use crate::text::Text;

/// One checked JSON value as a [`Text`]: a [`Json`] that can be kept.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonText(Text);

impl JsonText {
    /// Checks that `text` is one JSON value and keeps it without the white space around it.
    ///
    /// # Errors
    ///
    /// As [`Json::parse`].
    pub fn parse(text: &Text) -> Result<Self, JsonError> {
        let json = Json::parse(text)?;
        Ok(Self(text.slice_of(json.text())))
    }

    /// The value `part` found inside this one, sharing its text.
    #[must_use]
    pub fn cut(&self, part: Json<'_>) -> Self {
        Self(self.0.slice_of(part.text()))
    }

    /// The value, to look into.
    #[must_use]
    pub fn json(&self) -> Json<'_> {
        Json { text: self.0.as_str() }
    }

    /// The exact text.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.0
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
