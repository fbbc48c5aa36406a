//! One thing that is wrong with a log.

use std::{ops::Range, path::PathBuf};

use turnkeep_log::{Event, GateError, Seq, Vocabulary};

/// How many findings of one log are kept. Bytes made up on purpose can hold any number.
const MOST: usize = 1000;

/// One thing that is wrong with a log, or several of the same kind in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// What it means to whoever wants to read the log.
    pub severity: Severity,
    /// What it is, in one sentence without a path.
    pub message: String,
    /// Where in the file it is.
    pub offset: Option<u64>,
    /// How many bytes it takes.
    pub length: Option<u64>,
    /// In which frame, counted from 0, which is the header's; in a database, in which row of the
    /// session. Absent behind bytes that may have been any number of frames.
    pub frame: Option<u64>,
    /// In which line of the frame, or in which record of a log without frames, counted from 1.
    pub line: Option<u64>,
    /// How many lines, or events, in a row it is about.
    pub count: u64,
    /// The event it is about.
    pub seq: Option<Seq>,
    /// The seqs of the events that are gone, as far as what follows tells.
    pub lost: Option<Range<u64>>,
    /// How many events can be read before it.
    pub before: u64,
    /// How many events can be read behind it.
    pub after: u64,
    /// The file it is in or about, where that is not plainly the log of the session.
    pub path: Option<PathBuf>,
}

impl Finding {
    /// A finding of which only this is known: no place, nothing lost, and no events around it.
    #[must_use]
    pub fn new(kind: FindingKind, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            kind,
            severity,
            message: message.into(),
            offset: None,
            length: None,
            frame: None,
            line: None,
            count: 1,
            seq: None,
            lost: None,
            before: 0,
            after: 0,
            path: None,
        }
    }

    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    pub(crate) fn taking(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }

    pub(crate) fn in_frame(mut self, frame: Option<u64>) -> Self {
        self.frame = frame;
        self
    }

    pub(crate) fn in_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    pub(crate) fn about(mut self, seq: Seq) -> Self {
        self.seq = Some(seq);
        self
    }
}

/// What a finding means, from the least to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Readers give out everything before it, and nothing of it was ever acknowledged. The next
    /// writer cuts it off.
    Incomplete,
    /// Another build, or another setting, may read it; this one refuses to.
    Unsupported,
    /// The system does not let it be read.
    Unreadable,
    /// Something that was written is changed or gone. Readers refuse the log.
    Damaged,
}

impl Severity {
    /// Its name on the command line: `incomplete`, `unsupported`, `unreadable`, `damaged`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Unsupported => "unsupported",
            Self::Unreadable => "unreadable",
            Self::Damaged => "damaged",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident => $word:literal,)+) => {
        /// What is wrong with a log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum FindingKind {
            $($(#[$doc])* $kind,)+
        }

        impl FindingKind {
            /// Every kind there is.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The stable word for it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// The log ends inside a frame, or inside a line.
    TornTail => "torn_tail",
    /// The log ends with bytes that a power cut left as zeros.
    ZeroedTail => "zeroed_tail",
    /// The log ends with lines that do not continue it, and no finished turn among them.
    UncommittedTail => "uncommitted_tail",
    /// The log ends with bytes that no append leaves behind.
    GarbageTail => "garbage_tail",
    /// Bytes between frames that are no frame.
    Garbage => "garbage",
    /// A frame that does not unpack, or not to what its checksum says.
    BadFrame => "bad_frame",
    /// A frame or a record that stands for more than this reader will hold.
    TooLarge => "too_large",
    /// A line that is no record.
    BadRecord => "bad_record",
    /// Events are missing before this one.
    SeqGap => "seq_gap",
    /// Events that are there already are there again, just the same.
    SeqDuplicate => "seq_duplicate",
    /// Another writer went on from an event that was no longer the last one.
    Fork => "fork",
    /// The log ends before its first line does.
    TruncatedHeader => "truncated_header",
    /// The first line is no header.
    BadHeader => "bad_header",
    /// The header is that of another session.
    WrongId => "wrong_id",
    /// The header belongs to another directory.
    WrongPlace => "wrong_place",
    /// The log is of a later format.
    Newer => "newer",
    /// The log is of an earlier format, or an obsolete layout.
    Obsolete => "obsolete",
    /// The log has the encoding that its store does not have.
    OtherEncoding => "other_encoding",
    /// An event of a type that this build does not know, and may not skip.
    UnknownType => "unknown_type",
    /// An event of a type that no build reads any more.
    RetiredType => "retired_type",
    /// An event that is not what its type promises.
    MalformedMessage => "malformed_message",
    /// Another directory holds a log of the same session.
    DuplicateSession => "duplicate_session",
    /// The system does not let it be read.
    Unreadable => "unreadable",
    /// The database does not hold together.
    BadDatabase => "bad_database",
    /// It is there, and no session id leads to it.
    Unreachable => "unreachable",
}

/// What it means that an event cannot be given out.
pub(crate) fn finding_of(refused: &GateError, event: &Event) -> Finding {
    let event_type = event.event_type();
    let (kind, severity, message) = match refused {
        GateError::Unsupported { .. } => {
            let (kind, what) = if Vocabulary::is_retired(event_type) {
                (FindingKind::RetiredType, "which only early builds of the harness wrote")
            } else {
                (FindingKind::UnknownType, "which this build does not know and may not skip")
            };
            (kind, Severity::Unsupported, format!("event type \"{event_type}\", {what}"))
        }
        GateError::Corrupt { problem, .. } => {
            let message = format!("an event of type \"{event_type}\" {problem}");
            (FindingKind::MalformedMessage, Severity::Damaged, message)
        }
    };
    Finding::new(kind, severity, message).about(event.seq())
}

/// The findings of one log, while it is being read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    omitted: u64,
    /// How many events have been read so far.
    found: u64,
}

impl Findings {
    /// Adds a finding, and says where it is kept; `None` when there are too many.
    pub(crate) fn add(&mut self, mut finding: Finding) -> Option<usize> {
        finding.before = match finding.seq {
            Some(seq) if finding.within() > 0 => seq.0,
            _ => self.found,
        };
        if self.list.len() >= MOST {
            self.omitted += 1;
            return None;
        }
        self.list.push(finding);
        Some(self.list.len() - 1)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Finding> {
        self.list.get_mut(index)
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Finding> {
        if self.omitted > 0 { None } else { self.list.last_mut() }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        self.list.iter_mut()
    }

    /// Counts events that were read.
    pub(crate) fn read(&mut self, events: u64) {
        self.found += events;
    }

    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    /// The findings, how many more there were, and how many events were read in all.
    pub(crate) fn finish(mut self) -> (Vec<Finding>, u64, u64) {
        let found = self.found;
        for finding in &mut self.list {
            finding.after = found.saturating_sub(finding.before).saturating_sub(finding.within());
        }
        self.list.sort_by_key(|finding| finding.offset.or(finding.frame));
        (self.list, self.omitted, found)
    }
}

impl Finding {
    /// How many of the events behind its beginning are its own.
    fn within(&self) -> u64 {
        match self.kind {
            FindingKind::UnknownType | FindingKind::RetiredType | FindingKind::MalformedMessage => {
                1
            }
            _ => 0,
        }
    }
}
