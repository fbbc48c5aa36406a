//! Who writes what, within one store.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use turnkeep_log::{SessionHeader, SessionId};

use super::{
    closed::Closed, listing::Pending, live::LiveOptions, rounds::Rounds, writer::WriteLog,
    writing::Writing,
};
use crate::seam::Revision;

/// The write handles of a store: at most one a session.
#[derive(Debug)]
pub(crate) struct Registry<L: WriteLog> {
    /// What the backend is called in the revisions of pending sessions.
    backend: &'static str,
    /// How published events are buffered.
    live: LiveOptions,
    owners: Mutex<HashMap<SessionId, Arc<Owner<L>>>>,
    pending_made: AtomicU64,
    rounds: Rounds,
}

/// What a write handle tells the readers beside it.
#[derive(Debug)]
pub(crate) struct Owner<L: WriteLog> {
    standing: Mutex<Standing<L::Acknowledged>>,
    writing: OnceLock<Weak<Writing<L>>>,
    closed: OnceLock<Closed>,
    /// Whether it has accepted what is not synced yet.
    unsynced: AtomicBool,
}

/// How far a write handle has come.
#[derive(Clone, Debug)]
pub(crate) enum Standing<A> {
    /// It is being opened: whatever is stored counts.
    Opening,
    /// Its session is not stored yet.
    Pending { header: Arc<SessionHeader>, revision: Revision },
    /// Its session is stored as far as this says, in the backend's terms.
    Stored(A),
    /// It was closed before its session was stored.
    Erased,
}

impl<L: WriteLog> Owner<L> {
    pub(crate) fn standing(&self) -> Standing<L::Acknowledged> {
        locked(&self.standing).clone()
    }

    pub(crate) fn set_standing(&self, standing: Standing<L::Acknowledged>) {
        *locked(&self.standing) = standing;
    }

    /// Lets the store reach what the handle writes with.
    pub(crate) fn attach(&self, writing: &Arc<Writing<L>>) {
        self.closed.get_or_init(|| writing.closed().clone());
        self.writing.get_or_init(|| Arc::downgrade(writing));
    }

    /// Where it is told how closing the handle ended; nothing while it is being opened.
    pub(crate) fn closed(&self) -> Option<&Closed> {
        self.closed.get()
    }

    /// What the handle writes with; nothing while it is being opened, and once it is dropped.
    pub(crate) fn writing(&self) -> Option<Arc<Writing<L>>> {
        self.writing.get()?.upgrade()
    }

    pub(crate) fn weak_writing(&self) -> Option<Weak<Writing<L>>> {
        self.writing.get().cloned()
    }

    pub(crate) fn is_unsynced(&self) -> bool {
        self.unsynced.load(Ordering::Acquire)
    }

    pub(crate) fn set_unsynced(&self, unsynced: bool) {
        self.unsynced.store(unsynced, Ordering::Release);
    }
}

impl<L: WriteLog> Registry<L> {
    pub(crate) fn new(backend: &'static str, live: LiveOptions) -> Arc<Self> {
        let (owners, pending_made) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { backend, live, owners, pending_made, rounds: Rounds::default() })
    }

    /// Claims a session for a write handle; `None` when there is one.
    pub(crate) fn claim(self: &Arc<Self>, id: &SessionId) -> Option<Claim<L>> {
        let mut owners = locked(&self.owners);
        if owners.contains_key(id) {
            return None;
        }
        let owner = Arc::new(Owner {
            standing: Mutex::new(Standing::Opening),
            writing: OnceLock::new(),
            closed: OnceLock::new(),
            unsynced: AtomicBool::new(false),
        });
        owners.insert(id.clone(), Arc::clone(&owner));
        Some(Claim { registry: Arc::clone(self), id: id.clone(), owner })
    }

    pub(crate) fn owner(&self, id: &SessionId) -> Option<Arc<Owner<L>>> {
        locked(&self.owners).get(id).cloned()
    }

    /// What the session's write handle has acknowledged, if it has one and has stored anything.
    pub(crate) fn acknowledged(&self, id: &SessionId) -> Option<L::Acknowledged> {
        match self.owner(id)?.standing() {
            Standing::Stored(acknowledged) => Some(acknowledged),
            _ => None,
        }
    }

    /// What the session's write handle writes with, if it has one that is open.
    pub(crate) fn writing(&self, id: &SessionId) -> Option<Arc<Writing<L>>> {
        self.owner(id)?.writing()
    }

    pub(crate) fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// All write handles, by session.
    pub(crate) fn owners(&self) -> Vec<(SessionId, Arc<Owner<L>>)> {
        let owners = locked(&self.owners);
        let mut owners: Vec<_> =
            owners.iter().map(|(id, owner)| (id.clone(), Arc::clone(owner))).collect();
        owners.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        owners
    }

    /// The sessions that are not stored yet, by id.
    pub(crate) fn all_pending(&self) -> Vec<Pending> {
        let pending = self.owners().into_iter().filter_map(|(_, owner)| match owner.standing() {
            Standing::Pending { header, revision } => Some(Pending { header, revision }),
            _ => None,
        });
        pending.collect()
    }

    /// How a new session stands: with a revision that no other state of any session has.
    pub(crate) fn pending(&self, header: SessionHeader) -> Standing<L::Acknowledged> {
        let count = self.pending_made.fetch_add(1, Ordering::Relaxed);
        Standing::Pending {
            header: Arc::new(header),
            revision: Revision::new(format!("memory:{}:{count}", self.backend)),
        }
    }
}

/// A session claimed for a write handle, until dropped.
#[derive(Debug)]
pub(crate) struct Claim<L: WriteLog> {
    registry: Arc<Registry<L>>,
    id: SessionId,
    owner: Arc<Owner<L>>,
}

impl<L: WriteLog> Claim<L> {
    pub(crate) fn owner(&self) -> &Arc<Owner<L>> {
        &self.owner
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// How events published to the session are buffered.
    pub(crate) fn live(&self) -> LiveOptions {
        self.registry.live
    }

    /// Sees to it that what was accepted is synced before long.
    pub(crate) fn expect_sync(&self) {
        // Without a queue, whoever calls does everything himself.
        if self.owner.writing().is_some() {
            self.registry.rounds.expect_one(&self.registry);
        }
    }
}

impl<L: WriteLog> Drop for Claim<L> {
    fn drop(&mut self) {
        locked(&self.registry.owners).remove(&self.id);
        let mut standing = locked(&self.owner.standing);
        if matches!(*standing, Standing::Pending { .. }) {
            *standing = Standing::Erased;
        }
    }
}

/// Locks what no panic can leave half-changed.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
