//! What outlives a store in memory.

use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::{Arc, Mutex},
};

use turnkeep_log::{Event, SessionHeader, SessionId};

use crate::{
    outline::Outline,
    seam::{Revision, SessionStat},
    shell::{locked, now},
};

/// The storage of [`MemoryStore`](super::MemoryStore)s.
///
/// Cloning it is cheap and gives the same disk. Two stores on one disk know of each other what two
/// processes on one directory would: what is stored, and that a session is owned.
#[derive(Clone, Default)]
pub struct Disk {
    contents: Arc<Mutex<Contents>>,
}

#[derive(Default)]
struct Contents {
    sessions: BTreeMap<SessionId, Stored>,
    owned: HashSet<SessionId>,
}

/// One session on a disk.
#[derive(Debug)]
pub(super) struct Stored {
    /// The header, as the first line of a log.
    pub(super) header: String,
    pub(super) events: Vec<Event>,
    /// What they say in short.
    outline: Outline,
    /// In milliseconds since the epoch.
    pub(super) modified_at: i64,
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at a session, if it is stored.
    pub(super) fn look<T>(&self, id: &SessionId, at: impl FnOnce(&Stored) -> T) -> Option<T> {
        locked(&self.contents).sessions.get(id).map(at)
    }

    /// Looks at every session, by id.
    pub(super) fn look_at_all<T>(&self, at: impl Fn(&SessionId, &Stored) -> T) -> Vec<T> {
        locked(&self.contents).sessions.iter().map(|(id, stored)| at(id, stored)).collect()
    }

    /// Stores a new session; whether there was none of this id.
    pub(super) fn insert(&self, header: &SessionHeader, events: Vec<Event>) -> bool {
        let mut contents = locked(&self.contents);
        if contents.sessions.contains_key(&header.id) {
            return false;
        }
        let mut outline = Outline::default();
        outline.extend(&events);
        let stored = Stored { header: header.to_line(), events, outline, modified_at: now() };
        contents.sessions.insert(header.id.clone(), stored);
        true
    }

    /// Adds events to a session; whether it is there.
    pub(super) fn extend(&self, id: &SessionId, events: Vec<Event>) -> bool {
        let mut contents = locked(&self.contents);
        let Some(stored) = contents.sessions.get_mut(id) else { return false };
        stored.outline.extend(&events);
        stored.events.extend(events);
        stored.modified_at = now();
        true
    }

    /// Keeps other stores on this disk from writing a session; `None` when one of them does.
    pub(super) fn lease(&self, id: &SessionId) -> Option<Lease> {
        let free = locked(&self.contents).owned.insert(id.clone());
        free.then(|| Lease { disk: self.clone(), id: id.clone() })
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = locked(&self.contents).sessions.len();
        f.debug_struct("Disk").field("sessions", &sessions).finish_non_exhaustive()
    }
}

impl Stored {
    /// What is known of the session, once its header has been read.
    pub(super) fn stat(&self, header: SessionHeader) -> SessionStat {
        SessionStat {
            header,
            // Logs only grow, and are never removed.
            revision: Revision::new(format!("stored:{}", self.events.len())),
            event_count: Some(self.events.len() as u64),
            size_bytes: None,
            modified_at: Some(self.modified_at),
            hints: Some(self.outline.hints()),
        }
    }
}

/// The right to write a session, until dropped.
#[derive(Debug)]
pub(super) struct Lease {
    disk: Disk,
    id: SessionId,
}

impl Drop for Lease {
    fn drop(&mut self) {
        locked(&self.disk.contents).owned.remove(&self.id);
    }
}
