//! The tool calls that a step still waits for.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::Ordinal;
use crate::{
    event::Event,
    id::Seq,
    json::{Json, write_units},
};

/// The unanswered calls, in the order the model asked for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// How many calls have been asked for so far: the place of the next one.
    asked: u64,
    places: HashMap<CallId, u64>,
    waiting: BTreeMap<u64, Call>,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) step: Ordinal,
    /// Where the log says that the tool was started.
    pub(super) started: Option<Seq>,
}

/// The id of a call, as the inside of a string literal in the one spelling `JSON.stringify` has
/// for it. Ids are UTF-16: one may hold a lone surrogate, which no Rust string does.
pub(super) type CallId = Arc<str>;

impl Calls {
    /// Adds the calls that an `assistant/message` asks for. One that is asked for again keeps its
    /// place, and has not been started.
    pub(super) fn ask(&mut self, data: Json<'_>, step: Ordinal) {
        let blocks = data.path(&["message", "content"]).and_then(Json::elements);
        for block in blocks.into_iter().flatten() {
            let kind = block.get("type").and_then(Json::as_str);
            if kind.is_none_or(|kind| kind != "tool-call") {
                continue;
            }
            let Some(id) = block.get("id").and_then(call_id) else { continue };
            let place = *self.places.entry(id.clone()).or_insert(self.asked);
            self.asked = self.asked.saturating_add(1);
            self.waiting.insert(place, Call { id, step, started: None });
        }
    }

    /// Notes that a `tool/call` says that a call was started; a call nobody asked for is none.
    pub(super) fn start(&mut self, event: &Event) {
        if self.places.is_empty() {
            return;
        }
        let id = event.data().get("callId").and_then(call_id);
        let place = id.and_then(|id| self.places.get(&id));
        if let Some(call) = place.and_then(|place| self.waiting.get_mut(place)) {
            call.started = Some(event.seq());
        }
    }

    /// Removes the call that a `tool/result` answers.
    pub(super) fn answer(&mut self, data: Json<'_>) {
        if self.places.is_empty() {
            return;
        }
        let id = data.path(&["message", "source", "callId"]).and_then(call_id);
        if let Some(place) = id.and_then(|id| self.places.remove(&id)) {
            self.waiting.remove(&place);
        }
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &Call> {
        self.waiting.values()
    }
}

/// An empty id names no call: a result for it would be one that no reader accepts.
fn call_id(value: Json<'_>) -> Option<CallId> {
    let id = value.as_str().filter(|id| !id.is_empty())?;
    if let Some(plain) = id.plain() {
        return Some(plain.into());
    }
    let mut literal = String::with_capacity(id.raw().len() + 2);
    write_units(&mut literal, id.units());
    literal.get(1..literal.len() - 1).map(CallId::from)
}
