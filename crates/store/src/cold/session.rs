//! What was read of a session, and the right to keep looking at it.

use std::{ops::Deref, sync::Arc};

use turnkeep_log::{Blank, Event, Seq, SessionHeader, SessionId, repair};

use super::cache::Pin;
use crate::seam::Revision;

/// How many events a raw window shows at most on each side of the one it is about.
pub const WINDOW_SIDE: usize = 50;

/// What an event takes besides its text.
const EVENT_BYTES: u64 = size_of::<Event>() as u64;

/// What a session takes besides its events, about.
const SESSION_BYTES: u64 = 1024;

/// One session, as it was when it was read. It never changes.
#[derive(Debug)]
pub struct ColdSession {
    header: SessionHeader,
    revision: Revision,
    events: Arc<[Event]>,
    closers: Vec<Event>,
    blank: Blank,
    live: bool,
    bytes: u64,
}

impl ColdSession {
    /// What was read of a session after its revision had been taken. `live` says that someone in
    /// this process is writing it.
    pub(super) fn new(
        header: SessionHeader,
        revision: Revision,
        events: Vec<Event>,
        live: bool,
    ) -> Self {
        let closers = if live { Vec::new() } else { repair::closers(&events) };
        let blank = Blank::of(&events);
        let texts = events.iter().chain(&closers).map(|event| event.text().len() as u64);
        let bytes = texts.map(|text| text + EVENT_BYTES).sum::<u64>() + SESSION_BYTES;
        Self { header, revision, events: events.into(), closers, blank, live, bytes }
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.header.id
    }

    /// The session's header.
    #[must_use]
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// The revision that the session had before it was read.
    #[must_use]
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// The log as it is stored: event `i` has seq `i`, and a turn that is open is open.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The same, to be kept for longer than the lease.
    #[must_use]
    pub fn shared_events(&self) -> Arc<[Event]> {
        Arc::clone(&self.events)
    }

    /// What closes the turn that the log leaves open, in this view only: nothing of it is stored.
    /// Empty where no turn is open, and for a [live](Self::is_live) session.
    #[must_use]
    pub fn closers(&self) -> &[Event] {
        &self.closers
    }

    /// The balanced view: the log, and what closes its open turn. A model takes such a
    /// conversation, and a resume would store it like this.
    pub fn balanced(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().chain(&self.closers)
    }

    /// Whether anything has happened in the session, and when a person last spoke in it.
    #[must_use]
    pub fn blank(&self) -> Blank {
        self.blank
    }

    /// Whether a write handle of the store owned the session when it was read. This is what had
    /// been stored by then; the next look may find more.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The stored events around one of them: up to `before` before it, the event itself, and up to
    /// `after` behind it; never more than [`WINDOW_SIDE`] on either side. Empty when the log has no
    /// such event.
    #[must_use]
    pub fn window(&self, around: Seq, before: usize, after: usize) -> &[Event] {
        let Some(center) = usize::try_from(around.0).ok().filter(|at| *at < self.events.len())
        else {
            return &[];
        };
        let first = center.saturating_sub(before.min(WINDOW_SIDE));
        let end = center.saturating_add(1 + after.min(WINDOW_SIDE)).min(self.events.len());
        self.events.get(first..end).unwrap_or_default()
    }

    /// How much memory it takes, about: the texts of its events, and a little for each.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A session to look at, for as long as this is held.
///
/// It is pinned: neither writes nor evictions change what this shows. Cloning it is cheap and pins
/// it once more.
#[derive(Clone, Debug)]
pub struct Lease {
    session: Arc<ColdSession>,
    /// Absent for what is not kept.
    _pin: Option<Pin>,
}

impl Lease {
    pub(super) fn new(session: Arc<ColdSession>, pin: Option<Pin>) -> Self {
        Self { session, _pin: pin }
    }

    /// Whether both show the same reading of a session.
    #[must_use]
    pub fn same_reading(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.session, &other.session)
    }
}

impl Deref for Lease {
    type Target = ColdSession;

    fn deref(&self) -> &ColdSession {
        &self.session
    }
}
