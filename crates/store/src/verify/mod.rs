//! What a log was found to be: intact, or exactly what is lost.
//!
//! A reader refuses a damaged log as a whole, for whoever asked for events must not be given some
//! of them without knowing. Verifying is for the person who then asks what is left. It reads the
//! whole log, goes on behind what is damaged, and says where each thing that is wrong is, what can
//! be read before and behind it, and which events are gone.
//!
//! Nothing here needs the right to write, or changes anything.

mod finding;
mod progress;

use std::path::PathBuf;

use turnkeep_log::{Seq, SessionId};

pub(crate) use self::finding::{Findings, finding_of};
pub use self::{
    finding::{Finding, FindingKind, Severity},
    progress::Progress,
};
use crate::seam::SessionEntry;

/// What one session's log was found to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The session; absent in what [`SessionStore::verify_storage`] says of a store as a whole.
    ///
    /// [`SessionStore::verify_storage`]: crate::SessionStore::verify_storage
    pub id: Option<SessionId>,
    /// The log, when the session has a file of its own. Not for other people's eyes.
    pub path: Option<PathBuf>,
    /// How many bytes were looked at, where the log is a file.
    pub size_bytes: Option<u64>,
    /// How many events follow each other without a fault, from the first on: what a reader of this
    /// store gives out, unless it refuses the log.
    pub events: u64,
    /// How many events can be read at all, wherever in the log they are.
    pub found: u64,
    /// The kind of error that a reader answers with; absent when it reads the log.
    pub refused: Option<&'static str>,
    /// What is wrong, in the order of the log.
    pub findings: Vec<Finding>,
    /// How many more findings there were than are kept.
    pub omitted: u64,
    /// Where two writers went on from the same event, each not knowing of the other: what either
    /// of them wrote, in the order of the log. Empty when the log never forks.
    pub branches: Vec<LogBranch>,
    /// Whether someone holds the session open to write, as far as can be told. What an append of
    /// theirs has written so far looks like a torn tail.
    pub writer_active: bool,
    /// Whether the session is pending: nothing of it is stored.
    pub pending: bool,
}

impl Verification {
    /// Nothing is wrong, as yet.
    pub(crate) fn of(id: &SessionId) -> Self {
        Self { id: Some(id.clone()), ..Self::default() }
    }

    /// What is to be said of an entry of a listing that no session id leads to.
    #[must_use]
    pub fn unreachable(entry: &SessionEntry) -> Self {
        let reason = entry.reason.clone().unwrap_or_default();
        let finding = Finding::new(FindingKind::Unreachable, Severity::Unreadable, reason);
        Self { refused: Some("not_found"), findings: vec![finding], ..Self::of(&entry.id) }
    }

    /// Whether nothing at all is wrong.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty() && self.refused.is_none()
    }

    /// The worst that was found; `None` when the log is intact.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// In one word: `intact`, or the name of the [severity](Self::severity).
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        self.severity().map_or("intact", Severity::as_str)
    }
}

/// What one of several writers wrote who went on from the same event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogBranch {
    /// Where the branches part: the first seq that was written twice.
    pub first: Seq,
    /// The seq after the branch's last event.
    pub end: Seq,
    /// Where in the file its first event is: of its frame, or its line.
    pub offset: Option<u64>,
    /// The time of its first event, in milliseconds since the epoch.
    pub first_time: Option<i64>,
    /// The time of its last event.
    pub last_time: Option<i64>,
    /// The first event that differs from the branch that it parts from; absent for the branch that
    /// was there first, and for one that says the same again as far as it goes.
    pub differs_at: Option<Seq>,
}
