//! Reading sessions, and keeping what was read.

use std::{
    fmt,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use turnkeep_log::SessionId;

use super::{
    flight::Flights,
    kept::{Kept, Limits, Outdated, Serial},
    session::{ColdSession, Lease},
    several::at_a_time,
};
use crate::{
    error::{
        Cancelled, ColdError, HandleClosed, IoFailure, NotFound, OpenError, ReadError,
        SourceConflict, StatError,
    },
    seam::{Access, Cancel, EventRange, Revision, SessionStat, SessionStore},
    shell::locked,
};

/// How many sessions are read at a time when several are asked for.
const AT_A_TIME: usize = 4;

/// How often a session that changes hands under the reader is looked at again.
const ATTEMPTS: usize = 4;

/// How much is kept of sessions that nobody is looking at. What leases pin comes on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdOptions {
    /// How many sessions. With 0, nothing outlives its leases.
    pub max_unpinned: usize,
    /// How many [bytes](ColdSession::bytes) of them. A session that is larger is not kept either.
    pub max_bytes: u64,
}

impl Default for ColdOptions {
    /// Five sessions, of 256 MiB at most all together.
    fn default() -> Self {
        Self { max_unpinned: 5, max_bytes: 256 << 20 }
    }
}

/// Sessions that were read, kept while they are in use and have not changed.
///
/// Cloning it is cheap and gives the same cache. It may serve several stores: what was read
/// through one is never shown for another, though of one id only the last one is kept.
#[derive(Clone, Default)]
pub struct ColdCache {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    kept: Mutex<Kept<Entry>>,
    flights: Flights<FlightKey, Entry>,
    begun: AtomicU64,
}

/// A store, a session, a revision: equal ones are read once.
type FlightKey = (StoreKey, SessionId, Revision);

/// A session that was read, and when and where.
#[derive(Clone, Debug)]
struct Entry {
    session: Arc<ColdSession>,
    store: StoreKey,
    serial: Serial,
}

/// Tells one store instance from every other, for as long as anyone remembers it.
#[derive(Clone, Debug)]
pub(super) struct StoreKey(Weak<dyn SessionStore>);

impl StoreKey {
    pub(super) fn of(store: &Arc<dyn SessionStore>) -> Self {
        Self(Arc::downgrade(store))
    }

    fn address(&self) -> *const () {
        self.0.as_ptr().cast()
    }
}

impl PartialEq for StoreKey {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

impl Eq for StoreKey {}

impl std::hash::Hash for StoreKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new(ColdOptions::default())
    }
}

impl Shared {
    fn new(options: ColdOptions) -> Self {
        let limits = Limits { entries: options.max_unpinned, bytes: options.max_bytes };
        Self {
            kept: Mutex::new(Kept::new(limits)),
            flights: Flights::default(),
            begun: AtomicU64::new(0),
        }
    }
}

impl ColdCache {
    /// An empty cache.
    #[must_use]
    pub fn new(options: ColdOptions) -> Self {
        Self { shared: Arc::new(Shared::new(options)) }
    }

    /// Looks at a session.
    ///
    /// What is kept of it answers when it is still the log that the store has. Otherwise the log is
    /// read and checked, once for everyone who asks meanwhile; whoever stops waiting does not take
    /// it from the others. A session that a write handle of this store owns is read for each look.
    ///
    /// # Errors
    ///
    /// `not_found`; `format_unsupported` and `corrupt` for a log that cannot be faithfully read;
    /// `source_conflict` when the session was replaced, or opened and closed, each time it was
    /// looked at; `cancelled`; `io`.
    pub async fn observe(
        &self,
        store: &Arc<dyn SessionStore>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Lease, ColdError> {
        let mut problem = "it was opened and closed again and again";
        for _ in 0..ATTEMPTS {
            check(cancel)?;
            match self.look(store, id, cancel).await {
                Ok(Some(lease)) => return Ok(lease),
                Ok(None) => {}
                Err(ColdError::SourceConflict(conflict)) => problem = conflict.problem,
                Err(failure) => return Err(failure),
            }
        }
        Err(SourceConflict { id: id.clone(), problem }.into())
    }

    /// Looks at several sessions, four at a time. The outcomes are in the order of the ids.
    pub async fn observe_all(
        &self,
        store: &Arc<dyn SessionStore>,
        ids: &[SessionId],
        cancel: &Cancel,
    ) -> Vec<Result<Lease, ColdError>> {
        let looks = ids.iter().cloned().map(|id| {
            let (cache, store, cancel) = (self.clone(), Arc::clone(store), cancel.clone());
            async move { cache.observe(&store, &id, &cancel).await }
        });
        let outcomes = at_a_time(AT_A_TIME, looks).await;
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(lost()))).collect()
    }

    /// How many sessions are kept at the moment, pinned ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        locked(&self.shared.kept).len()
    }

    /// Whether nothing is kept at the moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks once; nothing when the session changed hands meanwhile.
    async fn look(
        &self,
        store: &Arc<dyn SessionStore>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<Lease>, ColdError> {
        let serial = Serial(self.shared.begun.fetch_add(1, Ordering::Relaxed));
        let live = store.owns(id);
        let Some(stat) = store.stat(id, cancel).await? else {
            // A log whose first line is not whole has no stat; opening it says why.
            store.open(id, Access::Read, cancel).await?;
            return Ok(None);
        };
        if store.owns(id) != live {
            return Ok(None);
        }
        if live {
            let session = read(Arc::clone(store), stat, true, cancel.clone()).await?;
            return Ok(store.owns(id).then(|| Lease::new(session, None)));
        }
        let key = StoreKey::of(store);
        if let Some(lease) = self.hit(&key, &stat) {
            return Ok(Some(lease));
        }
        let flight = (key.clone(), id.clone(), stat.revision.clone());
        let reading = |cancel| {
            let store = Arc::clone(store);
            async move {
                let session = read(store, stat, false, cancel).await?;
                Ok(Entry { session, store: key, serial })
            }
        };
        let entry = self.shared.flights.join(flight, reading, cancel).await?;
        if store.owns(id) {
            return Ok(None);
        }
        Ok(Some(self.keep(id, &entry)))
    }

    /// What is kept of a session, if it still counts.
    fn hit(&self, store: &StoreKey, stat: &SessionStat) -> Option<Lease> {
        let id = &stat.header.id;
        let mut kept = locked(&self.shared.kept);
        let (entry, serial) = kept.get(id)?;
        let counts = entry.store == *store
            && entry.session.revision() == &stat.revision
            && entry.session.header() == &stat.header;
        let session = counts.then(|| Arc::clone(&entry.session))?;
        kept.pin(id, serial);
        Some(self.lease(session, serial))
    }

    /// Keeps what was read, unless what is kept was read later.
    fn keep(&self, id: &SessionId, entry: &Entry) -> Lease {
        let session = Arc::clone(&entry.session);
        let inserted = locked(&self.shared.kept).insert(id, entry.serial, session.bytes(), entry);
        match inserted {
            Ok(_older) => self.lease(session, entry.serial),
            Err(Outdated) => Lease::new(session, None),
        }
    }

    /// A lease of what has just been pinned.
    fn lease(&self, session: Arc<ColdSession>, serial: Serial) -> Lease {
        let pin = Pin { shared: Arc::clone(&self.shared), id: session.id().clone(), serial };
        Lease::new(session, Some(pin))
    }

    /// What is kept of a session of this store, of whatever revision.
    pub(super) fn peek(
        &self,
        store: &Arc<dyn SessionStore>,
        id: &SessionId,
    ) -> Option<Arc<ColdSession>> {
        let kept = locked(&self.shared.kept);
        let (entry, _) = kept.get(id)?;
        (entry.store == StoreKey::of(store)).then(|| Arc::clone(&entry.session))
    }
}

impl fmt::Debug for ColdCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColdCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Keeps an entry from being let go.
pub(super) struct Pin {
    shared: Arc<Shared>,
    id: SessionId,
    serial: Serial,
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        locked(&self.shared.kept).pin(&self.id, self.serial);
        Self { shared: Arc::clone(&self.shared), id: self.id.clone(), serial: self.serial }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let gone = locked(&self.shared.kept).unpin(&self.id, self.serial);
        drop(gone);
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pin").field(&self.id).field(&self.serial).finish()
    }
}

/// Reads a session whose revision was taken before.
pub(super) async fn read(
    store: Arc<dyn SessionStore>,
    stat: SessionStat,
    live: bool,
    cancel: Cancel,
) -> Result<Arc<ColdSession>, ColdError> {
    let SessionStat { header, revision, .. } = stat;
    let handle = store.open(&header.id, Access::Read, &cancel).await?;
    if *handle.header() != header {
        let problem = "another session took its id";
        return Err(SourceConflict { id: header.id, problem }.into());
    }
    let events = handle.read(EventRange::ALL, &cancel).await?;
    drop(handle);
    let session = tokio::task::spawn_blocking(move || {
        Arc::new(ColdSession::new(header, revision, events, live))
    });
    session.await.map_err(|_| lost())
}

pub(super) fn check(cancel: &Cancel) -> Result<(), Cancelled> {
    if cancel.is_cancelled() { Err(Cancelled { operation: "observe" }) } else { Ok(()) }
}

fn lost() -> ColdError {
    let source = std::io::Error::other("the runtime ended before it was done");
    IoFailure { context: "cannot read a session".to_owned(), source }.into()
}

impl From<StatError> for ColdError {
    fn from(error: StatError) -> Self {
        match error {
            StatError::FormatUnsupported(failure) => failure.into(),
            StatError::Corrupt(failure) => failure.into(),
            StatError::Cancelled(failure) => failure.into(),
            StatError::IoFailure(failure) => failure.into(),
        }
    }
}

impl From<OpenError> for ColdError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NotFound(failure) => failure.into(),
            OpenError::AlreadyOwned(failure) => {
                SourceConflict { id: failure.id, problem: "it is being written" }.into()
            }
            OpenError::FormatUnsupported(failure) => failure.into(),
            OpenError::Corrupt(failure) => failure.into(),
            OpenError::Cancelled(failure) => failure.into(),
            OpenError::IoFailure(failure) => failure.into(),
        }
    }
}

impl From<ReadError> for ColdError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound(NotFound { id }) => NotFound { id }.into(),
            ReadError::HandleClosed(HandleClosed { id, .. }) => {
                SourceConflict { id, problem: "the handle was closed" }.into()
            }
            ReadError::LogShrank(failure) => {
                SourceConflict { id: failure.id, problem: "its log got shorter" }.into()
            }
            ReadError::FormatUnsupported(failure) => failure.into(),
            ReadError::Corrupt(failure) => failure.into(),
            ReadError::Cancelled(failure) => failure.into(),
            ReadError::IoFailure(failure) => failure.into(),
        }
    }
}
