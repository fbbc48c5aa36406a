//! Who writes what, within one store.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use turnkeep_log::{SessionHeader, SessionId};

use super::{fs::FileStat, mutations::Mutations};
use crate::seam::Revision;

/// The write handles of a store: at most one a session.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    owners: Mutex<HashMap<SessionId, Arc<Owner>>>,
    pending_made: AtomicU64,
}

/// What a write handle tells the readers beside it.
#[derive(Debug)]
pub(crate) struct Owner {
    standing: Mutex<Standing>,
    mutations: OnceLock<Weak<Mutations>>,
}

/// How far a write handle has come.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    /// It is being opened: whatever is stored counts.
    Opening,
    /// Its session is not stored yet.
    Pending { header: Arc<SessionHeader>, revision: Revision },
    /// Its session is stored as far as this says.
    Stored(Acknowledged),
    /// It was closed before its session was stored.
    Erased,
}

/// What is stored of a log for certain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// The file's state after the last acknowledged write.
    pub(crate) file: FileStat,
    /// Where the last acknowledged record ends.
    pub(crate) end: u64,
}

impl Owner {
    pub(crate) fn standing(&self) -> Standing {
        locked(&self.standing).clone()
    }

    pub(crate) fn set_standing(&self, standing: Standing) {
        *locked(&self.standing) = standing;
    }

    /// Lets the store reach the handle's queue.
    pub(crate) fn attach(&self, mutations: &Arc<Mutations>) {
        self.mutations.get_or_init(|| Arc::downgrade(mutations));
    }

    pub(crate) fn mutations(&self) -> Option<Arc<Mutations>> {
        self.mutations.get()?.upgrade()
    }
}

impl Registry {
    /// Claims a session for a write handle; `None` when there is one.
    pub(crate) fn claim(self: &Arc<Self>, id: &SessionId) -> Option<Claim> {
        let mut owners = locked(&self.owners);
        if owners.contains_key(id) {
            return None;
        }
        let owner =
            Arc::new(Owner { standing: Mutex::new(Standing::Opening), mutations: OnceLock::new() });
        owners.insert(id.clone(), Arc::clone(&owner));
        Some(Claim { registry: Arc::clone(self), id: id.clone(), owner })
    }

    pub(crate) fn owner(&self, id: &SessionId) -> Option<Arc<Owner>> {
        locked(&self.owners).get(id).cloned()
    }

    /// What the session's write handle has acknowledged, if it has one and has stored anything.
    pub(crate) fn acknowledged(&self, id: &SessionId) -> Option<Acknowledged> {
        match self.owner(id)?.standing() {
            Standing::Stored(acknowledged) => Some(acknowledged),
            _ => None,
        }
    }

    /// All write handles, by session.
    pub(crate) fn owners(&self) -> Vec<(SessionId, Arc<Owner>)> {
        let owners = locked(&self.owners);
        let mut owners: Vec<_> =
            owners.iter().map(|(id, owner)| (id.clone(), Arc::clone(owner))).collect();
        owners.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        owners
    }

    /// How a new session stands: with a revision that no other state of any session has.
    pub(crate) fn pending(&self, header: SessionHeader) -> Standing {
        let count = self.pending_made.fetch_add(1, Ordering::Relaxed);
        Standing::Pending {
            header: Arc::new(header),
            revision: Revision::new(format!("memory:jsonl:{count}")),
        }
    }
}

/// A session claimed for a write handle, until dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    registry: Arc<Registry>,
    id: SessionId,
    owner: Arc<Owner>,
}

impl Claim {
    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }
}

impl Drop for Claim {
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
