//! Tool parts: what was called on what, and how it went; not what came out.

use turnkeep_log::json::{Json, Kind, Walk};

use super::{input::Input, metadata::ToolMetadata};
use crate::object::ObjectWriter;

/// What a slim tool part keeps of its state.
#[derive(Default)]
pub(super) struct State<'a> {
    status: Option<Json<'a>>,
    title: Option<Json<'a>>,
    time: Option<Json<'a>>,
    input: Input<'a>,
    metadata: ToolMetadata<'a>,
}

impl<'a> State<'a> {
    /// Walks over the value of `state`. An array is an object without keys here, as it is in
    /// JavaScript; anything else is no state.
    pub(super) fn read(walk: &mut Walk<'a>) -> Option<Self> {
        if walk.kind() != Kind::Object {
            return (walk.value().kind() == Kind::Array).then(Self::default);
        }
        let mut state = Self::default();
        walk.enter();
        while let Some(key) = walk.next_key() {
            let slot = match &*key.decode_lossy() {
                "input" => {
                    state.input = Input::read(walk);
                    continue;
                }
                "metadata" => {
                    state.metadata = ToolMetadata::read(walk);
                    continue;
                }
                "status" => &mut state.status,
                "title" => &mut state.title,
                "time" => &mut state.time,
                _ => {
                    walk.value();
                    continue;
                }
            };
            *slot = Some(walk.value());
        }
        Some(state)
    }

    pub(super) fn write(&self, object: &mut ObjectWriter<'_>) {
        object.copy("status", self.status);
        object.copy("title", self.title);
        object.copy("time", self.time);
        object.nested("input", |input| self.input.write(input));
        object.nested("metadata", |metadata| self.metadata.write(metadata));
    }
}
