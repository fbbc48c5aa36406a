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
    listing::Pending,
    mutations::{Mutations, WriteLog},
    rounds::Rounds,
};
use crate::seam::Revision;

/// The write handles of a store: at most one a session.
#[derive(Debug)]
pub(crate) struct Registry<L: WriteLog> {
    /// What the backend is called in the revisions of pending sessions.
    backend: &'static str,
    owners: Mutex<HashMap<SessionId, Arc<Owner<L>>>>,
    pending_made: AtomicU64,
    rounds: Rounds,
}

/// What a write handle tells the readers beside it.
#[derive(Debug)]
pub(crate) struct Owner<L: WriteLog> {
    standing: Mutex<Standing<L::Acknowledged>>,
    mutations: OnceLock<Weak<Mutations<L>>>,
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

    pub(crate) fn is_unsynced(&self) -> bool {
        self.unsynced.load(Ordering::Acquire)
    }

    pub(crate) fn set_unsynced(&self, unsynced: bool) {
        self.unsynced.store(unsynced, Ordering::Release);
    }

    /// Lets the store reach the handle's queue.
    pub(crate) fn attach(&self, mutations: &Arc<Mutations<L>>) {
        self.mutations.get_or_init(|| Arc::downgrade(mutations));
    }

    pub(crate) fn weak_mutations(&self) -> Option<Weak<Mutations<L>>> {
        self.mutations.get().cloned()
    }

    pub(crate) fn mutations(&self) -> Option<Arc<Mutations<L>>> {
        self.mutations.get()?.upgrade()
    }
}

impl<L: WriteLog> Registry<L> {
    pub(crate) fn new(backend: &'static str) -> Arc<Self> {
        let (owners, pending_made) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { backend, owners, pending_made, rounds: Rounds::default() })
    }

    /// Claims a session for a write handle; `None` when there is one.
    pub(crate) fn claim(self: &Arc<Self>, id: &SessionId) -> Option<Claim<L>> {
        let mut owners = locked(&self.owners);
        if owners.contains_key(id) {
            return None;
        }
        let owner = Arc::new(Owner {
            standing: Mutex::new(Standing::Opening),
            mutations: OnceLock::new(),
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

    /// Sees to it that what was accepted is synced before long.
    pub(crate) fn expect_sync(&self) {
        // Without a queue, whoever calls does everything himself.
        if self.owner.mutations().is_some() {
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
