//! Folded logs, kept while there is room.
//!
//! Folding a log into records means reading all of it, so what was folded is kept: as long as the
//! log does not change nothing is read again, and when it has grown only the new events are.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use turnkeep_log::{Event, SessionHeader, SessionId};
use turnkeep_store::{Revision, SessionHandle, SessionHints, SessionStat, cold::BlankGates};
use turnkeep_turns::fold::Fold;

/// What may be kept, and what may be read unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoldLimits {
    /// How many bytes of folded events to keep.
    pub(crate) cache_bytes: u64,
    /// Which sessions are small enough to be read for a listing.
    pub(crate) listing: BlankGates,
}

/// What a folded log says of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glimpse {
    /// What the session is called.
    pub(crate) title: Option<String>,
    /// When a person last wrote, in milliseconds since the epoch.
    pub(crate) last_prompt_at: Option<i64>,
    /// Whether nothing was said yet.
    pub(crate) blank: bool,
}

impl Glimpse {
    /// What the store wrote down of the session, when its log was not folded. Blank is only what was
    /// read and found to be: a session that is not worth a look is shown.
    pub(crate) fn of_hints(hints: &SessionHints) -> Self {
        Self { title: hints.title.clone(), last_prompt_at: hints.last_prompt_at, blank: false }
    }
}

/// A fold that several requests may use: one extends it, the others wait for that.
///
/// Empty before the first use; a failed one leaves it as it was.
pub(crate) type SharedFold = Arc<tokio::sync::Mutex<Option<Entry>>>;

/// What a fold costs besides the text of its events, about.
const OVERHEAD_BYTES: u64 = 4096;

/// One log, folded up to some event, and open to be read on from there: a handle that has read a
/// log before need not check all of it again.
pub(crate) struct Entry {
    handle: Arc<dyn SessionHandle>,
    header: SessionHeader,
    revision: Revision,
    fold: Fold,
    /// The newest event that is in.
    newest: Option<Event>,
    bytes: u64,
}

impl Entry {
    /// Nothing of the log yet.
    pub(crate) fn new(stat: &SessionStat, handle: Arc<dyn SessionHandle>) -> Self {
        let fold = Fold::new(&stat.header.id);
        Self {
            handle,
            header: stat.header.clone(),
            revision: stat.revision.clone(),
            fold,
            newest: None,
            bytes: OVERHEAD_BYTES,
        }
    }

    /// Whether all of the log is in, as of `stat`.
    pub(crate) fn is_at(&self, stat: &SessionStat) -> bool {
        self.revision == stat.revision && self.header == stat.header
    }

    /// Whether the log of `stat` is this one, grown. Logs only grow, so it is unless the session
    /// was deleted and another one made under its name.
    pub(crate) fn continues_to(&self, stat: &SessionStat) -> bool {
        let shrank = stat.event_count.is_some_and(|events| events < self.fold.next_seq().0);
        self.header == stat.header && !shrank
    }

    /// The newest event that is in. A log that has another one in its place is another log.
    pub(crate) fn newest(&self) -> Option<&Event> {
        self.newest.as_ref()
    }

    /// The handle to read on with.
    pub(crate) fn handle(&self) -> &Arc<dyn SessionHandle> {
        &self.handle
    }

    /// Folds in the next events, which bring the log to this revision or a later one.
    pub(crate) fn extend(&mut self, events: &[Event], revision: Revision) {
        for event in events {
            if event.seq() < self.fold.next_seq() {
                continue;
            }
            self.fold.push(event);
            self.bytes += event.text().len() as u64;
        }
        self.newest = events.last().cloned().or(self.newest.take());
        self.revision = revision;
    }

    /// The records.
    pub(crate) fn fold(&self) -> &Fold {
        &self.fold
    }

    /// How much is kept alive, about: the text of the events.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What a listing says of the session.
    pub(crate) fn glimpse(&self) -> Glimpse {
        Glimpse {
            title: self.fold.headline().map(str::to_owned),
            last_prompt_at: self.fold.last_prompt_at(),
            blank: self.fold.blank(),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("session", &self.header.id)
            .field("revision", &self.revision)
            .field("next_seq", &self.fold.next_seq())
            .finish_non_exhaustive()
    }
}

/// The folds that are kept: the least recently used ones go when there are too many bytes.
#[derive(Debug)]
pub(crate) struct Folds {
    max_bytes: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_id: HashMap<SessionId, Slot>,
    uses: u64,
}

#[derive(Debug)]
struct Slot {
    fold: SharedFold,
    bytes: u64,
    last_use: u64,
}

impl Folds {
    /// Keeps at most this many bytes.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, kept: Mutex::default() }
    }

    /// The fold of this session, empty when none is kept.
    pub(crate) fn shared(&self, id: &SessionId) -> SharedFold {
        let mut kept = self.kept();
        kept.uses += 1;
        let now = kept.uses;
        let slot = kept.by_id.entry(id.clone()).or_insert_with(|| Slot {
            fold: SharedFold::default(),
            bytes: OVERHEAD_BYTES,
            last_use: now,
        });
        slot.last_use = now;
        Arc::clone(&slot.fold)
    }

    /// Notes how large a fold has become, and lets others go to make room for it.
    pub(crate) fn used(&self, id: &SessionId, fold: &SharedFold, bytes: u64) {
        let mut kept = self.kept();
        if let Some(slot) = kept.by_id.get_mut(id).filter(|slot| Arc::ptr_eq(&slot.fold, fold)) {
            slot.bytes = bytes;
        }
        let mut total: u64 = kept.by_id.values().map(|slot| slot.bytes).sum();
        while total > self.max_bytes {
            let oldest = kept.by_id.iter().min_by_key(|(_, slot)| slot.last_use);
            let oldest = oldest.map(|(id, _)| id.clone());
            let Some(gone) = oldest.and_then(|id| kept.by_id.remove(&id)) else { return };
            total = total.saturating_sub(gone.bytes);
        }
    }

    /// What is known of a session at this revision, if it is kept and nobody is extending it.
    pub(crate) fn glimpse(&self, stat: &SessionStat) -> Option<Glimpse> {
        let fold = self.kept().by_id.get(&stat.header.id).map(|slot| Arc::clone(&slot.fold))?;
        let slot = fold.try_lock().ok()?;
        slot.as_ref().filter(|entry| entry.is_at(stat)).map(Entry::glimpse)
    }

    /// How many logs are kept folded, and about how many bytes that takes.
    pub(crate) fn size(&self) -> (usize, u64) {
        let kept = self.kept();
        (kept.by_id.len(), kept.by_id.values().map(|slot| slot.bytes).sum())
    }

    /// Nothing can panic while this is locked; a poisoned lock would be as good as any.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "folds_tests.rs"]
mod tests;
