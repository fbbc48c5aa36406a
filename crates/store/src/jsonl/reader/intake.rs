//! From the text of a file to events, and places to find them again.

use std::sync::Arc;

use turnkeep_log::{Event, GateError, RecordScan, Seq, Text, records::end_of_lines};

use super::{Mark, Marks, ReadRequest};
use crate::{jsonl::root::Root, outline::Outline, shell::intake};

/// Takes the records of a file part by part, checks them all, keeps those that are wanted, and
/// notes where they are.
pub(super) struct Intake<'a> {
    log: intake::Intake<'a>,
    pub(super) marks: Marks,
}

impl<'a> Intake<'a> {
    /// For the part of a log that begins with this event, and what is known of what comes before.
    pub(super) fn new(
        root: &'a Root,
        request: &'a ReadRequest<'a>,
        first: Seq,
        outline: Arc<Outline>,
    ) -> Self {
        let mut log = intake::Intake::new(request.id, &root.vocabulary, request.range, first);
        log.outline = Some(outline);
        Self { log, marks: Marks::default() }
    }

    pub(super) fn records(&self) -> &RecordScan {
        &self.log.records
    }

    /// Why the records, though in order, cannot be understood.
    pub(super) fn refused(&self) -> Option<&GateError> {
        self.log.refused.as_ref()
    }

    pub(super) fn finish(self) -> (Vec<Event>, Marks, Arc<Outline>) {
        (self.log.events, self.marks, self.log.outline.unwrap_or_default())
    }

    /// Takes the next part, which begins at `offset` of the file.
    pub(super) fn take(&mut self, offset: u64, text: &Text) {
        let mark = Mark { offset, seq: self.records().next_seq() };
        if self.log.take(text) {
            self.marks.add(mark);
        }
    }

    /// Takes the next part, given as bytes and as text. Returns how many of the bytes were
    /// accepted, which is all of them until there is a problem.
    pub(super) fn take_bytes(&mut self, offset: u64, bytes: &[u8], text: &Text) -> u64 {
        if self.records().problem().is_some() {
            self.take(offset, text);
            return 0;
        }
        let before = self.records().accepted_lines();
        self.take(offset, text);
        // Counted in the bytes: invalid UTF-8 has another length in the text.
        end_of_lines(bytes, self.records().accepted_lines() - before) as u64
    }
}
