//! One event of a session log.

mod draft;

#[cfg(test)]
mod tests;

pub use draft::{CompleteError, EventDraft};

use std::{num::NonZeroU32, ops::Range};

use crate::{
    envelope::Envelope,
    id::Seq,
    json::{Json, JsonError, write_compact},
    text::Text,
};

/// The longest text an event may have, in bytes. No JavaScript reader can hold a longer string.
pub const MAX_EVENT_BYTES: usize = 1 << 30;

/// One event of a session log: its JSON text, with the envelope read and the payload left alone.
///
/// | key | what it is |
/// |---|---|
/// | `type` | what happened, such as `user/message` |
/// | `seq` | the event's index in its log |
/// | `time` | milliseconds since the epoch; may go backwards from one event to the next |
/// | `data` | any JSON value |
/// | `ignorable` | `true`: a reader that does not know the type may read on |
/// | `surfaceOp` | for the three types that make model messages: `"append"`, or an object that replaces a range |
/// | `sourceEventSeqs` | for the same types: the earlier events that this one came from |
///
/// Whatever an event was made from, three things hold for its text: it is one line, its type is
/// not the name of a packed row, and its `sourceEventSeqs` name every seq. So it can be written as
/// a line of a log as it is, and every build of the format can read it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    text: Text,
    name: Name,
    seq: Seq,
    time: i64,
    data: Span,
    surface_op: Option<Span>,
    source_event_seqs: Option<Span>,
    ignorable: bool,
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
    /// The text, or what it stands for, is longer than [`MAX_EVENT_BYTES`].
    #[error("event is longer than {MAX_EVENT_BYTES} bytes")]
    TooLong,
}

impl Event {
    /// Reads the envelope of an event from its JSON text, which is kept as it is.
    ///
    /// The text changes in two cases only: line feeds between its parts, as in pretty-printed
    /// JSON, go, with all the white space there, for a log has one line per event; and ranges in
    /// `sourceEventSeqs` are written out. Members that no rule names are kept in the text and not
    /// looked at. Where a key repeats, the last one counts.
    ///
    /// Numbers in `data` stay as they are spelled, `-0` and `1e400` included. JavaScript writers
    /// refuse what their own numbers cannot hold and write back; here nothing is lost, because
    /// nothing is converted.
    ///
    /// # Errors
    ///
    /// The text is no JSON object; `type`, `seq`, `time` or `data` is missing or of the wrong
    /// kind; `type` is the name of a packed row; `sourceEventSeqs` is no list of seqs and ranges,
    /// or names more events than come before this one.
    pub fn parse(text: &Text) -> Result<Self, EventError> {
        let text = one_line(text)?;
        let envelope = Envelope::read(&text)?;
        Self::from_envelope(&text, &envelope)
    }

    /// The event that an envelope of `text` describes. `text` has no line feed inside it.
    pub(crate) fn from_envelope(text: &Text, envelope: &Envelope<'_>) -> Result<Self, EventError> {
        if let Some(provenance) = envelope.provenance.filter(|list| list.has_ranges) {
            let whole = envelope.json.text();
            let length = whole.len().saturating_add(envelope.expanded_len());
            if length > MAX_EVENT_BYTES {
                return Err(EventError::TooLong);
            }
            let Range { start, end } = Span::of(provenance.list.text(), whole)?.range();
            let mut expanded = String::with_capacity(length);
            expanded.push_str(whole.get(..start).unwrap_or_default());
            provenance.expand(&mut expanded);
            expanded.push_str(whole.get(end..).unwrap_or_default());
            let expanded = Text::from(expanded);
            return Self::from_envelope(&expanded, &Envelope::read(&expanded)?);
        }
        let whole = envelope.json.text();
        let span = |part: Json<'_>| Span::of(part.text(), whole);
        Ok(Self {
            name: match envelope.event_type.plain() {
                Some(plain) => Name::Plain(Span::of(plain, whole)?),
                None => Name::Decoded(envelope.event_type.decode_lossy().into()),
            },
            seq: envelope.seq,
            time: envelope.time,
            data: span(envelope.data)?,
            surface_op: envelope.surface_op.map(span).transpose()?,
            source_event_seqs: envelope.provenance.map(|found| span(found.list)).transpose()?,
            ignorable: envelope.ignorable,
            text: text.slice_of(whole),
        })
    }

    /// An event whose text was just written, with where its type and its payload stand in it.
    pub(crate) fn written(text: Text, name: Span, seq: Seq, time: i64, data: Span) -> Self {
        let name = Name::Plain(name);
        let (surface_op, source_event_seqs, ignorable) = (None, None, false);
        Self { text, name, seq, time, data, surface_op, source_event_seqs, ignorable }
    }

    /// The event as a line of a log without packing: one JSON object, without a line feed.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// What happened.
    #[must_use]
    pub fn event_type(&self) -> &str {
        match &self.name {
            Name::Plain(span) => span.in_text(&self.text),
            Name::Decoded(name) => name,
        }
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
        self.json_at(self.data)
    }

    /// Whether a reader that does not know the type may read on.
    #[must_use]
    pub fn ignorable(&self) -> bool {
        self.ignorable
    }

    /// How a model-visible event joins the model's surface.
    #[must_use]
    pub fn surface_op(&self) -> Option<Json<'_>> {
        self.surface_op.map(|span| self.json_at(span))
    }

    /// The seqs of the earlier events this one came from: an array of numbers.
    #[must_use]
    pub fn source_event_seqs(&self) -> Option<Json<'_>> {
        self.source_event_seqs.map(|span| self.json_at(span))
    }

    fn json_at(&self, span: Span) -> Json<'_> {
        Json::checked(span.in_text(&self.text))
    }
}

/// The text itself, unless it has line feeds: those stand between the parts of a JSON text only,
/// and can go.
fn one_line(text: &Text) -> Result<Text, EventError> {
    let trimmed = text.trim_matches([' ', '\t', '\n', '\r']);
    if memchr::memchr(b'\n', trimmed.as_bytes()).is_none() {
        return Ok(text.clone());
    }
    let mut compact = String::with_capacity(trimmed.len());
    write_compact(&mut compact, Json::parse(trimmed)?);
    Ok(Text::from(compact))
}

/// What an event is called, where its text spells it plainly, or unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Plain(Span),
    Decoded(Box<str>),
}

/// Where a part stands in an event's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    /// Never 0, since every part stands inside an object.
    end: NonZeroU32,
}

impl Span {
    /// Where `part`, which was borrowed from `whole`, stands in it.
    fn of(part: &str, whole: &str) -> Result<Self, EventError> {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        if whole.len() > MAX_EVENT_BYTES {
            return Err(EventError::TooLong);
        }
        Ok(Self::new(start, start.saturating_add(part.len())))
    }

    /// A range of a text that is no longer than [`MAX_EVENT_BYTES`].
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let narrow = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: NonZeroU32::new(narrow(end)).unwrap_or(NonZeroU32::MIN) }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end.get() as usize
    }

    fn in_text(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }
}
