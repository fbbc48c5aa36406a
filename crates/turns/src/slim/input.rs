//! The arguments of a tool call that say what it was about.

use turnkeep_log::json::{Json, Kind, Walk, write_number};

use super::text::Trimmed;
use crate::object::ObjectWriter;

/// The arguments that are kept, in the order they are written. Bodies (what is written, replaced
/// or prompted) are not among them.
const KEYS: [&str; 19] = [
    "path",
    "filePath",
    "file_path",
    "pattern",
    "glob",
    "include",
    "exclude",
    "query",
    "target",
    "command",
    "offset",
    "limit",
    "description",
    "subagent_type",
    "subagentType",
    "agent",
    "subagent",
    "name",
    "id",
];

/// The longest string that is kept whole, in UTF-16 code units.
pub(super) const MAX_UNITS: usize = 240;

/// The kept arguments as they came.
#[derive(Clone, Copy, Default)]
pub(super) struct Input<'a>([Option<Json<'a>>; KEYS.len()]);

impl<'a> Input<'a> {
    /// Walks over the value of `input`; only an object has arguments.
    pub(super) fn read(walk: &mut Walk<'a>) -> Self {
        let mut input = Self::default();
        if walk.kind() != Kind::Object {
            walk.value();
            return input;
        }
        walk.enter();
        while let Some(key) = walk.next_key() {
            let value = walk.value();
            let key = key.decode_lossy();
            let slots = KEYS.iter().zip(&mut input.0);
            if let Some((_, slot)) = slots.into_iter().find(|(kept, _)| **kept == key) {
                *slot = Some(value);
            }
        }
        input
    }

    /// Writes strings, trimmed, cut and not empty, and finite numbers.
    pub(super) fn write(&self, object: &mut ObjectWriter<'_>) {
        for (key, &value) in KEYS.iter().zip(&self.0) {
            if let Some(text) = Trimmed::cut(value, MAX_UNITS) {
                text.write(object.key(key));
            } else if let Some(number) = value.and_then(Json::as_f64).filter(|n| n.is_finite()) {
                write_number(object.key(key), number);
            }
        }
    }
}
