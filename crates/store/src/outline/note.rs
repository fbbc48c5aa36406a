//! What one event adds to the outline of its log.

use turnkeep_log::{
    Event, Seq,
    json::{Json, write_units},
};

use super::Call;

/// What one event says. Most say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A turn starts with this event.
    TurnStart(Seq),
    /// A turn ends with it.
    TurnEnd(Seq),
    /// The session is called so: a JSON string.
    Title(Box<str>),
    /// A person said something at this time.
    Prompt(i64),
    /// A tool was started.
    CallStart(Call),
    /// The tool of this call has answered: a JSON string.
    CallEnd(Box<str>),
}

impl Note {
    /// What an event says, if anything.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        match event.event_type() {
            "turn/start" => Some(Self::TurnStart(event.seq())),
            "turn/end" => Some(Self::TurnEnd(event.seq())),
            "session/title" => string(event.data().get("title")).map(Self::Title),
            // Plugins and tools put words in a person's place, too.
            "user/message" => event
                .data()
                .path(&["source", "kind"])
                .and_then(Json::as_str)
                .is_some_and(|kind| kind == "user")
                .then(|| Self::Prompt(event.time())),
            "tool/call" => call_id(event.data().get("callId"))
                .map(|id| Self::CallStart(Call { id, start: event.seq() })),
            "tool/result" => {
                call_id(event.data().path(&["message", "source", "callId"])).map(Self::CallEnd)
            }
            _ => None,
        }
    }
}

/// A value as the JSON string it is, if it is one.
fn string(value: Option<Json<'_>>) -> Option<Box<str>> {
    value.filter(|value| value.as_str().is_some()).map(|value| value.text().into())
}

/// An id in one spelling, however it is escaped. Ids are UTF-16: one may hold a lone surrogate, which
/// no Rust string does.
fn call_id(value: Option<Json<'_>>) -> Option<Box<str>> {
    let value = value?;
    let id = value.as_str().filter(|id| !id.is_empty())?;
    if id.plain().is_some() {
        return Some(value.text().into());
    }
    let mut literal = String::with_capacity(value.text().len());
    write_units(&mut literal, id.units());
    Some(literal.into())
}

/// The text of a JSON string, with U+FFFD for a lone surrogate.
pub(super) fn decoded(literal: &str) -> String {
    let value = Json::parse(literal).ok();
    value.and_then(Json::as_str).map_or_else(String::new, |text| text.decode_lossy().into_owned())
}
