//! The mark that parts what a session was taken up with from what happened in it since.
//!
//! `session/end-seed` says nothing but where it stands: the events before it were there when the
//! session was taken up, be it forked or resumed. A log may hold several; the last one counts.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::{
    event::{Event, Span},
    id::Seq,
    text::Text,
};

const MARK: &str = "session/end-seed";

/// Whether an event is the mark.
#[must_use]
pub fn is_mark(event: &Event) -> bool {
    event.event_type() == MARK
}

/// The mark to append to a log that ends with `last` when its session is taken up at `time`,
/// milliseconds since the epoch; none when it ends with one already, so that to resume a session
/// twice writes nothing the second time.
#[must_use]
pub fn mark_after(last: Option<&Event>, time: i64) -> Option<Event> {
    match last {
        Some(last) if is_mark(last) => None,
        Some(last) => Some(mark(last.seq().plus(1), time)),
        None => Some(mark(Seq(0), time)),
    }
}

fn mark(seq: Seq, time: i64) -> Event {
    let mut text = String::from("{\"type\":\"");
    let name = Span::new(text.len(), text.len() + MARK.len());
    let _ = write!(text, "{MARK}\",\"seq\":{seq},\"time\":{time},\"data\":");
    let data = Span::new(text.len(), text.len() + "{}".len());
    text.push_str("{}}");
    Event::written(Text::from(text), name, seq, time, data)
}
