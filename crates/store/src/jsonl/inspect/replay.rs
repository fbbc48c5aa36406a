//! Reading parts of a log again.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind},
};

use turnkeep_log::{
    Event, Text,
    records::{decode, decode_lossy, end_of_lines},
};

use super::{
    inspection::{STEP, lines},
    tracks::{Part, Segment, Stretch},
};
use crate::jsonl::{
    bytes::FileBytes,
    frames::{Decoder, FrameScan, scan_frame, text_of},
    fs::File,
    layout::Encoding,
};

/// Reads the events of some stretches of a log, in their order.
pub(super) struct Replay<'a> {
    bytes: FileBytes<'a>,
    encoding: Encoding,
    decoder: Decoder,
    stretches: VecDeque<Stretch>,
    /// Where in the first stretch reading goes on.
    at: Option<u64>,
    /// The seq that comes next.
    next: u64,
}

/// Consecutive events, and where the frame or the lines begin that hold them.
pub(super) type Found = (u64, Vec<Event>);

impl<'a> Replay<'a> {
    pub(super) fn new(
        file: &'a dyn File,
        end: u64,
        encoding: Encoding,
        max_frame_bytes: u64,
        stretches: Vec<Stretch>,
    ) -> io::Result<Self> {
        let next = stretches.first().map_or(0, |stretch| stretch.seqs.start);
        Ok(Self {
            bytes: FileBytes::new(file, end, STEP),
            encoding,
            decoder: Decoder::new(max_frame_bytes)?,
            stretches: stretches.into(),
            at: None,
            next,
        })
    }

    /// Where in the file it is.
    pub(super) fn at(&self) -> u64 {
        self.at.unwrap_or(0)
    }

    /// The next events; `None` once there are no more.
    ///
    /// # Errors
    ///
    /// Also when the log is not the one any more that the stretches were found in.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        loop {
            let Some(stretch) = self.stretches.front() else { return Ok(None) };
            let wanted = stretch.seqs.clone();
            let segment = stretch.segment.clone();
            let at = self.at.unwrap_or(segment.offset);
            if self.next >= wanted.end || at >= segment.end {
                if self.next < wanted.end {
                    return Err(changed());
                }
                self.stretches.pop_front();
                self.at = None;
                continue;
            }
            let (text, after) = self.part(&segment, at)?;
            self.at = Some(after);
            let range = match &segment.part {
                Part::Lines(range) => range.clone(),
                _ => 0..u64::MAX,
            };
            let mut events = Vec::new();
            let mut first = None;
            for (number, line) in (0..).zip(lines(&text)) {
                if !range.contains(&number) {
                    continue;
                }
                let decoded = decode(&text.slice(line.range));
                for event in decoded.into_iter().flatten() {
                    if event.seq().0 == self.next && self.next < wanted.end {
                        self.next += 1;
                        first.get_or_insert(number);
                        events.push(event);
                    }
                }
            }
            if let Some(line) = first {
                let into = match self.encoding {
                    Encoding::Zstd => 0,
                    // Counted in the bytes: invalid UTF-8 has another length in the text.
                    Encoding::None => end_of_lines(self.bytes.held(), line) as u64,
                };
                return Ok(Some((at + into, events)));
            }
        }
    }

    /// The text of the next part of a segment, and where the one after it begins.
    fn part(&mut self, segment: &Segment, at: u64) -> io::Result<(Text, u64)> {
        let left = usize::try_from(segment.end - at).unwrap_or(usize::MAX);
        match (self.encoding, &segment.part) {
            (Encoding::Zstd, Part::Torn) => {
                self.bytes.fill(at, left)?;
                let bytes = self.bytes.held();
                let unpacked = self.decoder.unpack_part(bytes.get(..left).unwrap_or(bytes));
                Ok((decode_lossy(unpacked), segment.end))
            }
            (Encoding::Zstd, _) => {
                let mut least = 1;
                loop {
                    self.bytes.fill(at, least)?;
                    let held = self.bytes.held();
                    match scan_frame(held) {
                        FrameScan::Complete(frame) => {
                            let text = self.decoder.decode(held, frame).map_err(|_| changed())?;
                            return Ok((text, at + frame.len as u64));
                        }
                        FrameScan::Incomplete if !self.bytes.reaches_end() => {
                            least = held.len() + 1;
                        }
                        _ => return Err(changed()),
                    }
                }
            }
            (Encoding::None, _) => {
                let mut least = 1;
                loop {
                    self.bytes.fill(at, least)?;
                    let held = self.bytes.held();
                    let held = held.get(..left).unwrap_or(held);
                    let whole = match memchr::memrchr(b'\n', held) {
                        Some(feed) => held.get(..=feed).unwrap_or(held),
                        None if held.len() >= left => held,
                        None if self.bytes.reaches_end() => return Err(changed()),
                        None => {
                            least = held.len() + 1;
                            continue;
                        }
                    };
                    return Ok((text_of(whole), at + whole.len() as u64));
                }
            }
        }
    }
}

fn changed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the log is not the one any more that was looked at")
}
