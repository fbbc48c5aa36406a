//! The slim form of a part, `slim-v1`: a reference to it rather than the part itself.
//!
//! A transcript is read a few turns at a time, and most of its bytes are tool output, reasoning
//! and attached files that are not on the screen. The slim form says what there is (which tool on
//! which file, how many lines changed, how big an image is) and ends with `"slim":true`, so that a
//! client knows to ask for the whole message when somebody opens it.
//!
//! A part is read in one walk over its text. What is kept are spans of that text; what is not, is
//! stepped over.

mod base64;
mod counts;
mod data_url;
mod file;
mod image;
mod input;
mod metadata;
mod percent;
mod text;
mod tool;

use turnkeep_log::json::{Json, Kind, Walk};

use self::{file::FileFields, metadata::ChildSession, tool::State};
use crate::{events::OpenParts, object::ObjectWriter};

/// The parts that have a slim form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// `"type":"file"`
    File,
    /// `"type":"tool"`
    Tool,
    /// `"type":"reasoning"`
    Reasoning,
}

/// What of a part its slim form is made from, whatever kind of part it turns out to be: the type
/// may come last.
#[derive(Default)]
pub(crate) struct Part<'a> {
    kind: Option<Json<'a>>,
    id: Option<Json<'a>>,
    session_id: Option<Json<'a>>,
    message_id: Option<Json<'a>>,
    time: Option<Json<'a>>,
    call_id: Option<Json<'a>>,
    tool: Option<Json<'a>>,
    child: ChildSession<'a>,
    state: Option<State<'a>>,
    file: FileFields<'a>,
}

impl<'a> Part<'a> {
    /// Walks over a part; only an object is one.
    pub(crate) fn read(walk: &mut Walk<'a>) -> Self {
        let mut part = Self::default();
        if walk.kind() != Kind::Object {
            walk.value();
            return part;
        }
        walk.enter();
        while let Some(key) = walk.next_key() {
            let slot = match &*key.decode_lossy() {
                "state" => {
                    part.state = State::read(walk);
                    continue;
                }
                "metadata" => {
                    part.read_metadata(walk);
                    continue;
                }
                "type" => Some(&mut part.kind),
                "id" => Some(&mut part.id),
                "sessionID" => Some(&mut part.session_id),
                "messageID" => Some(&mut part.message_id),
                "time" => Some(&mut part.time),
                "callID" => Some(&mut part.call_id),
                "tool" => Some(&mut part.tool),
                "mime" => Some(&mut part.file.mime),
                "filename" => Some(&mut part.file.filename),
                "url" => Some(&mut part.file.url),
                key => part.file.own.slot(key),
            };
            let value = walk.value();
            if let Some(slot) = slot {
                *slot = Some(value);
            }
        }
        part
    }

    fn read_metadata(&mut self, walk: &mut Walk<'a>) {
        (self.child, self.file.stored) = Default::default();
        if walk.kind() != Kind::Object {
            walk.value();
            return;
        }
        walk.enter();
        while let Some(key) = walk.next_key() {
            let value = walk.value();
            let key = key.decode_lossy();
            let slot = self.child.slot(&key).or_else(|| self.file.stored.slot(&key));
            if let Some(slot) = slot {
                *slot = Some(value);
            }
        }
    }

    /// Which kind of part with a slim form this is.
    pub(crate) fn kind(&self) -> Option<PartKind> {
        let kind = self.kind?.as_str()?;
        [("file", PartKind::File), ("tool", PartKind::Tool), ("reasoning", PartKind::Reasoning)]
            .into_iter()
            .find_map(|(name, slim)| (kind == name).then_some(slim))
    }

    /// Whether it is one of the parts that are being written.
    pub(crate) fn is_in(&self, open: &OpenParts) -> bool {
        let id = self.id.and_then(Json::as_str);
        id.is_some_and(|id| open.contains_key(&*id.decode_lossy()))
    }

    /// Appends the slim form, taking the part as one of `kind`.
    pub(crate) fn write(&self, kind: PartKind, out: &mut String) {
        let mut object = ObjectWriter::open(out);
        object.copy("id", self.id);
        object.copy("sessionID", self.session_id);
        object.copy("messageID", self.message_id);
        match kind {
            PartKind::File => {
                object.text("type", "\"file\"");
                self.file.write(&mut object);
            }
            PartKind::Reasoning => {
                object.text("type", "\"reasoning\"");
                object.copy("time", self.time);
            }
            PartKind::Tool => {
                object.copy("callID", self.call_id);
                object.copy("tool", self.tool);
                object.nested("metadata", |metadata| self.child.write(metadata));
                object.text("type", "\"tool\"");
                if let Some(state) = &self.state {
                    let mut inner = ObjectWriter::open(object.key("state"));
                    state.write(&mut inner);
                    inner.close();
                }
            }
        }
        object.text("slim", "true");
        object.close();
    }
}

#[cfg(test)]
mod tests;
