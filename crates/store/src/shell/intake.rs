//! From text to the events that are wanted.

use std::sync::Arc;

use turnkeep_log::{Event, GateError, RecordScan, Seq, SessionId, Text, Vocabulary, gate};

use crate::{outline::Outline, seam::EventRange};

/// Takes the records of a log part by part, checks them all and keeps those that are wanted.
#[derive(Debug)]
pub(crate) struct Intake<'a> {
    id: &'a SessionId,
    vocabulary: &'a Vocabulary,
    range: EventRange,
    pub(crate) records: RecordScan,
    pub(crate) events: Vec<Event>,
    /// Why the records, though in order, cannot be understood.
    pub(crate) refused: Option<GateError>,
    /// What the events say in short, for whoever wants to know.
    pub(crate) outline: Option<Arc<Outline>>,
}

impl<'a> Intake<'a> {
    /// For the part of a log that begins with the event `first`.
    pub(crate) fn new(
        id: &'a SessionId,
        vocabulary: &'a Vocabulary,
        range: EventRange,
        first: Seq,
    ) -> Self {
        let (records, events) = (RecordScan::new(first), Vec::new());
        Self { id, vocabulary, range, records, events, refused: None, outline: None }
    }

    /// Takes the next part. Whether it brought any event.
    pub(crate) fn take(&mut self, text: &Text) -> bool {
        self.records.feed(text);
        let mut events = self.records.take_events();
        let brought = !events.is_empty();
        self.check(&events);
        if let Some(outline) = self.outline.as_mut().filter(|_| brought) {
            Arc::make_mut(outline).extend(&events);
        }
        self.keep(&mut events);
        brought
    }

    /// Keeps those of consecutive events that are wanted: all of them, most of the time.
    fn keep(&mut self, events: &mut Vec<Event>) {
        let range = self.range;
        let end = range.length.map_or(u64::MAX, |length| range.offset.saturating_add(length));
        let is_wanted = |event: &Event| (range.offset..end).contains(&event.seq().0);
        if !events.first().is_some_and(is_wanted) || !events.last().is_some_and(is_wanted) {
            events.retain(is_wanted);
        }
        self.events.append(events);
    }

    /// A type that this build does not know counts before a malformed message, wherever the two
    /// are: in the log of a newer build nobody can say what is malformed.
    fn check(&mut self, events: &[Event]) {
        if matches!(self.refused, Some(GateError::Unsupported { .. })) {
            return;
        }
        if let Err(refused) = gate::check(self.id, events, self.vocabulary)
            && (self.refused.is_none() || matches!(refused, GateError::Unsupported { .. }))
        {
            self.refused = Some(refused);
        }
    }
}
