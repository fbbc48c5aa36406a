//! What the bytes after the last good record are.

#[cfg(test)]
mod tests;

use super::frames::{DecodeError, Decoder, FrameScan, MAGIC, scan_frame_within};

/// What a disk writes at once, and so loses at once.
pub(crate) const SECTOR: usize = 512;

/// How much work may go into looking for a good frame in a tail, in bytes, besides
/// [`WORK_PER_BYTE`]. An interrupted append leaves next to no place where a frame could begin; bytes
/// made up of such places would otherwise cost the square of their number.
const WORK: usize = 16 << 20;

/// How much work each byte of a tail allows for.
const WORK_PER_BYTE: usize = 4;

/// The work that looking at one place counts for.
const WORK_PER_PLACE: usize = 256;

/// The work that passing one block counts for.
const WORK_PER_BLOCK: usize = 64;

/// Bytes at the end of a log that are no part of it: what an append left that was never
/// acknowledged. Readers stop before them; the next writer cuts them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) kind: TailKind,
    /// Whether a reader could take some of it for a complete record, so that a copy is kept of
    /// what is cut.
    pub(crate) legible: bool,
}

/// How a tail came about, as far as its bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailKind {
    /// The bytes end inside a frame, or a line.
    Torn,
    /// The file got its length, and not all of its bytes: the rest reads as zeros.
    Zeroed,
    /// Lines that do not continue the log, and no finished turn among them.
    Uncommitted,
}

impl TailKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Torn => "torn",
            Self::Zeroed => "zeroed",
            Self::Uncommitted => "uncommitted",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Torn, Self::Zeroed, Self::Uncommitted].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Why what follows the last good frame is more than a torn tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotATail {
    /// What is wrong, and where in the file.
    pub(crate) problem: String,
}

/// Judges what follows the last good frame, the bytes of the file from `offset` to its end.
///
/// `problem` says what was wrong with the frame there; `None` when the bytes end inside it.
/// Anything that a good frame follows is damage to committed history, whatever it looks like
/// itself: cutting there would lose what was acknowledged. So is what would take too long to search
/// for one: no append leaves that behind. A frame that says it was written before its predecessors
/// were synced is no such proof, provided that a lost sector shows what became of them.
pub(crate) fn judge_frames(
    offset: u64,
    bytes: &[u8],
    problem: Option<&str>,
    decoder: &mut Decoder,
) -> Result<Tail, NotATail> {
    let before = |what: String| {
        let this = problem.map_or_else(|| format!("incomplete frame at byte {offset}"), Into::into);
        Err(NotATail { problem: format!("{this}, before {what}") })
    };
    let intact = |at: usize| format!("an intact frame at byte {}", offset + at as u64);
    let search = next_good_frame(bytes, decoder);
    match search {
        Search::Found(at) => return before(intact(at)),
        Search::GaveUp(at) => {
            let at = offset + at as u64;
            return before(format!("too much that may be a frame to look at past byte {at}"));
        }
        Search::OnlyHitched(_) | Search::Nothing => {}
    }
    let zeroed = has_lost_sector(offset, bytes);
    if let (Search::OnlyHitched(at), false) = (&search, zeroed) {
        return before(intact(*at));
    }
    match problem {
        Some(problem) if !zeroed => Err(NotATail { problem: problem.to_owned() }),
        _ => Ok(Tail {
            kind: if zeroed { TailKind::Zeroed } else { TailKind::Torn },
            legible: matches!(search, Search::OnlyHitched(_)) || decoder.salvages_a_line(bytes),
        }),
    }
}

/// What came of looking for a good frame.
enum Search {
    /// One begins here, and proves that all before it was on disk.
    Found(usize),
    /// The first of those that prove nothing begins here, and there are no others.
    OnlyHitched(usize),
    /// There is none.
    Nothing,
    /// It would take too long to tell, from here on.
    GaveUp(usize),
}

/// How much looking for a good frame may still cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchBudget {
    work: usize,
}

impl SearchBudget {
    /// For looking at so many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Self { work: bytes.saturating_mul(WORK_PER_BYTE).saturating_add(WORK) }
    }

    /// Looks at one place where a frame could begin. How many blocks of it may be passed; `None`
    /// when there is nothing left for that. The last look may take more than is left: a large frame
    /// is worth one.
    pub(crate) fn place(&mut self) -> Option<usize> {
        self.work = self.work.checked_sub(WORK_PER_PLACE)?;
        Some(self.work / WORK_PER_BLOCK)
    }

    /// So many blocks were passed.
    pub(crate) fn passed(&mut self, blocks: usize) {
        self.worked(blocks.saturating_mul(WORK_PER_BLOCK));
    }

    /// So many bytes were read and written.
    pub(crate) fn worked(&mut self, bytes: usize) {
        self.work = self.work.saturating_sub(bytes);
    }
}

/// Looks in the bytes, not at their beginning, for a frame that unpacks, or that would if there were
/// more room.
fn next_good_frame(bytes: &[u8], decoder: &mut Decoder) -> Search {
    let mut budget = SearchBudget::new(bytes.len() as u64);
    let magic = memchr::memmem::Finder::new(&MAGIC);
    let mut first_hitched = None;
    let mut from = 1;
    while let Some(at) = bytes.get(from..).and_then(|rest| magic.find(rest)).map(|at| from + at) {
        from = at + 1;
        let before = budget;
        let Some(most) = budget.place() else { return Search::GaveUp(at) };
        let candidate = bytes.get(at..).unwrap_or_default();
        let mut blocks = most;
        let Some(scan) = scan_frame_within(candidate, &mut blocks) else {
            return Search::GaveUp(at);
        };
        budget.passed(most - blocks);
        let FrameScan::Complete(frame) = scan else { continue };
        budget.worked(decoder.work(frame));
        if matches!(decoder.decode(candidate, frame), Err(DecodeError::Invalid(_))) {
            continue;
        }
        if !frame.hitched {
            return Search::Found(at);
        }
        // Passed as a whole, so that any number of them takes no longer than reading the log does.
        first_hitched.get_or_insert(at);
        budget = before;
        from = at + frame.len;
    }
    first_hitched.map_or(Search::Nothing, Search::OnlyHitched)
}

/// Where the tail of a text log begins that lost a sector: at the line of the first NUL byte, if
/// what follows from there on has the shape. Text holds no NUL byte of its own.
///
/// `offset` is where in the file the bytes begin, which must be the beginning of a line.
pub(crate) fn zeroed_lines(offset: u64, bytes: &[u8]) -> Option<usize> {
    let nul = memchr::memchr(0, bytes)?;
    let line = memchr::memrchr(b'\n', bytes.get(..nul)?).map_or(0, |feed| feed + 1);
    has_lost_sector(offset + line as u64, bytes.get(line..)?).then_some(line)
}

/// Whether bytes of a file, from `offset` to its end, are all zero, or hold a sector that is.
///
/// Sectors are aligned in the file. The part of one at the beginning counts as one, since the rest
/// of that sector was there before; and so does the part of one at the end, since the file has no
/// more of it. (A batch rarely ends where a sector does: most of those that lose their last sector
/// lose a part of one.)
fn has_lost_sector(offset: u64, bytes: &[u8]) -> bool {
    let is_zero = |part: &[u8]| part.iter().all(|byte| *byte == 0);
    if bytes.is_empty() {
        return false;
    }
    let into_sector = usize::try_from(offset % SECTOR as u64).unwrap_or_default();
    let first = if into_sector == 0 { 0 } else { SECTOR - into_sector };
    match bytes.split_at_checked(first) {
        Some((start, sectors)) => {
            (!start.is_empty() && is_zero(start)) || sectors.chunks(SECTOR).any(is_zero)
        }
        None => is_zero(bytes),
    }
}
