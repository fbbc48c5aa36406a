//! Writing JSON from pieces that are already spelled.

use turnkeep_log::{
    Event, Text,
    json::{Json, JsonStr, write_str},
};

/// Writes one JSON value into a string, minding the commas.
///
/// What comes from a log goes in as it was spelled there: string literals by their inside, other
/// values by their text. So an escape, a lone surrogate or a long number leaves the way it came.
pub(super) struct Writer {
    out: String,
    comma: bool,
}

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes), comma: false }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    fn separate(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
    }

    /// Starts a member; its value comes next.
    pub(super) fn key(&mut self, key: &str) -> &mut Self {
        self.separate();
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
        self.comma = false;
        self
    }

    /// Starts an object, as a member's value or as an element.
    pub(super) fn open(&mut self) {
        self.separate();
        self.out.push('{');
        self.comma = false;
    }

    pub(super) fn close(&mut self) {
        self.out.push('}');
        self.comma = true;
    }

    /// Starts an array.
    pub(super) fn open_array(&mut self) {
        self.separate();
        self.out.push('[');
        self.comma = false;
    }

    pub(super) fn close_array(&mut self) {
        self.out.push(']');
        self.comma = true;
    }

    /// A value, by its text.
    pub(super) fn raw(&mut self, value: &str) {
        self.separate();
        self.out.push_str(value);
    }

    /// A string, by the inside of its literal.
    pub(super) fn literal(&mut self, inside: &str) {
        self.literals(&[inside]);
    }

    /// A string, by the insides of several literals. Two halves of a surrogate pair that meet here
    /// make the pair.
    pub(super) fn literals(&mut self, insides: &[&str]) {
        self.separate();
        self.out.push('"');
        for inside in insides {
            self.out.push_str(inside);
        }
        self.out.push('"');
    }

    /// An integer, such as a time in milliseconds.
    pub(super) fn integer(&mut self, number: i64) {
        self.raw(&number.to_string());
    }
}

/// The inside of a literal that spells `text`.
pub(super) fn spell(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    write_str(&mut literal, text);
    literal.pop();
    literal.split_off(1)
}

/// The string member `key` of an object.
pub(super) fn string<'a>(object: Json<'a>, key: &str) -> Option<JsonStr<'a>> {
    object.get(key)?.as_str()
}

/// A piece of an event as a slice that can be kept.
pub(super) fn cut(event: &Event, piece: &str) -> Text {
    event.text().slice_of(piece)
}

/// Whether the event takes the place of others in what the model sees.
pub(super) fn replaces(event: &Event) -> bool {
    event.surface_op().is_some_and(|op| op.members().is_some())
}
