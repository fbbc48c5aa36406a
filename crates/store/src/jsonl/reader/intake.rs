//! From text to the events that are wanted.

use turnkeep_log::{Event, GateError, RecordScan, Seq, Text, gate, records::end_of_lines};

use super::{Mark, Marks, ReadRequest};
use crate::jsonl::root::Root;

/// Takes the records of a log part by part, checks them all and keeps those that are wanted.
pub(super) struct Intake<'a> {
    root: &'a Root,
    request: &'a ReadRequest<'a>,
    pub(super) records: RecordScan,
    pub(super) events: Vec<Event>,
    pub(super) marks: Marks,
    /// Why the records, though in order, cannot be understood.
    pub(super) refused: Option<GateError>,
}

impl<'a> Intake<'a> {
    /// For the part of a log that begins with this event.
    pub(super) fn new(root: &'a Root, request: &'a ReadRequest<'a>, first: Seq) -> Self {
        Self {
            root,
            request,
            records: RecordScan::new(first),
            events: Vec::new(),
            marks: Marks::default(),
            refused: None,
        }
    }

    /// Takes the next part, which begins at `offset` of the file.
    pub(super) fn take(&mut self, offset: u64, text: &Text) {
        let mark = Mark { offset, seq: self.records.next_seq() };
        self.records.feed(text);
        let mut events = self.records.take_events();
        if !events.is_empty() {
            self.marks.add(mark);
        }
        self.check(&events);
        self.keep(&mut events);
    }

    /// Keeps those of consecutive events that are wanted: all of them, most of the time.
    fn keep(&mut self, events: &mut Vec<Event>) {
        let range = self.request.range;
        let end = range.length.map_or(u64::MAX, |length| range.offset.saturating_add(length));
        let is_wanted = |event: &Event| (range.offset..end).contains(&event.seq().0);
        if !events.first().is_some_and(is_wanted) || !events.last().is_some_and(is_wanted) {
            events.retain(is_wanted);
        }
        self.events.append(events);
    }

    /// Takes the next part, given as bytes and as text. Returns how many of the bytes were
    /// accepted, which is all of them until there is a problem.
    pub(super) fn take_bytes(&mut self, offset: u64, bytes: &[u8], text: &Text) -> u64 {
        if self.records.problem().is_some() {
            self.take(offset, text);
            return 0;
        }
        let before = self.records.accepted_lines();
        self.take(offset, text);
        // Counted in the bytes: invalid UTF-8 has another length in the text.
        end_of_lines(bytes, self.records.accepted_lines() - before) as u64
    }

    /// A type that this build does not know counts before a malformed message, wherever the two
    /// are: in the log of a newer build nobody can say what is malformed.
    fn check(&mut self, events: &[Event]) {
        if matches!(self.refused, Some(GateError::Unsupported { .. })) {
            return;
        }
        if let Err(refused) = gate::check(self.request.id, events, &self.root.vocabulary)
            && (self.refused.is_none() || matches!(refused, GateError::Unsupported { .. }))
        {
            self.refused = Some(refused);
        }
    }
}
