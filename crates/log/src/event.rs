//! One event of a session log.

use crate::{
    id::Seq,
    json::{Json, JsonError, JsonText},
    text::Text,
};

/// One event of a session log: its JSON text, with the envelope read and the payload left alone.
///
/// | key | what it is |
/// |---|---|
/// | `type` | what happened, such as `user/message` |
/// | `seq` | the event's index in its log |
/// | `time` | milliseconds since the epoch; may go backwards from one event to the next |
/// | `data` | any JSON value |
/// | `ignorable` | only ever `true`: a reader that does not know the type may read on |
/// | `surfaceOp` | for the three types that make model messages: `"append"`, or an object that replaces a range |
/// | `sourceEventSeqs` | for the same types: the earlier events that this one came from |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    json: JsonText,
    name: Text,
    seq: Seq,
    time: i64,
    data: JsonText,
    ignorable: bool,
    surface_op: Option<JsonText>,
    source_event_seqs: Option<JsonText>,
}

/// Why a JSON text is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    NotJson(#[from] JsonError),
    /// The text is JSON, but no object.
    #[error("not a JSON object")]
    NotAnObject,
    /// An envelope member is missing or of the wrong kind.
    #[error("event member `{member}` {problem}")]
    Member {
        /// The name of the member.
        member: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl Event {
    /// Reads the envelope of an event from its JSON text, which is kept as it is.
    ///
    /// Members that no rule names are kept in the text and not looked at. Where a key repeats, the
    /// last one counts.
    ///
    /// # Errors
    ///
    /// The text is no JSON object, or `type`, `seq`, `time` or `data` is missing or of the wrong
    /// kind, or `ignorable` is there and not `true`.
    pub fn parse(text: &Text) -> Result<Self, EventError> {
        let json = JsonText::parse(text)?;
        let mut found = Envelope::default();
        for member in json.json().members().ok_or(EventError::NotAnObject)? {
            found.note(member.key.decode().as_deref(), member.value);
        }
        found.event(&json)
    }

    /// The event as a line of a log without packing: one JSON object, without a line feed.
    #[must_use]
    pub fn text(&self) -> &Text {
        self.json.text()
    }

    /// What happened.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.name
    }

    /// The event's index in its log.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// When it happened, in milliseconds since the epoch.
    #[must_use]
    pub fn time(&self) -> i64 {
        self.time
    }

    /// The payload.
    #[must_use]
    pub fn data(&self) -> Json<'_> {
        self.data.json()
    }

    /// Whether a reader that does not know the type may read on.
    #[must_use]
    pub fn ignorable(&self) -> bool {
        self.ignorable
    }

    /// How a model-visible event joins the model's surface.
    #[must_use]
    pub fn surface_op(&self) -> Option<Json<'_>> {
        self.surface_op.as_ref().map(JsonText::json)
    }

    /// The earlier events this one came from, as stored.
    #[must_use]
    pub fn source_event_seqs(&self) -> Option<Json<'_>> {
        self.source_event_seqs.as_ref().map(JsonText::json)
    }
}

/// The envelope members of one object, as found so far.
#[derive(Default)]
struct Envelope<'a> {
    event_type: Option<Json<'a>>,
    seq: Option<Json<'a>>,
    time: Option<Json<'a>>,
    data: Option<Json<'a>>,
    ignorable: Option<Json<'a>>,
    surface_op: Option<Json<'a>>,
    source_event_seqs: Option<Json<'a>>,
}

impl<'a> Envelope<'a> {
    fn note(&mut self, key: Option<&str>, value: Json<'a>) {
        let slot = match key {
            Some("type") => &mut self.event_type,
            Some("seq") => &mut self.seq,
            Some("time") => &mut self.time,
            Some("data") => &mut self.data,
            Some("ignorable") => &mut self.ignorable,
            Some("surfaceOp") => &mut self.surface_op,
            Some("sourceEventSeqs") => &mut self.source_event_seqs,
            _ => return,
        };
        *slot = Some(value);
    }

    fn event(self, json: &JsonText) -> Result<Event, EventError> {
        let bad = |member, problem| EventError::Member { member, problem };
        let event_type = self.event_type.ok_or(bad("type", "is missing"))?;
        let event_type = event_type.as_str().ok_or(bad("type", "is not a string"))?;
        let seq = self.seq.ok_or(bad("seq", "is missing"))?;
        let time = self.time.ok_or(bad("time", "is missing"))?;
        let data = self.data.ok_or(bad("data", "is missing"))?;
        if self.ignorable.is_some_and(|value| value.as_bool() != Some(true)) {
            return Err(bad("ignorable", "is not true"));
        }
        Ok(Event {
            name: match event_type.plain() {
                Some(plain) => json.text().slice_of(plain),
                None => Text::from(event_type.decode_lossy().into_owned()),
            },
            seq: seq
                .as_natural()
                .map(Seq)
                .ok_or(bad("seq", "is not a non-negative safe integer"))?,
            time: time.as_safe_integer().ok_or(bad("time", "is not a safe integer"))?,
            data: json.cut(data),
            ignorable: self.ignorable.is_some(),
            surface_op: self.surface_op.map(|value| json.cut(value)),
            source_event_seqs: self.source_event_seqs.map(|value| json.cut(value)),
            json: json.clone(),
        })
    }
}
