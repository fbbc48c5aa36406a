//! The operations of a store.

use std::{fmt, sync::Arc};

use turnkeep_log::{Seq, SessionHeader, SessionId};

use super::{
    failure::LogFailure,
    handle::{Handle, ReadLog, Reading},
    listing::Pending,
    mutations::Owned,
    on_pool,
    registry::{Claim, Registry, Standing},
    writer::{WriteLog, Writer},
};
use crate::{
    error::{
        AlreadyExists, AlreadyOwned, Cancelled, CreateError, ListError, NotFound, NotSerializable,
        OpenError, StatError,
    },
    seam::{Access, Cancel, ListQuery, SessionHandle, SessionList, SessionStat},
};

/// What a backend does for a store, as blocking code.
pub(crate) trait Core: fmt::Debug + Send + Sync + 'static {
    /// How a log is read.
    type Reader: ReadLog;
    /// How a log is written.
    type Log: WriteLog;

    /// Who writes what within this store.
    fn registry(&self) -> &Arc<Registry<Self::Log>>;

    /// Whether a session is stored, be it readable or not.
    fn is_stored(&self, id: &SessionId) -> Result<bool, LogFailure>;

    /// The log of a session that is not stored yet.
    fn new_log(self: &Arc<Self>, header: &SessionHeader) -> Self::Log;

    /// How the log of a session is read that is not stored yet, or may not be.
    fn reader(self: &Arc<Self>, header: &SessionHeader) -> Self::Reader;

    /// Finds a stored session and checks its header.
    fn find(
        self: &Arc<Self>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<Option<(SessionHeader, Self::Reader)>, LogFailure>;

    /// Keeps other writers out, then reads and checks the whole log.
    fn take_up(
        self: &Arc<Self>,
        id: &SessionId,
        cancel: &Cancel,
    ) -> Result<TakenUp<Self::Reader, Self::Log>, OpenError>;

    /// What is known of a stored session.
    fn stat(&self, id: &SessionId) -> Result<Option<SessionStat>, LogFailure>;

    /// One page of the sessions, the pending ones included.
    fn list(&self, query: &ListQuery, cancel: &Cancel) -> Result<SessionList, ListError>;
}

/// A session opened to write.
#[derive(Debug)]
pub(crate) struct TakenUp<R, L> {
    pub(crate) header: SessionHeader,
    pub(crate) reader: R,
    pub(crate) log: L,
    /// The seq that comes next.
    pub(crate) next: Seq,
}

/// An owned session: what reads it, and what writes it.
pub(crate) type Session<C> =
    (Reading<<C as Core>::Reader, <C as Core>::Log>, Owned<<C as Core>::Log>);

/// [`SessionStore::create`](crate::SessionStore::create).
pub(crate) async fn create<C: Core>(
    core: &Arc<C>,
    header: SessionHeader,
    cancel: &Cancel,
) -> Result<Box<dyn SessionHandle>, CreateError> {
    check(cancel, "create")?;
    check_header(&header)?;
    let Some(claim) = core.registry().claim(&header.id) else {
        return Err(AlreadyExists { id: header.id }.into());
    };
    let (core, cancel) = (Arc::clone(core), cancel.clone());
    on_pool("create a session", move || {
        let (reading, owned) = reserve(&core, header, claim, &cancel)?;
        Ok(Box::new(Handle::new(reading, Some(owned))) as Box<dyn SessionHandle>)
    })
    .await?
}

/// Owns a session that is not stored yet.
pub(crate) fn reserve<C: Core>(
    core: &Arc<C>,
    header: SessionHeader,
    claim: Claim<C::Log>,
    cancel: &Cancel,
) -> Result<Session<C>, CreateError> {
    if core.is_stored(&header.id)? {
        return Err(AlreadyExists { id: header.id }.into());
    }
    check(cancel, "create")?;
    let owner = Arc::clone(claim.owner());
    owner.set_standing(core.registry().pending(header.clone()));
    let log = core.new_log(&header);
    let writer = Writer::new(header.id.clone(), Arc::clone(&owner), log, Seq(0));
    let reader = core.reader(&header);
    let reading = Reading::new(header, reader, Some(owner), 0);
    Ok((reading, Owned::new(writer, claim)))
}

/// [`SessionStore::open`](crate::SessionStore::open).
pub(crate) async fn open<C: Core>(
    core: &Arc<C>,
    id: &SessionId,
    access: Access,
    cancel: &Cancel,
) -> Result<Box<dyn SessionHandle>, OpenError> {
    check(cancel, "open")?;
    let (core, id, cancel) = (Arc::clone(core), id.clone(), cancel.clone());
    match access {
        Access::Read => {
            on_pool("open a session", move || open_to_read(&core, &id, &cancel)).await?
        }
        Access::Write => {
            let claim = core.registry().claim(&id);
            let claim = claim.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
            on_pool("open a session", move || {
                let (reading, owned) = own(&core, &id, claim, &cancel)?;
                Ok(Box::new(Handle::new(reading, Some(owned))) as Box<dyn SessionHandle>)
            })
            .await?
        }
    }
}

fn open_to_read<C: Core>(
    core: &Arc<C>,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<Box<dyn SessionHandle>, OpenError> {
    let owner = core.registry().owner(id);
    if let Some(owner) = owner
        && let Standing::Pending { header, .. } = owner.standing()
    {
        let reader = core.reader(&header);
        let reading = Reading::new((*header).clone(), reader, Some(owner), 0);
        return Ok(Box::new(Handle::new(reading, None)));
    }
    let found = core.find(id, cancel)?.ok_or_else(|| NotFound { id: id.clone() })?;
    let (header, reader) = found;
    let reading = Reading::<_, C::Log>::new(header, reader, None, 0);
    Ok(Box::new(Handle::new(reading, None)))
}

/// Owns a stored session.
pub(crate) fn own<C: Core>(
    core: &Arc<C>,
    id: &SessionId,
    claim: Claim<C::Log>,
    cancel: &Cancel,
) -> Result<Session<C>, OpenError> {
    let TakenUp { header, reader, log, next } = core.take_up(id, cancel).map_err(as_open)?;
    check(cancel, "open")?;
    let writer = Writer::new(id.clone(), Arc::clone(claim.owner()), log, next);
    let reading = Reading::new(header, reader, None, next.0);
    Ok((reading, Owned::new(writer, claim)))
}

/// To the caller, reading the log is part of opening it.
fn as_open(error: OpenError) -> OpenError {
    match error {
        OpenError::Cancelled(_) => Cancelled { operation: "open" }.into(),
        error => error,
    }
}

/// [`SessionStore::stat`](crate::SessionStore::stat).
pub(crate) async fn stat<C: Core>(
    core: &Arc<C>,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<Option<SessionStat>, StatError> {
    check(cancel, "stat")?;
    let (core, id) = (Arc::clone(core), id.clone());
    on_pool("look at a session", move || {
        if let Some(Standing::Pending { header, revision }) =
            core.registry().owner(&id).map(|owner| owner.standing())
        {
            return Ok(Some(Pending { header, revision }.stat()));
        }
        Ok(core.stat(&id)?)
    })
    .await?
}

/// [`SessionStore::list`](crate::SessionStore::list).
pub(crate) async fn list<C: Core>(
    core: &Arc<C>,
    query: &ListQuery,
    cancel: &Cancel,
) -> Result<SessionList, ListError> {
    check(cancel, "list")?;
    let (core, query, cancel) = (Arc::clone(core), query.clone(), cancel.clone());
    on_pool("list sessions", move || core.list(&query, &cancel)).await?
}

/// Fails once an operation was called off.
pub(crate) fn check(cancel: &Cancel, operation: &'static str) -> Result<(), Cancelled> {
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
