//! Which writer wrote what: the records of a log, put together by their seqs.
//!
//! A log that one writer wrote is one track. A second writer that does not know of the first goes
//! on from an earlier event, which starts another track that parts from the first; both may grow in
//! turn. Records that continue nothing, for what came before them is gone, start a track that
//! hangs in the air.

use std::ops::Range;

/// How many tracks of a log are told apart, and how many pieces of it are kept track of. Bytes made
/// up on purpose can hold any number.
const MOST_TRACKS: usize = 1 << 10;
const MOST_SEGMENTS: usize = 1 << 16;

/// Bytes of a log that hold consecutive events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Where it begins: at a frame, or a line.
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) part: Part,
    /// The seq of the first event, and the one after the last.
    pub(super) seqs: Range<u64>,
}

/// What of the bytes of a segment counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it: whole frames, or whole lines.
    Whole,
    /// Some lines of one frame, counted from 0.
    Lines(Range<u64>),
    /// What can be made out of a frame or a line that is not whole.
    Torn,
}

/// What one writer wrote, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// The track it parts from, at its first event.
    pub(super) parent: Option<usize>,
    pub(super) seqs: Range<u64>,
    segments: Vec<Segment>,
    /// The times of the first and the last event.
    pub(super) times: Option<(i64, i64)>,
}

/// How records go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// They continue what came before them.
    Continues,
    /// They continue what another writer left earlier.
    Returns,
    /// They say again what is there already, from this event on; on this track.
    Parts(usize),
    /// They continue nothing. The event that could have come.
    Skips(u64),
}

/// A part of the log to be read again: the events of these seqs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) segment: Segment,
    pub(super) seqs: Range<u64>,
}

/// All tracks of a log. The first one begins with event 0.
#[derive(Clone, Debug)]
pub(super) struct Tracks {
    all: Vec<Track>,
    current: usize,
    segments: usize,
}

impl Tracks {
    pub(super) fn new() -> Self {
        let first = Track { parent: None, seqs: 0..0, segments: Vec::new(), times: None };
        Self { all: vec![first], current: 0, segments: 0 }
    }

    pub(super) fn get(&self, track: usize) -> Option<&Track> {
        self.all.get(track)
    }

    /// Adds the next events of the log, with the times of the first and the last.
    pub(super) fn add(&mut self, segment: Segment, times: (i64, i64)) -> Step {
        let first = segment.seqs.start;
        let goes_on = |track: &Track| track.seqs.end == first;
        let (at, step) = if self.all.get(self.current).is_some_and(goes_on) {
            (self.current, Step::Continues)
        } else if let Some(at) = self.all.iter().rposition(goes_on) {
            (at, Step::Returns)
        } else {
            let parent = self.holder_of(first);
            let expected = self.all.get(self.current).map_or(0, |track| track.seqs.end);
            let at = self.all.len();
            let step = parent.map_or(Step::Skips(expected), |_| Step::Parts(at));
            if at >= MOST_TRACKS {
                return step;
            }
            self.all.push(Track { parent, seqs: first..first, segments: Vec::new(), times: None });
            (at, step)
        };
        self.current = at;
        let room = self.segments < MOST_SEGMENTS;
        if let Some(track) = self.all.get_mut(at)
            && track.add(segment, times, room)
        {
            self.segments += 1;
        }
        step
    }

    /// The track that holds an event, the one in use before others, later ones before earlier.
    fn holder_of(&self, seq: u64) -> Option<usize> {
        let holds = |at: &usize| {
            self.all.get(*at).is_some_and(|track| seq < track.seqs.end) && seq >= self.root(*at).1
        };
        let order = std::iter::once(self.current).chain((0..self.all.len()).rev());
        order.into_iter().find(holds)
    }

    /// The track that a track goes back to, and the seq it begins with.
    fn root(&self, track: usize) -> (usize, u64) {
        let mut at = track;
        // A parent comes before its children.
        while let Some(parent) = self.all.get(at).and_then(|track| track.parent) {
            at = parent;
        }
        (at, self.all.get(at).map_or(0, |track| track.seqs.start))
    }

    /// The tracks that part from others, in the order of the log.
    pub(super) fn parted(&self) -> impl Iterator<Item = usize> + '_ {
        (1..self.all.len())
            .filter(|at| self.all.get(*at).is_some_and(|track| track.parent.is_some()))
    }

    /// Whether a track goes back to event 0.
    pub(super) fn is_grounded(&self, track: usize) -> bool {
        self.root(track).0 == 0
    }

    /// Everything that leads to the end of a track, from its root on.
    pub(super) fn path(&self, track: usize) -> Vec<Stretch> {
        let mut path = Vec::new();
        let (mut at, mut limit) = (Some(track), u64::MAX);
        while let Some(track) = at.and_then(|at| self.all.get(at)) {
            let reached = track.segments.iter().rev().filter(|found| found.seqs.start < limit);
            path.extend(reached.map(|segment| Stretch {
                segment: segment.clone(),
                seqs: segment.seqs.start..segment.seqs.end.min(limit),
            }));
            limit = limit.min(track.seqs.start);
            at = track.parent;
        }
        path.reverse();
        path
    }

    /// A path with what continues it: tracks that hang in the air, and what torn parts yield where
    /// nothing else does. Also how many events the latter are.
    pub(super) fn extended(&self, mut path: Vec<Stretch>, torn: &[Segment]) -> (Vec<Stretch>, u64) {
        let mut salvaged = 0;
        loop {
            let end = path.last().map_or(0, |stretch| stretch.seqs.end);
            let next = self.all.iter().enumerate().skip(1).find(|(_, track)| {
                track.parent.is_none() && track.seqs.start == end && !track.seqs.is_empty()
            });
            if let Some((at, _)) = next {
                let more = self.path(at);
                if !more.is_empty() {
                    path.extend(more);
                    continue;
                }
            }
            let Some(found) = torn.iter().find(|segment| segment.seqs.contains(&end)) else {
                return (path, salvaged);
            };
            let seqs = end..found.seqs.end;
            salvaged += seqs.end - seqs.start;
            path.push(Stretch { segment: found.clone(), seqs });
        }
    }
}

impl Track {
    /// Adds a segment, if there is room for one. Whether that took any.
    fn add(&mut self, segment: Segment, times: (i64, i64), room: bool) -> bool {
        let known_end = self.segments.last().map_or(self.seqs.start, |last| last.seqs.end);
        self.seqs.end = segment.seqs.end;
        self.times = Some((self.times.map_or(times.0, |known| known.0), times.1));
        match self.segments.last_mut() {
            Some(last)
                if last.end == segment.offset
                    && last.part == Part::Whole
                    && segment.part == Part::Whole
                    && last.seqs.end == segment.seqs.start =>
            {
                last.end = segment.end;
                last.seqs.end = segment.seqs.end;
                false
            }
            // What is behind one that was left out cannot be reached.
            _ if room && known_end == segment.seqs.start => {
                self.segments.push(segment);
                true
            }
            _ => false,
        }
    }
}
