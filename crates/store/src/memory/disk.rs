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
    shell::{deletion_time, locked, now},
    trash::{Emptying, Trashed},
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
    trash: Vec<InTrash>,
    /// How many logs there have been.
    made: u64,
    owned: HashSet<SessionId>,
    full: bool,
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
    /// Which of the logs of this disk it is.
    number: u64,
}

/// A deleted session.
struct InTrash {
    id: SessionId,
    /// In milliseconds since the epoch.
    deleted_at: i64,
    stored: Stored,
}

impl Disk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on there is no room on it, or there is again: while it is full every write fails,
    /// and changes nothing. For tests of what happens then.
    pub fn set_full(&self, full: bool) {
        locked(&self.contents).full = full;
    }

    pub(super) fn is_full(&self) -> bool {
        locked(&self.contents).full
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
        contents.made += 1;
        let number = contents.made;
        let mut outline = Outline::default();
        outline.extend(&events);
        let stored =
            Stored { header: header.to_line(), events, outline, modified_at: now(), number };
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

    /// Moves a session to the trash; when, if it was there.
    pub(super) fn delete(&self, id: &SessionId) -> Option<i64> {
        let mut contents = locked(&self.contents);
        let stored = contents.sessions.remove(id)?;
        let deletions = contents.trash.iter().filter(|deletion| deletion.id == *id);
        let deleted_at = deletion_time(deletions.map(|deletion| deletion.deleted_at).max());
        contents.trash.push(InTrash { id: id.clone(), deleted_at, stored });
        Some(deleted_at)
    }

    /// What is in the trash.
    pub(super) fn trash(&self) -> Vec<Trashed> {
        locked(&self.contents).trash.iter().map(InTrash::describe).collect()
    }

    /// Moves a session back, by its last deletion or the one at a time; when that was, if it was
    /// there.
    pub(super) fn restore(&self, id: &SessionId, deleted_at: Option<i64>) -> Option<i64> {
        let mut contents = locked(&self.contents);
        let deletions = contents.trash.iter().enumerate().filter(|(_, deletion)| {
            deletion.id == *id && deleted_at.is_none_or(|time| deletion.deleted_at == time)
        });
        let (last, _) = deletions.max_by_key(|(_, deletion)| deletion.deleted_at)?;
        let InTrash { id, deleted_at, stored } = contents.trash.remove(last);
        contents.sessions.insert(id, stored);
        Some(deleted_at)
    }

    /// Removes sessions from the trash; which.
    pub(super) fn empty_trash(&self, which: Emptying) -> Vec<Trashed> {
        let mut contents = locked(&self.contents);
        let removed = contents.trash.extract_if(.., |deletion| which.takes(deletion.deleted_at));
        removed.map(|deletion| deletion.describe()).collect()
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
            // Logs only grow.
            revision: Revision::new(format!("stored:{}:{}", self.number, self.events.len())),
            event_count: Some(self.events.len() as u64),
            size_bytes: None,
            modified_at: Some(self.modified_at),
            hints: Some(self.outline.hints()),
        }
    }
}

impl InTrash {
    fn describe(&self) -> Trashed {
        let header = SessionHeader::parse(&self.stored.header, Some(&self.id)).ok();
        let events = self.stored.events.iter().map(|event| event.text().len() as u64 + 1);
        Trashed {
            id: self.id.clone(),
            cwd: header.and_then(|header| header.cwd),
            deleted_at: self.deleted_at,
            size_bytes: self.stored.header.len() as u64 + events.sum::<u64>(),
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
