//! Places in a log to start reading from.

use turnkeep_log::Seq;

/// How far apart marks are at least, in bytes of the file.
const DISTANCE: u64 = 8 << 10;

/// How many of the newest marks are kept as they are when marks are thinned out.
const NEWEST: usize = 4096;

/// How many of the others are kept at most.
const OLDER: usize = 4096;

/// Places in a log to start reading from, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(Vec<Mark>);

/// Where a frame or a line begins, and the seq of the event there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) offset: u64,
    pub(crate) seq: Seq,
}

impl Marks {
    /// The last one at or before this event.
    pub(super) fn before(&self, seq: u64) -> Option<Mark> {
        let after = self.0.partition_point(|mark| mark.seq.0 <= seq);
        self.0.get(after.checked_sub(1)?).copied()
    }

    /// Adds a place further on, unless there is one close before it.
    pub(crate) fn add(&mut self, mark: Mark) {
        if self.0.last().is_none_or(|last| mark.offset >= last.offset + DISTANCE) {
            self.0.push(mark);
        }
    }

    /// Adds those of a later reading that lie at or behind this offset.
    pub(super) fn continue_with(&mut self, later: &Self, from: u64) {
        later.0.iter().filter(|mark| mark.offset >= from).for_each(|mark| self.add(*mark));
    }

    /// A number of them that does not grow with the log: all of the newest, and of those before as
    /// many, evenly spread. What is read is mostly near the end.
    pub(crate) fn thinned(&self) -> impl Iterator<Item = Mark> {
        let older = self.0.len().saturating_sub(NEWEST);
        let step = older.div_ceil(OLDER).max(1);
        let (older, newest) = self.0.split_at_checked(older).unwrap_or_default();
        older.iter().step_by(step).chain(newest).copied()
    }
}

impl FromIterator<Mark> for Marks {
    fn from_iter<T: IntoIterator<Item = Mark>>(marks: T) -> Self {
        Self(marks.into_iter().collect())
    }
}
