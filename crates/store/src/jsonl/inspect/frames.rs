//! Logs of frames.

use turnkeep_log::{SessionHeader, Text, records::Problem};

use super::{
    inspection::{Inspection, Places, Stopped, lines},
    resync::{Place, Search, Wanted, frame_at, lost_sector, next_good_frame},
    tracks::{Part, Segment},
};
use crate::{
    jsonl::frames::{DecodeError, Frame},
    verify::{Finding, FindingKind, Severity},
};

/// A frame may be this long whatever it unpacks to.
const LONG_FRAME: usize = 64 << 20;

/// What is wrong with the bytes at a place where a frame should be.
struct Broken {
    kind: FindingKind,
    message: String,
    /// Where the next frame is, if this one is as long as it says.
    next: Option<u64>,
    /// Whether the frame is not whole, rather than wrong.
    incomplete: bool,
}

impl Inspection<'_> {
    pub(super) fn frames(&mut self) -> Result<(), Stopped> {
        let most = self.longest();
        if self.bytes.end() == 0 {
            self.headerless("the log is empty");
        }
        while self.at < self.bytes.end() && !self.foreign {
            self.step()?;
            let broken = match frame_at(&mut self.bytes, self.at, most)? {
                Place::Complete(frame) => {
                    let next = self.at + frame.len as u64;
                    match self.decoder.decode(self.bytes.held(), frame) {
                        Ok(text) => {
                            self.take_frame(&text, frame);
                            self.pass_frame(next);
                            continue;
                        }
                        Err(DecodeError::Invalid(problem)) => {
                            let message = if self.at == 0 {
                                format!("header frame failed validation ({problem})")
                            } else {
                                format!("frame at byte {} failed validation ({problem})", self.at)
                            };
                            let kind = FindingKind::BadFrame;
                            Broken { kind, message, next: Some(next), incomplete: false }
                        }
                        Err(error) => {
                            self.unpackable(frame, error);
                            self.pass_frame(next);
                            continue;
                        }
                    }
                }
                Place::Invalid(problem) => {
                    let message = format!("{problem} at byte {}", self.at);
                    let kind = FindingKind::Garbage;
                    Broken { kind, message, next: None, incomplete: false }
                }
                Place::Incomplete => {
                    let message = format!("incomplete frame at byte {}", self.at);
                    let kind = FindingKind::BadFrame;
                    Broken { kind, message, next: None, incomplete: true }
                }
            };
            match self.next_after(&broken, most)? {
                Search::Found(next) => self.broken(&broken, next),
                // A lost sector shows what became of those that came before it.
                Search::OnlyHitched(next) => {
                    if lost_sector(&mut self.ahead, self.at)?.is_none() {
                        // Neither is there any further on.
                        self.wanted = Wanted::Any;
                        self.broken(&broken, next);
                    } else {
                        return self.tail(broken);
                    }
                }
                Search::GaveUp(at) => {
                    let message = format!(
                        "{}, before too much that may be a frame to look at past byte {at}",
                        broken.message
                    );
                    self.damaged_to_end(FindingKind::Garbage, message);
                    return Ok(());
                }
                Search::Nothing => return self.tail(broken),
            }
        }
        Ok(())
    }

    /// How many bytes of the file are taken for one frame at most.
    fn longest(&self) -> usize {
        let most = usize::try_from(self.request.root.max_frame_bytes).unwrap_or(usize::MAX);
        most.saturating_mul(2).max(LONG_FRAME)
    }

    fn pass_frame(&mut self, next: u64) {
        self.at = next;
        self.frame = self.frame.map(|frame| frame + 1);
    }

    /// Looks for the next frame that unpacks: right behind this one, or else anywhere.
    fn next_after(&mut self, broken: &Broken, most: usize) -> Result<Search, Stopped> {
        if let Some(next) = broken.next.filter(|next| *next < self.ahead.end())
            && let Place::Complete(frame) = frame_at(&mut self.ahead, next, most)?
            && (!frame.hitched || self.wanted == Wanted::Any)
            && !matches!(
                self.decoder.decode(self.ahead.held(), frame),
                Err(DecodeError::Invalid(_))
            )
        {
            return Ok(Search::Found(next));
        }
        Ok(next_good_frame(&mut self.ahead, self.at, &mut self.decoder, most, self.wanted)?)
    }

    fn take_frame(&mut self, text: &Text, frame: Frame) {
        let (start, end) = (self.at, self.at + frame.len as u64);
        let count = lines(text).count();
        if start == 0 {
            let whole = text.strip_suffix('\n').filter(|line| !line.contains('\n'));
            if let Some(line) = whole {
                return self.take_header(line);
            }
            self.take_header(text.lines().next().unwrap_or_default());
            if !self.foreign {
                let message = "first frame is not exactly one header line";
                self.bad_header(message, frame.len as u64);
                // What follows the line in it may be records all the same.
                self.take_lines(text, 1, 0, &Places::Frame { start, end, lines: count });
            }
            return;
        }
        if self.header.is_none() && self.findings.found() == 0 && self.take_late_header(text) {
            return;
        }
        if !self.stopped {
            let first = self.scan.next_seq();
            self.scan.feed(text);
            let events = self.scan.take_events();
            self.check(&events, start, text);
            let Some(problem) = self.scan.problem().cloned() else {
                if let (Some(one), Some(last)) = (events.first(), events.last()) {
                    let seqs = first.0..self.scan.next_seq().0;
                    let times = (one.time(), last.time());
                    self.add(Segment { offset: start, end, part: Part::Whole, seqs }, times, None);
                }
                return;
            };
            self.stopped = true;
            if let Problem::TooLong { line } = problem {
                self.too_large(problem.to_string(), Some(line));
            } else {
                self.refuse("corrupt");
            }
        }
        self.take_lines(text, 0, 1, &Places::Frame { start, end, lines: count });
    }

    /// Takes the header of the session from behind bytes that do not belong there.
    fn take_late_header(&mut self, text: &Text) -> bool {
        let line = text.strip_suffix('\n').unwrap_or(text);
        self.header = SessionHeader::parse(line, Some(self.request.id)).ok();
        self.header.is_some()
    }

    /// A whole frame that this reader does not unpack.
    fn unpackable(&mut self, frame: Frame, error: DecodeError) {
        if let DecodeError::NoMemory = error {
            let message = format!("there is no memory to unpack the frame at byte {}", self.at);
            let finding = Finding::new(FindingKind::Unreadable, Severity::Unreadable, message);
            let finding = finding.at(self.at).taking(frame.len as u64).in_frame(self.frame);
            self.hole = self.findings.add(finding);
            self.refuse("io");
        } else {
            let most = self.request.root.max_frame_bytes;
            let message =
                format!("the frame at byte {} unpacks to more than {most} bytes", self.at);
            self.too_large(message, None);
        }
        self.stopped = true;
    }

    fn too_large(&mut self, message: String, line: Option<u64>) {
        let finding = Finding::new(FindingKind::TooLarge, Severity::Unsupported, message);
        let mut finding = finding.at(self.at).in_frame(self.frame);
        finding.line = line;
        self.hole = self.findings.add(finding);
        self.refuse("format_unsupported");
    }

    /// Bytes that are no frame, with a frame behind them.
    fn broken(&mut self, broken: &Broken, next: u64) {
        let length = next - self.at;
        let message = format!("{}, before an intact frame at byte {next}", broken.message);
        if self.at == 0 {
            self.bad_header(&message, length);
        } else {
            let finding = Finding::new(broken.kind, Severity::Damaged, message);
            let finding = finding.at(self.at).taking(length).in_frame(self.frame);
            self.hole = self.findings.add(finding);
            self.refuse("corrupt");
        }
        self.stopped |= self.at != 0;
        if broken.incomplete && self.at != 0 {
            self.unpack_torn(next);
        }
        // Who knows how many frames that was.
        self.frame = self.frame.filter(|_| broken.next == Some(next)).map(|frame| frame + 1);
        self.at = next;
    }

    /// Bytes that are no frame, with none behind them.
    fn tail(&mut self, broken: Broken) -> Result<(), Stopped> {
        let (start, end) = (self.at, self.bytes.end());
        let zeroed = lost_sector(&mut self.ahead, start)?;
        if start == 0 {
            if broken.incomplete || zeroed.is_some() {
                self.headerless("the log ends before its first frame does");
            } else {
                self.bad_header(&broken.message, end);
            }
            return Ok(());
        }
        let (kind, what, readable) = match (zeroed, broken.incomplete) {
            (Some(sector), _) => (FindingKind::ZeroedTail, "with lost sectors", sector),
            (None, true) => (FindingKind::TornTail, "inside a frame", end),
            (None, false) => {
                let kind = match broken.kind {
                    FindingKind::Garbage => FindingKind::GarbageTail,
                    kind => kind,
                };
                self.damaged_to_end(kind, broken.message);
                return Ok(());
            }
        };
        let message =
            format!("the log ends {what}: {} bytes of an append that never ended", end - start);
        let finding = Finding::new(kind, Severity::Incomplete, message);
        self.findings.add(finding.at(start).taking(end - start).in_frame(self.frame));
        self.unpack_torn(readable);
        Ok(())
    }

    fn damaged_to_end(&mut self, kind: FindingKind, message: String) {
        let length = self.bytes.end() - self.at;
        if self.at == 0 {
            return self.bad_header(&message, length);
        }
        let finding = Finding::new(kind, Severity::Damaged, message);
        self.findings.add(finding.at(self.at).taking(length).in_frame(self.frame));
        self.refuse("corrupt");
    }

    /// Looks for whole records in the frame at hand, as far as its bytes are its own.
    fn unpack_torn(&mut self, end: u64) {
        let held = usize::try_from(end - self.at).unwrap_or(usize::MAX).min(self.longest());
        let filled = self.bytes.fill(self.at, held);
        if filled.is_err() {
            return;
        }
        let bytes = self.bytes.held();
        let unpacked = self.decoder.unpack_part(bytes.get(..held).unwrap_or(bytes));
        let text = turnkeep_log::records::decode_lossy(unpacked);
        self.take_torn(self.at, end, &text);
    }

    pub(super) fn headerless(&mut self, what: &str) {
        let finding = Finding::new(FindingKind::TruncatedHeader, Severity::Damaged, what);
        self.findings.add(finding.at(0).taking(self.bytes.end()));
        self.refuse("corrupt");
    }

    pub(super) fn bad_header(&mut self, what: &str, length: u64) {
        let finding = Finding::new(FindingKind::BadHeader, Severity::Damaged, what);
        self.findings.add(finding.at(0).taking(length).in_frame(Some(0)));
        self.refuse("corrupt");
    }
}
