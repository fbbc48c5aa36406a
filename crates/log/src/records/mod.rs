//! From the text of a log to its events.
//!
//! After its header, a log is one record a line: an event, or a [packed row](crate::packed) that
//! stands for several. A reader keeps the records that continue the log, from the first on, and
//! meets one of three ends: the text is used up; the last line has no line feed; or a line is no
//! record, or does not continue the log. What such damage means depends on where it is. Before the
//! last finished turn it is corruption; after it, it is what a crash leaves, and the log ends
//! before it. [`RecordScan`] tells the two apart.

mod scan;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod feeding_tests;

pub use scan::{MAX_UNPACKED_BYTES, Problem, RecordScan};

use crate::{
    envelope::{Envelope, Members, Named},
    event::{Event, EventError},
    id::Seq,
    packed::Row,
    text::Text,
};

/// Why a line is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is no event either.
    #[error(transparent)]
    Event(#[from] EventError),
    /// It is marked as a packed row, and malformed.
    #[error("packed row {problem}")]
    Row {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// It stands for more text than a reader will hold.
    #[error("record stands for more text than can be read at once")]
    TooLong,
}

/// The events of one line, wherever in a log it stands.
///
/// # Errors
///
/// The line is neither an event nor a packed row.
pub fn decode(line: &Text) -> Result<Vec<Event>, RecordError> {
    let mut events = Vec::new();
    let mut room = MAX_UNPACKED_BYTES;
    Record::read(line)?.unfold(line, &mut room, &mut events)?;
    Ok(events)
}

/// Decodes UTF-8, with U+FFFD for what is not: readers of the format take such logs.
///
/// A replaced byte sequence changes its length, so places in the text are not places in the bytes.
/// Line feeds are not touched: count lines, and use [`end_of_lines`].
#[must_use]
pub fn decode_lossy(bytes: Vec<u8>) -> Text {
    let text = String::from_utf8(bytes);
    Text::from(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Where in `bytes` the first `lines` lines end, the last line feed included; the end of the bytes
/// when there are fewer.
#[must_use]
pub fn end_of_lines(bytes: &[u8], lines: u64) -> usize {
    let Some(last) = lines.checked_sub(1) else { return 0 };
    let mut ends = memchr::memchr_iter(b'\n', bytes);
    let end = usize::try_from(last).ok().and_then(|last| ends.nth(last));
    end.map_or(bytes.len(), |end| end + 1)
}

/// One checked line.
enum Record<'a> {
    Event(Envelope<'a>),
    Row(Row<'a>),
}

impl<'a> Record<'a> {
    fn read(line: &'a str) -> Result<Self, RecordError> {
        let (json, members) = Members::find(line)?;
        Ok(match members.named()? {
            Named::Row(tag) => Self::Row(Row::read(tag, &members)?),
            Named::Event(event_type) => Self::Event(Envelope::check(json, event_type, &members)?),
        })
    }

    fn first_seq(&self) -> Seq {
        match self {
            Self::Event(envelope) => envelope.seq,
            Self::Row(row) => row.first_seq(),
        }
    }

    /// Whether a turn is finished with this record. Rows hold streamed deltas only.
    fn ends_turn(&self) -> bool {
        matches!(self, Self::Event(envelope) if envelope.event_type == "turn/end")
    }

    /// Appends the record's events, which share the text of `line` where they can. What they need
    /// beyond it is taken from `room`.
    fn unfold(
        &self,
        line: &Text,
        room: &mut usize,
        out: &mut Vec<Event>,
    ) -> Result<(), RecordError> {
        match self {
            Self::Row(row) => row.unpack(room, out),
            Self::Event(envelope) => {
                let more = envelope.expanded_len();
                *room = room.checked_sub(more).ok_or(RecordError::TooLong)?;
                out.push(Event::from_envelope(line, envelope)?);
                Ok(())
            }
        }
    }
}
