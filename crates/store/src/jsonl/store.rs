//! The store: the asynchronous shell around the synchronous core.

use std::{io, sync::Arc};

use async_trait::async_trait;
use turnkeep_log::{SessionHeader, SessionId};

use super::{
    JsonlOptions,
    discover::{self, check_place},
    failure::{LogFailure, Subject},
    fs::{Fs, OpenMode, OsFs},
    handle::{JsonlHandle, Reading, not_run},
    layout::{Encoding, SessionDir},
    list,
    lock::Lock,
    mutations::Owned,
    open_log::OpenLog,
    queue::NotRun,
    reader::{ReadRequest, read_log},
    registry::{Claim, Registry, Standing},
    root::Root,
    snapshot,
    writer::Writer,
};
use crate::{
    error::{
        AlreadyExists, AlreadyOwned, Cancelled, CreateError, FlushError, FlushStoreError,
        IoFailure, ListError, NotFound, NotSerializable, OpenError, StatError, StoreError,
    },
    seam::{
        Access, Cancel, EventRange, ListQuery, SessionHandle, SessionList, SessionStat,
        SessionStore,
    },
};

/// Sessions as files below one directory.
///
/// Cloning it is cheap and gives the same store: one set of write handles, one view of pending
/// sessions. Its operations need a Tokio runtime, whose blocking pool does the file work.
///
/// The layout, and why appending to it is safe, are described in `docs/format.md`.
#[derive(Clone, Debug)]
pub struct JsonlStore {
    shared: Arc<Shared>,
}

/// What a store and its handles have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) root: Arc<Root>,
    pub(crate) registry: Arc<Registry>,
}

impl Shared {
    pub(crate) fn open_on(options: JsonlOptions, fs: Arc<dyn Fs>) -> Result<Arc<Self>, StoreError> {
        let root = Arc::new(Root::open(options, fs)?);
        Ok(Arc::new(Self { root, registry: Arc::default() }))
    }
}

impl JsonlStore {
    /// Opens a store. Nothing is created; a root that is not there is made with its first session.
    ///
    /// # Errors
    ///
    /// `usage` when the root is no directory, or one that others may write to; `io` when it cannot
    /// be read.
    pub fn open(options: JsonlOptions) -> Result<Self, StoreError> {
        Self::open_on(options, Arc::new(OsFs))
    }

    /// Opens a store on a file system of your own.
    ///
    /// # Errors
    ///
    /// As [`JsonlStore::open`].
    pub fn open_on(options: JsonlOptions, fs: Arc<dyn Fs>) -> Result<Self, StoreError> {
        Shared::open_on(options, fs).map(|shared| Self { shared })
    }

    /// How the logs of this root are encoded.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.shared.root.encoding
    }
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn create(
        &self,
        header: SessionHeader,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, CreateError> {
        check(cancel, "create")?;
        check_header(&header)?;
        let exists = AlreadyExists { id: header.id.clone() };
        let Some(claim) = self.shared.registry.claim(&header.id) else {
            return Err(exists.into());
        };
        let shared = Arc::clone(&self.shared);
        let cancel = cancel.clone();
        on_pool("create a session", move || shared.create(header, claim, &cancel)).await?
    }

    async fn open(
        &self,
        id: &SessionId,
        access: Access,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, OpenError> {
        check(cancel, "open")?;
        let (shared, id, cancel) = (Arc::clone(&self.shared), id.clone(), cancel.clone());
        match access {
            Access::Read => {
                on_pool("open a session", move || shared.open_to_read(&id, &cancel)).await?
            }
            Access::Write => {
                let claim = shared.registry.claim(&id);
                let claim = claim.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
                on_pool("open a session", move || shared.open_to_write(&id, claim, &cancel)).await?
            }
        }
    }

    async fn stat(
        &self,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<SessionStat>, StatError> {
        check(cancel, "stat")?;
        let (shared, id) = (Arc::clone(&self.shared), id.clone());
        on_pool("look at a session", move || shared.stat(&id)).await?
    }

    async fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError> {
        check(cancel, "list")?;
        let (shared, query, cancel) = (Arc::clone(&self.shared), query.clone(), cancel.clone());
        on_pool("list sessions", move || {
            list::list(&shared.root, &shared.registry, &query, &cancel)
        })
        .await?
    }

    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushStoreError> {
        let mut flushes = Vec::new();
        for (id, owner) in self.shared.registry.owners() {
            // A handle that is still being opened has accepted nothing.
            let Some(mutations) = owner.mutations() else { continue };
            flushes.push((id, mutations.submit(Owned::flush, |_| {})));
        }
        let mut failures = Vec::new();
        for (id, submitted) in flushes {
            let outcome = match submitted {
                Ok(submitted) => submitted.outcome(cancel).await,
                Err(why) => Err(why),
            };
            let failure = match outcome {
                // One that was closed meanwhile has flushed what it had.
                Ok(Ok(()) | Err(FlushError::HandleClosed(_))) | Err(NotRun::Closed) => continue,
                Ok(Err(failure)) => failure,
                Err(why) => not_run(why, id.clone(), "flush"),
            };
            failures.push((id, failure));
        }
        if failures.is_empty() { Ok(()) } else { Err(FlushStoreError { failures }) }
    }
}

/// The operations as they run on the blocking pool.
impl Shared {
    fn create(
        self: &Arc<Self>,
        header: SessionHeader,
        claim: Claim,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, CreateError> {
        let (reading, owned) = self.reserve(header, claim, cancel)?;
        Ok(Box::new(JsonlHandle::new(reading, Some(owned))))
    }

    /// Owns a session that is not stored yet.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        header: SessionHeader,
        claim: Claim,
        cancel: &Cancel,
    ) -> Result<(Reading, Owned), CreateError> {
        if discover::find(&self.root, &header.id)?.is_some() {
            return Err(AlreadyExists { id: header.id }.into());
        }
        check(cancel, "create")?;
        let owner = Arc::clone(claim.owner());
        owner.set_standing(self.registry.pending(header.clone()));
        let path = self.root.layout.session_dir(&header).log(self.root.encoding);
        let writer = Writer::pending(Arc::clone(&self.root), Arc::clone(&owner), header.clone());
        let reading = Reading::new(Arc::clone(self), header, path, Some(owner));
        Ok((reading, Owned::new(writer, claim)))
    }

    fn open_to_read(
        self: &Arc<Self>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, OpenError> {
        let owner = self.registry.owner(id);
        if let Some(owner) = owner
            && let Standing::Pending { header, .. } = owner.standing()
        {
            let path = self.root.layout.session_dir(&header).log(self.root.encoding);
            let reading = Reading::new(Arc::clone(self), (*header).clone(), path, Some(owner));
            return Ok(Box::new(JsonlHandle::new(reading, None)));
        }
        let not_found = || NotFound { id: id.clone() };
        let dir = discover::find(&self.root, id)?.ok_or_else(not_found)?;
        check(cancel, "open")?;
        let path = dir.log(self.root.encoding);
        let (head, _) =
            snapshot::read_head(&self.root, &self.registry, id, &dir)?.ok_or_else(not_found)?;
        let header = head.header()?.ok_or_else(|| {
            Subject { id, path: &path }.corrupt("empty or header-less session log")
        })?;
        check_place(&self.root, &header, &dir)?;
        let reading = Reading::new(Arc::clone(self), header, path, None);
        Ok(Box::new(JsonlHandle::new(reading, None)))
    }

    fn open_to_write(
        self: &Arc<Self>,
        id: &SessionId,
        claim: Claim,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, OpenError> {
        let (reading, owned) = self.own(id, claim, cancel)?;
        Ok(Box::new(JsonlHandle::new(reading, Some(owned))))
    }

    /// Owns a stored session.
    pub(crate) fn own(
        self: &Arc<Self>,
        id: &SessionId,
        claim: Claim,
        cancel: &Cancel,
    ) -> Result<(Reading, Owned), OpenError> {
        let not_found = || NotFound { id: id.clone() };
        // Before anything is made: an absent session must leave no lock file behind.
        let dir = discover::find(&self.root, id)?.ok_or_else(not_found)?;
        let lock = self.lock(id, &dir)?.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
        let path = dir.log(self.root.encoding);
        let request = ReadRequest {
            id,
            path: &path,
            range: EventRange { offset: u64::MAX, length: None },
            known: None,
            acknowledged: None,
            cancel,
            operation: "open",
        };
        let read = read_log(&self.root, &request)?.ok_or_else(not_found)?;
        let (Some(header), Some(ending)) = (read.header, read.ending) else {
            return Err(not_found().into());
        };
        check_place(&self.root, &header, &dir)?;
        let file = self
            .root
            .fs
            .open(&path, OpenMode::Append)
            .map_err(|source| Subject { id, path: &path }.io("open", source))?;
        check(cancel, "open")?;

        let log = OpenLog::read(&self.root, dir, file, &read.progress, read.tail, ending);
        let writer = Writer::stored(
            Arc::clone(&self.root),
            Arc::clone(claim.owner()),
            id.clone(),
            log,
            read.progress.next,
            lock,
        );
        let reading = Reading::new(Arc::clone(self), header, path, None).primed(read.progress);
        Ok((reading, Owned::new(writer, claim)))
    }

    fn lock(&self, id: &SessionId, dir: &SessionDir) -> Result<Option<Lock>, LogFailure> {
        let lock = dir.lock();
        Lock::take(&*self.root.fs, dir)
            .map_err(|source| Subject { id, path: &lock }.io("lock", source))
    }

    fn stat(&self, id: &SessionId) -> Result<Option<SessionStat>, StatError> {
        if let Some(Standing::Pending { header, revision }) =
            self.registry.owner(id).map(|owner| owner.standing())
        {
            return Ok(Some(snapshot::of_pending(&header, &revision)));
        }
        match discover::find(&self.root, id)? {
            Some(dir) => Ok(snapshot::take(&self.root, &self.registry, id, &dir)?),
            None => Ok(None),
        }
    }
}

fn check(cancel: &Cancel, operation: &'static str) -> Result<(), Cancelled> {
    if cancel.is_cancelled() { Err(Cancelled { operation }) } else { Ok(()) }
}

fn check_header(header: &SessionHeader) -> Result<(), NotSerializable> {
    let refuse = |problem: String| {
        Err(NotSerializable { id: header.id.clone(), what: "the header".to_owned(), problem })
    };
    if let Err(error) = header.validate() {
        return refuse(error.to_string());
    }
    match header.cwd.as_deref() {
        Some("") => refuse("its `cwd` is empty; leave it out".to_owned()),
        _ => Ok(()),
    }
}

/// Runs file work on the blocking pool, to its end even if nobody waits for it any more.
pub(crate) async fn on_pool<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, IoFailure> {
    let failed = |source| IoFailure { context: format!("cannot {doing}"), source };
    let runtime =
        tokio::runtime::Handle::try_current().map_err(io::Error::other).map_err(failed)?;
    runtime.spawn_blocking(work).await.map_err(io::Error::other).map_err(failed)
}
