//! The scan over a log's records.

use std::ops::Range;

use super::{Record, RecordError};
use crate::{
    event::{Event, EventError},
    id::Seq,
    text::Text,
};

/// How many bytes of memory the events unpacked from rows may take before they are taken from a
/// scan: some six million streamed deltas.
pub const MAX_UNPACKED_BYTES: usize = 2 << 30;

/// Reads events out of a log's text, as far as they continue it.
///
/// ```
/// use turnkeep_log::{Seq, records::RecordScan};
///
/// let mut scan = RecordScan::new(Seq(0));
/// scan.feed(&concat!(
///     r#"{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}"#, "\n",
///     r#"{"type":"turn/end","seq":1,"time":9,"data":{"turn":1,"reason":{"kind":"completed"}}}"#, "\n",
///     r#"{"type":"turn/sta"#,
/// ).into());
/// assert_eq!(scan.take_events().len(), 2);
/// assert_eq!(scan.next_seq(), Seq(2));
/// assert!(scan.problem().is_some());
/// assert!(scan.committed().is_ok(), "every finished turn was read");
/// ```
#[derive(Debug)]
pub struct RecordScan {
    next: Seq,
    events: Vec<Event>,
    /// How much text the events not yet taken may need, and how much of that is left.
    limit: usize,
    room: usize,
    lines: u64,
    bytes: u64,
    accepted_lines: u64,
    accepted_bytes: u64,
    problem: Option<Problem>,
    /// Whether a turn ends at or after the problem.
    turn_ends_after: bool,
}

/// The first thing in a log that keeps a scan from going on. Lines count from 1, the header not
/// included.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A line is no record.
    #[error("unparsable committed event at line {line} ({cause})")]
    Unparsable {
        /// Which line.
        line: u64,
        /// Why it is none.
        cause: RecordError,
    },
    /// A record does not continue the log.
    #[error("seq gap in committed region at line {line} (expected {expected}, got {got})")]
    SeqGap {
        /// Which line.
        line: u64,
        /// The seq that comes next.
        expected: Seq,
        /// The seq of the record, of its first event if it is a row.
        got: Seq,
    },
    /// The text ends within a line.
    #[error("unterminated record at line {line}")]
    Unterminated {
        /// Which line.
        line: u64,
    },
    /// The events not yet taken that were unpacked from rows need more memory than
    /// [`MAX_UNPACKED_BYTES`], or than the bound that was [set](RecordScan::with_limit).
    ///
    /// A row of a few kilobytes on disk can be made to stand for terabytes. This is a bound of the reader,
    /// not damage to the log: never drop what comes after it.
    #[error("record at line {line} stands for more text than can be read at once")]
    TooLong {
        /// Which line.
        line: u64,
    },
}

impl RecordScan {
    /// A scan whose first record must start at `next`.
    #[must_use]
    pub fn new(next: Seq) -> Self {
        Self {
            next,
            events: Vec::new(),
            limit: MAX_UNPACKED_BYTES,
            room: MAX_UNPACKED_BYTES,
            lines: 0,
            bytes: 0,
            accepted_lines: 0,
            accepted_bytes: 0,
            problem: None,
            turn_ends_after: false,
        }
    }

    /// The same scan with another bound for [`Problem::TooLong`] than [`MAX_UNPACKED_BYTES`].
    #[must_use]
    pub fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self.room = bytes;
        self
    }

    /// Reads the lines of the next part of the log.
    ///
    /// The part starts where the one before it ended, at the start of a line. Only the last part
    /// may end within a line; that line is never accepted.
    pub fn feed(&mut self, text: &Text) {
        let whole = text.as_str();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', whole.as_bytes()) {
            self.line(text, start..end);
            start = end + 1;
        }
        if start < whole.len() {
            self.lines += 1;
            self.fail(Problem::Unterminated { line: self.lines });
        }
        self.bytes += whole.len() as u64;
    }

    fn line(&mut self, text: &Text, range: Range<usize>) {
        self.lines += 1;
        let end = self.bytes + range.end as u64 + 1;
        let line = text.get(range).unwrap_or_default();
        match Record::read(line) {
            Err(cause) => self.fail(Problem::Unparsable { line: self.lines, cause }),
            Ok(record) => {
                let got = record.first_seq();
                if got != self.next {
                    let (line, expected) = (self.lines, self.next);
                    self.fail(Problem::SeqGap { line, expected, got });
                } else if self.problem.is_none() {
                    self.accept(text, &record, end);
                }
                self.turn_ends_after |= self.problem.is_some() && record.ends_turn();
            }
        }
    }

    fn accept(&mut self, text: &Text, record: &Record<'_>, end: u64) {
        let before = self.events.len();
        match record.unfold(text, &mut self.room, &mut self.events) {
            Ok(()) => {
                self.next = self.next.plus(self.events.len() - before);
                self.accepted_lines = self.lines;
                self.accepted_bytes = end;
            }
            Err(RecordError::TooLong | RecordError::Event(EventError::TooLong)) => {
                self.fail(Problem::TooLong { line: self.lines });
            }
            Err(cause) => self.fail(Problem::Unparsable { line: self.lines, cause }),
        }
    }

    /// Only the first problem counts: after it, nothing is known to be in its place.
    fn fail(&mut self, problem: Problem) {
        self.problem.get_or_insert(problem);
    }

    /// The events accepted since the last call, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.room = self.limit;
        std::mem::take(&mut self.events)
    }

    /// The seq that continues what was accepted.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// How many bytes of the text come before the end of the last accepted record.
    ///
    /// Of the *text*: where invalid UTF-8 was replaced, count
    /// [`accepted_lines`](Self::accepted_lines) in the bytes it came from.
    #[must_use]
    pub fn accepted_bytes(&self) -> u64 {
        self.accepted_bytes
    }

    /// How many lines the accepted records take.
    #[must_use]
    pub fn accepted_lines(&self) -> u64 {
        self.accepted_lines
    }

    /// What the accepted records end at, when that is not the end of the text.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// Whether all finished turns were accepted.
    ///
    /// # Errors
    ///
    /// The problem, when the record it is about or a later one ends a turn: then it is no torn
    /// tail but a hole in what was written and acknowledged. [`Problem::TooLong`] always.
    pub fn committed(&self) -> Result<(), &Problem> {
        match &self.problem {
            Some(problem @ Problem::TooLong { .. }) => Err(problem),
            Some(problem) if self.turn_ends_after => Err(problem),
            _ => Ok(()),
        }
    }
}
