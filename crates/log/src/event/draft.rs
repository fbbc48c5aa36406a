//! Events that are about to be appended.

use std::fmt::Write as _;

use crate::{
    envelope::{self, Members, bad},
    event::{Event, EventError, one_line},
    id::Seq,
    json::{Json, JsonText, write_compact, write_str},
    text::Text,
};

/// An event whose place in a log is not settled yet: `seq` and `time` may be missing.
///
/// ```
/// use turnkeep_log::{EventDraft, Seq, json::JsonText};
///
/// let data = JsonText::parse(&r#"{"todos":[]}"#.into())?;
/// let event = EventDraft::new("todo/write", &data).complete(Seq(7), 1_700_000_000_000)?;
/// assert_eq!(
///     event.text().as_str(),
///     r#"{"type":"todo/write","seq":7,"time":1700000000000,"data":{"todos":[]}}"#
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventDraft {
    /// One line, without white space around it.
    text: Text,
    seq: Option<Seq>,
    time: Option<i64>,
    /// Where in the text the missing members belong: after `seq` when that is there, else after
    /// `type`.
    gap: usize,
}

/// Why a draft cannot become the event that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteError {
    /// The draft names another place in the log.
    #[error("event carries seq {given} where {expected} comes next")]
    Seq {
        /// The place it would get.
        expected: Seq,
        /// The place it names.
        given: Seq,
    },
    /// With its missing members filled in, the draft is no event.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl EventDraft {
    /// A draft of this type with this payload.
    #[must_use]
    pub fn new(event_type: &str, data: &JsonText) -> Self {
        let mut text = String::from("{\"type\":");
        write_str(&mut text, event_type);
        let gap = text.len();
        text.push_str(",\"data\":");
        write_line(&mut text, data);
        text.push('}');
        Self { text: Text::from(text), seq: None, time: None, gap }
    }

    /// Reads an event that may lack `seq` and `time`. Its text is kept as [`Event::parse`] keeps
    /// it.
    ///
    /// # Errors
    ///
    /// As [`Event::parse`]. Stricter than a reader is, `ignorable` may only be `true`, so that
    /// what the writer meant and what every reader takes it for are the same.
    pub fn parse(line: &Text) -> Result<Self, EventError> {
        let line = one_line(line)?;
        let (json, members) = Members::find(&line)?;
        members.event_type()?;
        members.data.ok_or(bad("data", "is missing"))?;
        if members.ignorable.is_some_and(|value| value.as_bool() != Some(true)) {
            return Err(bad("ignorable", "is not true"));
        }
        let text = line.slice_of(json.text());
        let end_of = |part: Json<'_>| {
            let start = part.text().as_ptr() as usize - json.text().as_ptr() as usize;
            start + part.text().len()
        };
        Ok(Self {
            seq: members.seq.map(envelope::seq).transpose()?,
            time: members.time.map(envelope::time).transpose()?,
            gap: members.seq.or(members.event_type).map_or(1, end_of),
            text,
        })
    }

    /// Adds how the event joins the model's surface.
    #[must_use]
    pub fn surface_op(self, op: &JsonText) -> Self {
        self.with("surfaceOp", |text| write_line(text, op))
    }

    /// Adds the earlier events that this one came from.
    #[must_use]
    pub fn source_event_seqs(self, seqs: &[Seq]) -> Self {
        self.with("sourceEventSeqs", |text| {
            text.push('[');
            for (at, seq) in seqs.iter().enumerate() {
                let _ = write!(text, "{}{seq}", if at == 0 { "" } else { "," });
            }
            text.push(']');
        })
    }

    /// Marks the event as one that a reader which does not know its type may skip.
    #[must_use]
    pub fn ignorable(self) -> Self {
        self.with("ignorable", |text| text.push_str("true"))
    }

    fn with(mut self, key: &str, write: impl FnOnce(&mut String)) -> Self {
        let mut text = self.text.strip_suffix('}').unwrap_or_default().to_owned();
        let _ = write!(text, ",\"{key}\":");
        write(&mut text);
        text.push('}');
        self.text = Text::from(text);
        self
    }

    /// The place in the log that the draft names.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        self.seq
    }

    /// The event at `seq`.
    ///
    /// Missing members are put in where writers have them: `seq` after `type`, `time` after `seq`.
    ///
    /// # Errors
    ///
    /// The draft names another seq; or what [`Event::parse`] would refuse: a number filled in that
    /// is no safe integer, a type that is the name of a packed row, `sourceEventSeqs` that are
    /// malformed or more than come before `seq`.
    pub fn complete(self, seq: Seq, time_if_missing: i64) -> Result<Event, CompleteError> {
        if let Some(given) = self.seq.filter(|given| *given != seq) {
            return Err(CompleteError::Seq { expected: seq, given });
        }
        if self.seq.is_some() && self.time.is_some() {
            return Ok(Event::parse(&self.text)?);
        }
        let (before, after) = self.text.split_at_checked(self.gap).unwrap_or_default();
        let mut text = String::with_capacity(self.text.len() + 64);
        text.push_str(before);
        if self.seq.is_none() {
            let _ = write!(text, ",\"seq\":{seq}");
        }
        if self.time.is_none() {
            let _ = write!(text, ",\"time\":{time_if_missing}");
        }
        text.push_str(after);
        Ok(Event::parse(&Text::from(text))?)
    }
}

fn write_line(out: &mut String, value: &JsonText) {
    if value.text().contains('\n') {
        write_compact(out, value.json());
    } else {
        out.push_str(value.text());
    }
}
