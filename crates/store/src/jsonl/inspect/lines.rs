//! Logs of plain lines.

use turnkeep_log::{
    Text,
    records::{Problem, end_of_lines},
};

use super::{
    inspection::{Inspection, Places, Stopped, text},
    resync::lost_sector,
    tracks::{Part, Segment},
};
use crate::verify::{Finding, FindingKind, Severity};

/// What the bytes behind the accepted records are, besides lines.
#[derive(Clone, Copy, Debug)]
struct Zeros {
    /// Where the line of the first NUL byte begins.
    line: u64,
    /// Whether a sector is lost from there on.
    lost: bool,
}

impl Inspection<'_> {
    pub(super) fn lines(&mut self) -> Result<(), Stopped> {
        self.frame = None;
        if !self.first_line()? || self.foreign {
            return Ok(());
        }
        // Where the accepted records end, which stays behind after a problem.
        let mut accepted = self.at;
        let mut zeros: Option<Zeros> = None;
        let mut least = 1;
        let mut line = 1;
        while self.at < self.end_of_lines(zeros) {
            self.step()?;
            self.bytes.fill(self.at, least)?;
            let held = self.bytes.held();
            if zeros.is_none()
                && let Some(nul) = memchr::memchr(0, held)
            {
                let before = held.get(..nul).unwrap_or_default();
                let start = memchr::memrchr(b'\n', before).map_or(0, |feed| feed + 1) as u64;
                let start = self.at + start;
                let lost = lost_sector(&mut self.ahead, start)?.is_some();
                zeros = Some(Zeros { line: start, lost });
                continue;
            }
            let left = self.end_of_lines(zeros) - self.at;
            let held = usize::try_from(left).ok().and_then(|left| held.get(..left)).unwrap_or(held);
            let part = match memchr::memrchr(b'\n', held) {
                Some(feed) => held.get(..=feed).unwrap_or(held),
                None if (held.len() as u64) < left => {
                    least = held.len() + 1;
                    continue;
                }
                None => held,
            };
            let part = part.to_vec();
            accepted += self.take_part(&part, line);
            line += memchr::memchr_iter(b'\n', &part).count() as u64;
            self.at += part.len() as u64;
            least = 1;
        }
        self.judge(accepted, zeros);
        self.behind_zeros(zeros)
    }

    fn end_of_lines(&self, zeros: Option<Zeros>) -> u64 {
        let end = self.bytes.end();
        zeros.filter(|zeros| zeros.lost).map_or(end, |zeros| zeros.line)
    }

    /// Reads the header; whether there is a first line.
    fn first_line(&mut self) -> Result<bool, Stopped> {
        let mut least = 1;
        loop {
            self.bytes.fill(0, least)?;
            let bytes = self.bytes.held();
            if let Some(feed) = memchr::memchr(b'\n', bytes) {
                let line = text(bytes.get(..feed).unwrap_or(bytes));
                self.at = feed as u64 + 1;
                self.take_header(&line);
                return Ok(true);
            }
            least = bytes.len() + 1;
            if self.bytes.reaches_end() {
                self.headerless(if bytes.is_empty() {
                    "the log is empty"
                } else {
                    "the log ends before its first line does"
                });
                return Ok(false);
            }
        }
    }

    /// Takes the next lines. Returns how many of their bytes a reader accepts.
    fn take_part(&mut self, part: &[u8], line: u64) -> u64 {
        let text = text(part);
        let accepted_before = self.scan.accepted_lines();
        let first = self.scan.next_seq();
        self.scan.feed(&text);
        let events = self.scan.take_events();
        self.check(&events, self.at, &text);
        let accepted = if self.stopped {
            0
        } else {
            end_of_lines(part, self.scan.accepted_lines() - accepted_before)
        };
        if self.scan.problem().is_none() {
            if let (Some(one), Some(last)) = (events.first(), events.last()) {
                let seqs = first.0..self.scan.next_seq().0;
                let (offset, end) = (self.at, self.at + part.len() as u64);
                let times = (one.time(), last.time());
                self.add(Segment { offset, end, part: Part::Whole, seqs }, times, None);
            }
            return accepted as u64;
        }
        self.stopped = true;
        let whole = memchr::memrchr(b'\n', part).map_or(0, |feed| feed + 1);
        let lines = part.get(..whole).unwrap_or_default();
        self.take_lines(&self::text(lines), 0, line, &Places::plain(self.at, lines));
        if whole < part.len() {
            let fragment: Text = self::text(part.get(whole..).unwrap_or_default());
            let start = self.at + whole as u64;
            self.torn_line(start, &fragment);
        }
        accepted as u64
    }

    /// A last line without its line feed.
    fn torn_line(&mut self, start: u64, fragment: &Text) {
        let length = self.bytes.end() - start;
        let message = format!("the log ends inside a line: {length} bytes without a line feed");
        let finding = Finding::new(FindingKind::TornTail, Severity::Incomplete, message);
        self.findings.add(finding.at(start).taking(length));
        self.take_torn(start, start + fragment.len() as u64, fragment);
    }

    /// Decides whether what is wrong is damage, or the end of an append that was never
    /// acknowledged, by whether a finished turn is among it.
    fn judge(&mut self, accepted: u64, zeros: Option<Zeros>) {
        let end = self.bytes.end();
        if accepted >= end {
            return;
        }
        // No line with a NUL byte in it is ever accepted.
        let zeroed = zeros.is_some_and(|zeros| zeros.lost);
        let problem = self.scan.problem().cloned();
        let (kind, what) = match (self.scan.committed(), &problem) {
            (Err(problem @ Problem::TooLong { line }), _) => {
                let finding =
                    Finding::new(FindingKind::TooLarge, Severity::Unsupported, problem.to_string());
                let finding = finding.at(accepted).in_line(*line);
                self.findings.add(finding);
                self.refuse("format_unsupported");
                return;
            }
            (Err(_), _) => {
                self.refuse("corrupt");
                if let Some(zeros) = zeros.filter(|zeros| zeros.lost) {
                    self.tail_of_lines(FindingKind::ZeroedTail, zeros.line, "with lost sectors");
                }
                return;
            }
            (Ok(()), _) if zeroed => (FindingKind::ZeroedTail, "with lost sectors"),
            // Which has been told.
            (Ok(()), Some(Problem::Unterminated { .. })) => return,
            (Ok(()), _) => (FindingKind::UncommittedTail, "with lines that do not continue it"),
        };
        for finding in self.findings.iter_mut() {
            let of_record = matches!(
                finding.kind,
                FindingKind::BadRecord | FindingKind::SeqGap | FindingKind::Fork
            );
            if of_record && finding.severity == Severity::Damaged {
                finding.severity = Severity::Incomplete;
            }
        }
        self.tail_of_lines(kind, accepted, what);
    }

    fn tail_of_lines(&mut self, kind: FindingKind, start: u64, what: &str) {
        let length = self.bytes.end() - start;
        let message = format!("the log ends {what}: {length} bytes that no finished turn is among");
        let before = self.scan.next_seq().0;
        let finding = Finding::new(kind, Severity::Incomplete, message).at(start).taking(length);
        if let Some(finding) = self.findings.add(finding).and_then(|at| self.findings.get_mut(at)) {
            finding.before = before;
        }
    }

    /// Looks for records behind lost sectors: no reader takes them, but they are there.
    fn behind_zeros(&mut self, zeros: Option<Zeros>) -> Result<(), Stopped> {
        let Some(zeros) = zeros.filter(|zeros| zeros.lost) else { return Ok(()) };
        self.silent = true;
        self.at = zeros.line;
        let mut least = 1;
        while self.at < self.bytes.end() {
            self.step()?;
            self.bytes.fill(self.at, least)?;
            let held = self.bytes.held();
            let part = match memchr::memrchr(b'\n', held) {
                Some(feed) => held.get(..=feed).unwrap_or(held),
                None if self.bytes.reaches_end() => return Ok(()),
                None => {
                    least = held.len() + 1;
                    continue;
                }
            };
            let part = part.to_vec();
            self.take_lines(&text(&part), 0, 1, &Places::plain(self.at, &part));
            self.at += part.len() as u64;
            least = 1;
        }
        Ok(())
    }
}
