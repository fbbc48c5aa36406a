//! One log, read to its end whatever is wrong with it.

use std::io;

use turnkeep_log::{
    Event, HeaderError, HeaderProblem, RecordScan, Seq, SessionHeader, SessionId, Text, gate,
    records::{Problem, decode},
};

use super::{
    resync::Wanted,
    tracks::{Part, Segment, Step, Tracks},
};
use crate::{
    jsonl::{
        bytes::FileBytes,
        frames::{Decoder, text_of},
        fs::{File, FileStat},
        layout::Encoding,
        root::Root,
    },
    seam::Cancel,
    verify::{Finding, FindingKind, Findings, Progress, Severity, finding_of},
};

/// How much of a file is read at once.
pub(super) const STEP: usize = 256 << 10;

/// Which log is looked at, and for whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) root: &'a Root,
    pub(super) id: &'a SessionId,
    /// The encoding of this log, which need not be that of the root.
    pub(super) encoding: Encoding,
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a Cancel,
}

/// What was found in one log.
#[derive(Debug)]
pub(super) struct Inspected {
    /// The file, as it was before it was read.
    pub(super) file: FileStat,
    /// How far it was read.
    pub(super) end: u64,
    /// The header, when it can be read, whatever session it names.
    pub(super) header: Option<SessionHeader>,
    /// Whether the log is of another format, which was not looked into.
    pub(super) foreign: bool,
    /// How many events follow each other without a fault.
    pub(super) events: u64,
    /// The kind of error that a reader answers with.
    pub(super) refused: Option<&'static str>,
    pub(super) findings: Findings,
    pub(super) tracks: Tracks,
    /// What can be made out of broken frames and lines.
    pub(super) torn: Vec<Segment>,
}

/// Why an inspection ended early.
#[derive(Debug)]
pub(super) enum Stopped {
    Cancelled,
    Io(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The inspection of one log.
///
/// It begins as a reader would, record by record, and comes to the same verdict. At the first thing
/// that is wrong the reader would stop; from there on the inspection looks at each line alone.
pub(super) struct Inspection<'a> {
    pub(super) request: Request<'a>,
    pub(super) bytes: FileBytes<'a>,
    /// The same file, for looking ahead.
    pub(super) ahead: FileBytes<'a>,
    pub(super) decoder: Decoder,
    /// What a reader makes of the records; it stops at the first problem.
    pub(super) scan: RecordScan,
    pub(super) at: u64,
    /// In which frame that is, while their number is known.
    pub(super) frame: Option<u64>,
    pub(super) header: Option<SessionHeader>,
    pub(super) foreign: bool,
    /// Whether a reader would have stopped by now.
    pub(super) stopped: bool,
    /// Whether the records at hand are no part of the log for any reader, so that what is wrong
    /// with them is no news.
    pub(super) silent: bool,
    pub(super) findings: Findings,
    /// What a search for the next frame settles for.
    pub(super) wanted: Wanted,
    /// The finding about what came right before, if that may have held events.
    pub(super) hole: Option<usize>,
    pub(super) refused: Option<&'static str>,
    gate: Option<&'static str>,
    /// The findings about events, by what they are about.
    known: Vec<(FindingKind, String, usize)>,
    pub(super) tracks: Tracks,
    pub(super) torn: Vec<Segment>,
}

impl<'a> Inspection<'a> {
    /// Reads an open log, whose state was taken, up to an end.
    pub(super) fn run(
        request: Request<'a>,
        file: &'a dyn File,
        stat: FileStat,
        end: u64,
    ) -> Result<Inspected, Stopped> {
        let mut inspection = Self {
            request,
            bytes: FileBytes::new(file, end, STEP),
            ahead: FileBytes::new(file, end, STEP),
            decoder: Decoder::new(request.root.max_frame_bytes)?,
            scan: RecordScan::new(Seq(0)),
            at: 0,
            frame: Some(0),
            header: None,
            foreign: false,
            stopped: false,
            silent: false,
            findings: Findings::default(),
            wanted: Wanted::Proof,
            hole: None,
            refused: None,
            gate: None,
            known: Vec::new(),
            tracks: Tracks::new(),
            torn: Vec::new(),
        };
        let went = match request.encoding {
            Encoding::Zstd => inspection.frames(),
            Encoding::None => inspection.lines(),
        };
        match went {
            Err(Stopped::Io(error)) => {
                let message = format!("it cannot be read from here on: {error}");
                let finding = Finding::new(FindingKind::Unreadable, Severity::Unreadable, message);
                inspection.findings.add(finding.at(inspection.at));
                inspection.refuse("io");
            }
            went => went?,
        }
        Ok(inspection.finish(stat, end))
    }

    fn finish(self, file: FileStat, end: u64) -> Inspected {
        Inspected {
            file,
            end,
            header: self.header,
            foreign: self.foreign,
            events: self.scan.next_seq().0,
            refused: self.refused.or(self.gate),
            findings: self.findings,
            tracks: self.tracks,
            torn: self.torn,
        }
    }

    /// A reader answers with this kind of error, unless it has stopped before.
    pub(super) fn refuse(&mut self, kind: &'static str) {
        self.refused.get_or_insert(kind);
    }

    pub(super) fn step(&self) -> Result<(), Stopped> {
        self.request.progress.tell(self.at, self.bytes.end());
        if self.request.cancel.is_cancelled() { Err(Stopped::Cancelled) } else { Ok(()) }
    }

    /// Reads the first line.
    pub(super) fn take_header(&mut self, line: &str) {
        let id = self.request.id;
        let (kind, severity, error) = match SessionHeader::parse(line, Some(id)) {
            Ok(header) => {
                self.header = Some(header);
                return;
            }
            Err(error @ HeaderError::Unsupported { newer, .. }) => {
                self.foreign = true;
                let kind = if newer { FindingKind::Newer } else { FindingKind::Obsolete };
                (kind, Severity::Unsupported, error)
            }
            Err(error @ HeaderError::Corrupt { problem: HeaderProblem::OtherSession { .. } }) => {
                self.header = SessionHeader::parse(line, None).ok();
                (FindingKind::WrongId, Severity::Damaged, error)
            }
            Err(error) => (FindingKind::BadHeader, Severity::Damaged, error),
        };
        self.refuse(error.kind());
        self.findings.add(Finding::new(kind, severity, error.to_string()).at(0));
    }

    /// Checks events that a reader accepts.
    pub(super) fn check(&mut self, events: &[Event], offset: u64, text: &Text) {
        for event in events {
            let Err(refused) =
                gate::check_event(self.request.id, event, &self.request.root.vocabulary)
            else {
                continue;
            };
            let finding = finding_of(&refused, event);
            let (kind, severity, about) = (finding.kind, finding.severity, finding.message.clone());
            if self.gate.is_none() || severity == Severity::Unsupported {
                self.gate = Some(refused.kind());
            }
            let same = self.known.iter().find(|(of, other, _)| *of == kind && *other == about);
            if let Some((_, _, at)) = same {
                if let Some(finding) = self.findings.get_mut(*at) {
                    finding.count += 1;
                }
                continue;
            }
            let (line, start) = line_of(text, event.seq());
            let offset = match self.request.encoding {
                Encoding::Zstd => offset,
                Encoding::None => offset + start as u64,
            };
            let finding = finding.at(offset).in_frame(self.frame).in_line(line);
            if let Some(at) = self.findings.add(finding) {
                self.known.push((kind, about, at));
            }
        }
    }

    /// Takes events that lie in one piece of the file.
    pub(super) fn add(&mut self, segment: Segment, times: (i64, i64), line: Option<u64>) {
        let offset = segment.offset;
        let seqs = segment.seqs.clone();
        let hole = self.hole.take();
        let step = self.tracks.add(segment, times);
        match step {
            Step::Continues | Step::Returns => {}
            Step::Skips(expected) if hole.is_some() && seqs.start > expected => {
                let hole = hole.and_then(|hole| self.findings.get_mut(hole));
                if let Some(hole) = hole {
                    hole.lost = Some(expected..seqs.start);
                }
            }
            _ if self.silent => {}
            Step::Skips(expected) => {
                let line = line.unwrap_or(1);
                let got = seqs.start;
                let problem = Problem::SeqGap { line, expected: Seq(expected), got: Seq(got) };
                let mut finding =
                    Finding::new(FindingKind::SeqGap, Severity::Damaged, problem.to_string());
                finding.lost = (got > expected).then_some(expected..got);
                self.told(finding.at(offset).in_frame(self.frame).in_line(line).about(Seq(got)));
            }
            Step::Parts(_) => {
                let message = format!("event {} is here again", seqs.start);
                let finding = Finding::new(FindingKind::Fork, Severity::Damaged, message)
                    .at(offset)
                    .in_frame(self.frame)
                    .in_line(line.unwrap_or(1))
                    .about(Seq(seqs.start));
                self.told(finding);
            }
        }
        self.findings.read(seqs.end - seqs.start);
    }

    fn told(&mut self, finding: Finding) {
        self.findings.add(finding);
    }

    /// Takes text line by line, each for what it is, but the first few. The first line of the text
    /// has the number `first`.
    pub(super) fn take_lines(&mut self, text: &Text, skip: usize, first: u64, place: &Places<'_>) {
        let mut group: Option<Group> = None;
        for (index, line) in lines(text).enumerate().skip(skip) {
            let events = match (&line, decode(&text.slice(line.range.clone()))) {
                (Line { terminated: true, .. }, Ok(events)) if !events.is_empty() => events,
                (Line { terminated, .. }, decoded) => {
                    if let Some(group) = group.take() {
                        self.close(&group, first, place);
                    }
                    let problem = match decoded {
                        Err(error) if *terminated => error.to_string(),
                        _ => "it ends without a line feed".to_owned(),
                    };
                    self.bad_line(first + index as u64, place.of(index, index + 1), &problem);
                    continue;
                }
            };
            let (Some(start), Some(end)) = (events.first(), events.last()) else { continue };
            match &mut group {
                Some(group) if group.next == start.seq().0 => {
                    group.next = end.seq().0 + 1;
                    group.lines.end = index + 1;
                    group.times.1 = end.time();
                }
                _ => {
                    let new = Group {
                        lines: index..index + 1,
                        first: start.seq().0,
                        next: end.seq().0 + 1,
                        times: (start.time(), end.time()),
                    };
                    if let Some(group) = group.replace(new) {
                        self.close(&group, first, place);
                    }
                }
            }
        }
        if let Some(group) = group {
            self.close(&group, first, place);
        }
    }

    fn close(&mut self, group: &Group, first: u64, place: &Places<'_>) {
        let bytes = place.of(group.lines.start, group.lines.end);
        let part = match place {
            Places::Frame { lines, .. } if group.lines != (0..*lines) => {
                Part::Lines(group.lines.start as u64..group.lines.end as u64)
            }
            _ => Part::Whole,
        };
        let segment =
            Segment { offset: bytes.0, end: bytes.1, part, seqs: group.first..group.next };
        self.add(segment, group.times, Some(first + group.lines.start as u64));
    }

    fn bad_line(&mut self, line: u64, (start, end): (u64, u64), problem: &str) {
        if self.silent {
            return;
        }
        let frames = self.request.encoding == Encoding::Zstd;
        let frame = self.frame.filter(|_| frames);
        // Bad lines in a row are one finding.
        if let Some(last) = self.findings.last_mut()
            && last.kind == FindingKind::BadRecord
            && last.frame == frame
            && last.line.is_some_and(|first| first + last.count == line)
        {
            last.count += 1;
            if !frames {
                last.length = Some(end - last.offset.unwrap_or(start));
            }
            self.hole = Some(self.findings.len() - 1);
            return;
        }
        let message = format!("line {line} is no record: {problem}");
        let finding = Finding::new(FindingKind::BadRecord, Severity::Damaged, message)
            .at(start)
            .taking(end - start)
            .in_frame(frame)
            .in_line(line);
        self.hole = self.findings.add(finding);
    }

    /// Notes what can be made out of bytes that are no whole frame or line.
    pub(super) fn take_torn(&mut self, offset: u64, end: u64, text: &Text) {
        let mut seqs: Option<std::ops::Range<u64>> = None;
        let mut torn = Vec::new();
        for line in lines(text) {
            let Ok(events) = decode(&text.slice(line.range)) else { continue };
            for event in &events {
                let seq = event.seq().0;
                match &mut seqs {
                    Some(seqs) if seqs.end == seq => seqs.end += 1,
                    _ => torn.extend(seqs.replace(seq..seq + 1)),
                }
            }
        }
        torn.extend(seqs);
        for seqs in torn {
            self.findings.read(seqs.end - seqs.start);
            self.torn.push(Segment { offset, end, part: Part::Torn, seqs });
        }
    }
}

/// Consecutive lines whose events continue each other.
struct Group {
    lines: std::ops::Range<usize>,
    first: u64,
    next: u64,
    times: (i64, i64),
}

/// Where in the file the lines of a text are.
pub(super) enum Places<'a> {
    /// In one frame.
    Frame { start: u64, end: u64, lines: usize },
    /// Each on its own: in these bytes, which begin at this offset.
    Plain { start: u64, bytes: &'a [u8], ends: Vec<usize> },
}

impl<'a> Places<'a> {
    pub(super) fn plain(start: u64, bytes: &'a [u8]) -> Self {
        let ends = memchr::memchr_iter(b'\n', bytes).map(|feed| feed + 1).collect();
        Self::Plain { start, bytes, ends }
    }

    /// Where lines begin, and where they end.
    fn of(&self, first: usize, after: usize) -> (u64, u64) {
        match self {
            Self::Frame { start, end, .. } => (*start, *end),
            Self::Plain { start, bytes, ends } => {
                let end_of = |line: usize| ends.get(line).copied().unwrap_or(bytes.len()) as u64;
                let from = first.checked_sub(1).map_or(0, end_of);
                let to = after.checked_sub(1).map_or(0, end_of);
                (start + from, start + to)
            }
        }
    }
}

/// One line of a text.
pub(super) struct Line {
    /// Where it is, its line feed not included.
    pub(super) range: std::ops::Range<usize>,
    pub(super) terminated: bool,
}

/// The lines of a text; the last one need not be terminated.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line> + '_ {
    let mut start = 0;
    let mut feeds = memchr::memchr_iter(b'\n', text.as_bytes());
    std::iter::from_fn(move || {
        if start >= text.len() {
            return None;
        }
        let (end, terminated) = match feeds.next() {
            Some(feed) => (feed, true),
            None => (text.len(), false),
        };
        let line = Line { range: start..end, terminated };
        start = end + 1;
        Some(line)
    })
}

/// The line that holds an event, counted from 1, and where it begins.
fn line_of(text: &Text, seq: Seq) -> (u64, usize) {
    for (number, line) in (1..).zip(lines(text)) {
        let start = line.range.start;
        let holds = decode(&text.slice(line.range))
            .is_ok_and(|events| events.iter().any(|event| event.seq() == seq));
        if holds {
            return (number, start);
        }
    }
    (1, 0)
}

/// Bytes as text, as readers take them.
pub(super) fn text(bytes: &[u8]) -> Text {
    text_of(bytes)
}
