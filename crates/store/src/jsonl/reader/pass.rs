//! One reading of a log, from the beginning or from a mark.

use std::{io, sync::Arc};

use turnkeep_log::{
    Seq, SessionHeader, Text,
    records::{Problem, decode},
};

use super::{LogRead, Progress, ReadRequest, intake::Intake};
use crate::{
    error::Cancelled,
    jsonl::{
        bytes::FileBytes,
        failure::{LogFailure, Subject},
        frames::{DecodeError, Decoder, FrameScan, scan_frame, text_of},
        fs::{File, FileStat},
        head::{decode_failure, frame_failed, header_line, headerless},
        layout::Encoding,
        root::Root,
        seal::{Ending, Seal},
        tail::{Tail, TailKind, judge_frames, zeroed_lines},
    },
    outline::Outline,
    seam::EventRange,
};

/// How much of a file is read at once.
const STEP: usize = 256 << 10;

/// What follows the last record is held in memory up to this length at least. Several batches may be
/// unsynced at once, each as long as a frame may be.
const LONG_TAIL: u64 = 64 << 20;

/// How many bytes of lines are taken at once, so that there are places to start from between them.
const PART: usize = 16 << 10;

pub(super) struct Pass<'a> {
    root: &'a Root,
    request: &'a ReadRequest<'a>,
    subject: Subject<'a>,
    bytes: FileBytes<'a>,
    header: Option<SessionHeader>,
    intake: Intake<'a>,
    /// Where the last accepted record ends.
    at: u64,
    /// The last accepted record, and what lies behind it.
    ending: Ending,
    /// Where enough has been read, though the log goes on.
    enough: Option<u64>,
}

impl<'a> Pass<'a> {
    /// Reads an open log, whose state was taken, up to an end.
    pub(super) fn read(
        root: &'a Root,
        request: &'a ReadRequest<'a>,
        file: &'a dyn File,
        stat: FileStat,
        end: u64,
    ) -> Result<LogRead, LogFailure> {
        // Who asks for the whole log wants it checked, too.
        let known = request
            .known
            .filter(|known| request.range != EventRange::ALL && known.still_holds(&stat))
            // What was taken back since does not count, though it may still be there.
            .filter(|known| known.end <= end);
        if let Some(known) = known
            && let Some(mark) = known.marks.before(request.range.offset)
        {
            let mut pass =
                Self::new(root, request, file, end, mark.seq, Arc::clone(&known.outline));
            pass.at = mark.offset;
            // What is known need not be read to its end, only as far as it is wanted.
            let wanted = request.range.length.map(|some| request.range.offset.saturating_add(some));
            pass.enough = wanted.filter(|wanted| *wanted <= known.next.0);
            match pass.run() {
                Ok(tail)
                    if pass.has_enough() && (pass.enough.is_some() || pass.at >= known.end) =>
                {
                    return Ok(pass.finish_from(stat, known, tail));
                }
                // Perhaps what was known is no longer there, though the file is the same. From the
                // beginning it will show, and lines are counted from there.
                Ok(_) | Err(LogFailure::Corrupt(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        let mut pass = Self::new(root, request, file, end, Seq(0), Arc::default());
        let tail = pass.run()?;
        let next = pass.intake.records().next_seq();
        let (events, marks, outline) = pass.intake.finish();
        let progress = Progress { file: stat, end: pass.at, next, marks, outline };
        let (header, ending) = (pass.header, Some(pass.ending));
        Ok(LogRead { header, events, progress, went_to_end: true, tail, ending })
    }

    fn new(
        root: &'a Root,
        request: &'a ReadRequest<'a>,
        file: &'a dyn File,
        end: u64,
        first: Seq,
        outline: Arc<Outline>,
    ) -> Self {
        Self {
            root,
            request,
            subject: Subject { id: request.id, path: request.path },
            bytes: FileBytes::new(file, end, STEP),
            header: None,
            intake: Intake::new(root, request, first, outline),
            at: 0,
            ending: Ending::clean(Seal::of(0, &[])),
            enough: None,
        }
    }

    fn finish_from(self, stat: FileStat, known: &Progress, tail: Option<Tail>) -> LogRead {
        let mut progress = known.clone();
        progress.file = stat;
        let went_to_end = self.enough.is_none();
        let next = self.intake.records().next_seq();
        let (events, marks, outline) = self.intake.finish();
        if self.at >= known.end {
            progress.end = self.at;
            progress.next = next;
            progress.outline = outline;
            progress.marks.continue_with(&marks, known.end);
        }
        LogRead { header: None, events, progress, went_to_end, tail, ending: None }
    }

    fn run(&mut self) -> Result<Option<Tail>, LogFailure> {
        let tail = match self.root.encoding {
            Encoding::Zstd => self.frames()?,
            Encoding::None => self.lines()?,
        };
        match self.intake.refused() {
            Some(refused) => Err(self.subject.gate(refused)),
            None => Ok(tail),
        }
    }

    fn has_enough(&self) -> bool {
        self.enough.is_none_or(|enough| self.intake.records().next_seq().0 >= enough)
    }

    /// Whether the reading stops before the log does.
    fn stops(&self) -> Result<bool, LogFailure> {
        if self.request.cancel.is_cancelled() {
            return Err(LogFailure::Cancelled(Cancelled { operation: self.request.operation }));
        }
        Ok(self.enough.is_some() && self.has_enough())
    }

    fn take_header(&mut self, line: &str) -> Result<(), LogFailure> {
        let header = SessionHeader::parse(line, Some(self.request.id));
        self.header = Some(header.map_err(|error| self.subject.header(&error))?);
        Ok(())
    }

    fn headerless(&self) -> LogFailure {
        headerless(self.subject, self.root.encoding)
    }
}

/// Logs of frames.
impl Pass<'_> {
    fn frames(&mut self) -> Result<Option<Tail>, LogFailure> {
        let subject = self.subject;
        let cannot_read = |source: io::Error| subject.io("read", source);
        let mut decoder = Decoder::new(self.root.max_frame_bytes).map_err(cannot_read)?;
        let mut least = 1;
        while self.at < self.bytes.end() && !self.stops()? {
            self.bytes.fill(self.at, least).map_err(cannot_read)?;
            let bytes = self.bytes.held();
            let problem = match scan_frame(bytes) {
                FrameScan::Complete(frame) => match decoder.decode(bytes, frame) {
                    Ok(text) => {
                        let record = Seal::of_frame(self.at, bytes, frame);
                        self.take_frame(&text)?;
                        self.ending = Ending::clean(record);
                        self.at += frame.len as u64;
                        least = 1;
                        continue;
                    }
                    Err(DecodeError::Invalid(_)) => Some(frame_failed(self.at)),
                    Err(error) => return Err(decode_failure(self.root, subject, self.at, error)),
                },
                FrameScan::Invalid(problem) => Some(format!("{problem} at byte {}", self.at)),
                FrameScan::Incomplete => {
                    least = bytes.len() + 1;
                    if !self.bytes.reaches_end() {
                        continue;
                    }
                    None
                }
            };
            self.hold_to_end(self.at)?;
            let bytes = self.bytes.held();
            return match judge_frames(self.at, bytes, problem.as_deref(), &mut decoder) {
                Ok(_) if self.at == 0 => Err(self.headerless()),
                Ok(tail) => {
                    self.ending.tail = Seal::of(self.at, bytes);
                    Ok(Some(tail))
                }
                Err(damage) => Err(subject.corrupt(&damage.problem)),
            };
        }
        if self.at == 0 { Err(self.headerless()) } else { Ok(None) }
    }

    /// Holds all that follows, to judge it as a whole: unless no append can have left as much.
    fn hold_to_end(&mut self, from: u64) -> Result<(), LogFailure> {
        let most = self.root.max_frame_bytes.saturating_mul(2).max(LONG_TAIL);
        let length = self.bytes.end().saturating_sub(from);
        if length > most {
            return Err(self.subject.unsupported(format!(
                "session \"{}\": the {length} bytes from byte {from} on make no record, and are more \
                 than this build judges at once",
                self.subject.id
            )));
        }
        self.bytes.fill_all(from).map_err(|source| self.subject.io("read", source))
    }

    fn take_frame(&mut self, text: &Text) -> Result<(), LogFailure> {
        if self.at == 0 {
            return self.take_header(header_line(text, self.subject)?);
        }
        self.intake.take(self.at, text);
        match self.intake.records().problem() {
            None => Ok(()),
            Some(Problem::Unterminated { .. }) => {
                Err(self.subject.corrupt("complete frame contains a torn JSONL record"))
            }
            Some(problem) => Err(self.subject.records(problem)),
        }
    }
}

/// Logs of plain lines.
impl Pass<'_> {
    fn lines(&mut self) -> Result<Option<Tail>, LogFailure> {
        if self.at == 0 {
            self.first_line()?;
        }
        let subject = self.subject;
        let cannot_read = |source: io::Error| subject.io("read", source);
        // Where the next part begins, which runs ahead of the accepted records after a problem.
        let mut from = self.at;
        // Where lines end and zeros begin, once there has been a NUL byte.
        let mut zeros = None;
        let mut least = 1;
        while from < zeros.unwrap_or(self.bytes.end()) && !self.stops()? {
            self.bytes.fill(from, least).map_err(cannot_read)?;
            let left = zeros.unwrap_or(self.bytes.end()) - from;
            let held = self.bytes.held();
            let held = usize::try_from(left).ok().and_then(|left| held.get(..left)).unwrap_or(held);
            let some = held.get(..PART).unwrap_or(held);
            let feed = memchr::memrchr(b'\n', some).or_else(|| memchr::memchr(b'\n', held));
            let part = match feed {
                Some(feed) => held.get(..=feed).unwrap_or(held),
                None if (held.len() as u64) < left => {
                    least = held.len() + 1;
                    continue;
                }
                None => held,
            };
            if zeros.is_none() && memchr::memchr(0, part).is_some() {
                self.hold_to_end(from)?;
                let rest = self.bytes.held();
                zeros = Some(from + zeroed_lines(from, rest).unwrap_or(rest.len()) as u64);
                continue;
            }
            let accepted = self.intake.take_bytes(from, part, &text_of(part));
            let lines = usize::try_from(accepted).ok().and_then(|accepted| part.get(..accepted));
            if let Some(lines) = lines.filter(|lines| !lines.is_empty()) {
                self.ending = Ending::clean(Seal::of_last_line(from, lines));
            }
            self.at += accepted;
            from += part.len() as u64;
            least = 1;
        }
        self.judge_lines()
    }

    fn first_line(&mut self) -> Result<(), LogFailure> {
        let mut least = 1;
        loop {
            self.bytes.fill(0, least).map_err(|source| self.subject.io("read", source))?;
            let bytes = self.bytes.held();
            if let Some(feed) = memchr::memchr(b'\n', bytes) {
                let line = text_of(bytes.get(..feed).unwrap_or(bytes));
                self.at = feed as u64 + 1;
                self.ending =
                    Ending::clean(Seal::of_last_line(0, bytes.get(..=feed).unwrap_or(bytes)));
                return self.take_header(&line);
            }
            least = bytes.len() + 1;
            if self.bytes.reaches_end() {
                return Err(self.headerless());
            }
        }
    }

    fn judge_lines(&mut self) -> Result<Option<Tail>, LogFailure> {
        if self.at >= self.bytes.end() || self.enough.is_some() {
            return Ok(None);
        }
        let records = self.intake.records();
        records.committed().map_err(|problem| self.subject.records(problem))?;
        let torn = matches!(records.problem(), Some(Problem::Unterminated { .. }));
        self.hold_to_end(self.at)?;
        let bytes = self.bytes.held();
        let kind = match zeroed_lines(self.at, bytes) {
            Some(_) => TailKind::Zeroed,
            None if torn => TailKind::Torn,
            None => TailKind::Uncommitted,
        };
        self.ending.tail = Seal::of(self.at, bytes);
        let legible = bytes.contains(&b'\n') || decode(&text_of(bytes)).is_ok();
        Ok(Some(Tail { kind, legible }))
    }
}
