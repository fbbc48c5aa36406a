//! Going on behind what is damaged.

use std::io;

use crate::jsonl::{
    bytes::FileBytes,
    frames::{DecodeError, Decoder, Frame, FrameScan, MAGIC, scan_frame, scan_frame_within},
    tail::{SECTOR, SearchBudget},
};

/// What a place in a file holds.
pub(super) enum Place {
    /// A frame that ends within the file, all of whose bytes are held.
    Complete(Frame),
    /// A frame that the file ends inside of.
    Incomplete,
    /// No frame, and why.
    Invalid(&'static str),
}

/// Looks at the frame at an offset, holding no more than `most` bytes of it.
pub(super) fn frame_at(bytes: &mut FileBytes<'_>, offset: u64, most: usize) -> io::Result<Place> {
    let mut least = 1;
    loop {
        bytes.fill(offset, least)?;
        let held = bytes.held();
        match scan_frame(held) {
            FrameScan::Complete(frame) => return Ok(Place::Complete(frame)),
            FrameScan::Invalid(problem) => return Ok(Place::Invalid(problem)),
            FrameScan::Incomplete if bytes.reaches_end() => return Ok(Place::Incomplete),
            FrameScan::Incomplete if held.len() >= most => {
                return Ok(Place::Invalid("frame longer than what it may unpack to"));
            }
            FrameScan::Incomplete => least = held.len() + 1,
        }
    }
}

/// What came of looking for a frame that unpacks.
pub(super) enum Search {
    /// One begins here, and proves that all before it was on disk.
    Found(u64),
    /// The first of those that prove nothing begins here, and there are no others.
    OnlyHitched(u64),
    /// There is none.
    Nothing,
    /// It would take too long to tell, from here on.
    GaveUp(u64),
}

/// What a search settles for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A frame that proves that all before it was on disk.
    Proof,
    /// Any: that there is no proof is known.
    Any,
}

/// Looks for a frame that unpacks, or would if there were more room, past `offset`: what
/// [`judge_frames`](crate::jsonl::tail::judge_frames) looks for, without holding all of the file.
pub(super) fn next_good_frame(
    bytes: &mut FileBytes<'_>,
    offset: u64,
    decoder: &mut Decoder,
    most: usize,
    wanted: Wanted,
) -> io::Result<Search> {
    let mut budget = SearchBudget::new(bytes.end().saturating_sub(offset));
    let mut at = offset + 1;
    let mut first_hitched = None;
    loop {
        bytes.fill(at, MAGIC.len())?;
        let held = bytes.held();
        let Some(found) = memchr::memmem::find(held, &MAGIC) else {
            if bytes.reaches_end() {
                return Ok(first_hitched.map_or(Search::Nothing, Search::OnlyHitched));
            }
            at += held.len().saturating_sub(MAGIC.len() - 1) as u64;
            continue;
        };
        at += found as u64;
        let before = budget;
        match look_at(bytes, at, decoder, most, &mut budget)? {
            Look::Good(frame) if frame.hitched && wanted == Wanted::Proof => {
                // Passed as a whole, so that any number of them takes no longer than reading does.
                first_hitched.get_or_insert(at);
                budget = before;
                at += frame.len as u64;
            }
            Look::Good(_) => return Ok(Search::Found(at)),
            Look::Nothing => at += 1,
            Look::NoBudget => return Ok(Search::GaveUp(at)),
        }
    }
}

/// What there is at one place.
enum Look {
    /// A frame that unpacks, or would if there were more room.
    Good(Frame),
    /// None.
    Nothing,
    /// Perhaps one: there is no budget left to tell.
    NoBudget,
}

/// Whether a frame that unpacks begins here.
fn look_at(
    bytes: &mut FileBytes<'_>,
    at: u64,
    decoder: &mut Decoder,
    most: usize,
    budget: &mut SearchBudget,
) -> io::Result<Look> {
    let Some(allowed) = budget.place() else { return Ok(Look::NoBudget) };
    let mut least = 1;
    loop {
        bytes.fill(at, least)?;
        let held = bytes.held();
        let mut blocks = allowed;
        let Some(scan) = scan_frame_within(held, &mut blocks) else {
            return Ok(Look::NoBudget);
        };
        match scan {
            FrameScan::Incomplete if !bytes.reaches_end() && held.len() < most => {
                least = held.len() + 1;
            }
            FrameScan::Incomplete | FrameScan::Invalid(_) => {
                budget.passed(allowed - blocks);
                return Ok(Look::Nothing);
            }
            FrameScan::Complete(frame) => {
                budget.passed(allowed - blocks);
                budget.worked(decoder.work(frame));
                let is_bad = matches!(decoder.decode(held, frame), Err(DecodeError::Invalid(_)));
                return Ok(if is_bad { Look::Nothing } else { Look::Good(frame) });
            }
        }
    }
}

/// Where the first sector begins, from `offset` of the file on, that is all zero: one that the disk
/// lost. What counts as one is what [`judge_frames`](crate::jsonl::tail::judge_frames) counts.
pub(super) fn lost_sector(bytes: &mut FileBytes<'_>, offset: u64) -> io::Result<Option<u64>> {
    let sector = SECTOR as u64;
    let mut at = offset;
    while at < bytes.end() {
        let length = sector - at % sector;
        let length = usize::try_from(length).unwrap_or(SECTOR);
        bytes.fill(at, length)?;
        let held = bytes.held();
        let part = held.get(..length).unwrap_or(held);
        if part.is_empty() {
            return Ok(None);
        }
        if part.iter().all(|byte| *byte == 0) {
            return Ok(Some(at));
        }
        at += part.len() as u64;
    }
    Ok(None)
}
