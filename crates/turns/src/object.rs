//! Writing a JSON object member by member.

use turnkeep_log::json::Json;

use crate::normalize;

/// An object being appended to a text.
pub(crate) struct ObjectWriter<'o> {
    out: &'o mut String,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub(crate) fn open(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Writes a key, which must need no escapes. The caller appends the value.
    pub(crate) fn key(&mut self, key: &str) -> &mut String {
        self.out.push_str(if self.is_empty { "\"" } else { ",\"" });
        self.is_empty = false;
        self.out.push_str(key);
        self.out.push_str("\":");
        self.out
    }

    /// Writes a member whose value is already JSON text.
    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key).push_str(value);
    }

    /// Copies a value, `null` included, the way JavaScript prints it; nothing when there is none.
    pub(crate) fn copy(&mut self, key: &str, value: Option<Json<'_>>) {
        if let Some(value) = value {
            normalize::write(value, self.key(key));
        }
    }

    /// Writes an object into a member, and takes the member back when the object stays empty.
    pub(crate) fn nested(&mut self, key: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        let (length, was_empty) = (self.out.len(), self.is_empty);
        let mut inner = ObjectWriter::open(self.key(key));
        write(&mut inner);
        if inner.is_empty {
            self.out.truncate(length);
            self.is_empty = was_empty;
        } else {
            inner.close();
        }
    }

    pub(crate) fn close(self) {
        self.out.push('}');
    }
}
