//! A session held open.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use tokio::sync::watch;
use turnkeep_log::{Event, Seq, SessionHeader, SessionId};

use super::{
    failure::LogFailure,
    mutations::{Mutations, Owned, Unreported},
    on_pool,
    queue::NotRun,
    registry::{Owner, Standing},
    writer::WriteLog,
};
use crate::{
    error::{
        AppendError, Cancelled, CloseError, FlushError, HandleClosed, LogShrank, NotFound,
        Poisoned, ReadError, ReadOnly,
    },
    seam::{Access, Cancel, EventRange, SessionHandle},
};

/// How a backend reads one session's log.
pub(crate) trait ReadLog: fmt::Debug + Send + Sync + 'static {
    /// The events of a range; `None` when there is no log.
    fn read(
        &self,
        id: &SessionId,
        range: EventRange,
        cancel: &Cancel,
    ) -> Result<Option<Slice>, LogFailure>;
}

/// Events of a log.
#[derive(Debug)]
pub(crate) struct Slice {
    /// Those of the range.
    pub(crate) events: Vec<Event>,
    /// How many the whole log holds, unless the reading stopped before its end.
    pub(crate) end: Option<u64>,
}

/// A handle of any backend.
///
/// Reads go to the storage on the blocking pool, each on its own; mutations go through one queue.
/// Dropping the handle gives the session back as soon as what was asked for is done.
#[derive(Debug)]
pub(crate) struct Handle<R: ReadLog, L: WriteLog> {
    reading: Arc<Reading<R, L>>,
    writing: Option<Writing<L>>,
    closed: AtomicBool,
}

/// What reads of a handle need and leave behind.
#[derive(Debug)]
pub(crate) struct Reading<R: ReadLog, L: WriteLog> {
    header: SessionHeader,
    log: R,
    /// The session's writer, when it was pending as this handle was opened.
    pending: Option<Arc<Owner<L>>>,
    /// How many events this handle has shown or stored: the log never gets shorter than that.
    observed: AtomicU64,
}

#[derive(Debug)]
struct Writing<L: WriteLog> {
    mutations: Arc<Mutations<L>>,
    unreported: Unreported,
    closed: watch::Sender<Option<Result<(), CloseError>>>,
}

impl<R: ReadLog, L: WriteLog> Handle<R, L> {
    pub(crate) fn new(reading: Reading<R, L>, session: Option<Owned<L>>) -> Self {
        let writing = session.map(|session| {
            let owner = Arc::clone(session.claim().owner());
            let mutations = Mutations::new(session);
            owner.attach(&mutations);
            let unreported = Unreported::default();
            Writing { mutations, unreported, closed: watch::Sender::new(None) }
        });
        Self { reading: Arc::new(reading), writing, closed: AtomicBool::new(false) }
    }

    fn session(&self) -> SessionId {
        self.reading.header.id.clone()
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
            || self.writing.as_ref().is_some_and(|writing| writing.mutations.is_closed())
    }

    /// The queue, for an operation that changes something.
    fn writing<E>(&self, operation: &'static str, cancel: &Cancel) -> Result<&Writing<L>, E>
    where
        E: From<Cancelled> + From<HandleClosed> + From<ReadOnly>,
    {
        if cancel.is_cancelled() {
            return Err(Cancelled { operation }.into());
        }
        if self.is_closed() {
            return Err(HandleClosed { id: self.session(), operation }.into());
        }
        match &self.writing {
            Some(writing) => Ok(writing),
            None => Err(ReadOnly { id: self.session(), operation }.into()),
        }
    }
}

/// What it means to an operation that its job did not run.
pub(crate) fn not_run<E>(why: NotRun, id: SessionId, operation: &'static str) -> E
where
    E: From<Cancelled> + From<HandleClosed> + From<Poisoned>,
{
    match why {
        NotRun::Closed => HandleClosed { id, operation }.into(),
        NotRun::Cancelled => Cancelled { operation }.into(),
        NotRun::Lost => {
            Poisoned { id, cause: "the runtime ended before it was done".to_owned() }.into()
        }
    }
}

impl<R: ReadLog, L: WriteLog> Reading<R, L> {
    /// For a handle that has seen the first `observed` events.
    pub(crate) fn new(
        header: SessionHeader,
        log: R,
        pending: Option<Arc<Owner<L>>>,
        observed: u64,
    ) -> Self {
        Self { header, log, pending, observed: AtomicU64::new(observed) }
    }

    pub(crate) fn observe(&self, events: u64) {
        self.observed.fetch_max(events, Ordering::AcqRel);
    }

    pub(crate) fn read(&self, range: EventRange, cancel: &Cancel) -> Result<Vec<Event>, ReadError> {
        let id = &self.header.id;
        let not_found = || NotFound { id: id.clone() };
        match self.pending.as_ref().map(|owner| owner.standing()) {
            Some(Standing::Erased) => return Err(not_found().into()),
            Some(Standing::Pending { .. }) => return Ok(Vec::new()),
            _ => {}
        }
        // Before the log is looked at, so that what it has to hold by then is known.
        let observed = self.observed.load(Ordering::Acquire);
        let Slice { events, end } = self.log.read(id, range, cancel)?.ok_or_else(not_found)?;
        if let Some(found) = end {
            if found < observed {
                return Err(LogShrank { id: id.clone(), found, observed }.into());
            }
            self.observe(found);
        }
        Ok(events)
    }
}

#[async_trait]
impl<R: ReadLog, L: WriteLog> SessionHandle for Handle<R, L> {
    fn id(&self) -> &SessionId {
        &self.reading.header.id
    }

    fn header(&self) -> &SessionHeader {
        &self.reading.header
    }

    fn access(&self) -> Access {
        if self.writing.is_some() { Access::Write } else { Access::Read }
    }

    async fn read(&self, range: EventRange, cancel: &Cancel) -> Result<Vec<Event>, ReadError> {
        if cancel.is_cancelled() {
            return Err(Cancelled { operation: "read" }.into());
        }
        if self.is_closed() {
            return Err(HandleClosed { id: self.session(), operation: "read" }.into());
        }
        let (reading, cancel) = (Arc::clone(&self.reading), cancel.clone());
        on_pool("read a session", move || reading.read(range, &cancel)).await?
    }

    async fn append(&self, events: Vec<Event>, cancel: &Cancel) -> Result<Seq, AppendError> {
        let writing = self.writing::<AppendError>("append", cancel)?;
        let reading = Arc::clone(&self.reading);
        let begin = move |owned: &mut Owned<L>| owned.begin_append(&events);
        let finish = move |owned: &mut Owned<L>, begun| {
            owned.finish_append(begun).inspect(|next| reading.observe(next.0))
        };
        let missed = writing.unreported.append(self.id());
        let outcome = match writing.mutations.submit_shared(begin, finish, missed) {
            Ok(submitted) => submitted.outcome(cancel).await,
            Err(why) => Err(why),
        };
        outcome.unwrap_or_else(|why| Err(not_run(why, self.session(), "append")))
    }

    async fn flush(&self, cancel: &Cancel) -> Result<(), FlushError> {
        let writing = self.writing::<FlushError>("flush", cancel)?;
        let missed = writing.unreported.flush(self.id());
        let outcome = match writing.mutations.submit(Owned::flush, missed) {
            Ok(submitted) => submitted.outcome(cancel).await,
            Err(why) => Err(why),
        };
        outcome.unwrap_or_else(|why| Err(not_run(why, self.session(), "flush")))
    }

    // Not an `async fn`: the handle is closed by the call, whether or not anyone polls.
    fn close<'handle, 'future>(
        &'handle self,
    ) -> Pin<Box<dyn Future<Output = Result<(), CloseError>> + Send + 'future>>
    where
        'handle: 'future,
        Self: 'future,
    {
        let was_closed = self.closed.swap(true, Ordering::AcqRel);
        let Some(writing) = &self.writing else {
            return Box::pin(async { Ok(()) });
        };
        if !was_closed {
            let announcement = Announcement { to: writing.closed.clone(), id: self.session() };
            let unreported = writing.unreported.clone();
            let missed = writing.unreported.flush(self.id());
            writing.mutations.close(move |owned| {
                if let Some(mut owned) = owned {
                    missed(owned.close());
                }
                announcement.announce(unreported.outcome());
            });
        }
        let mut closed = writing.closed.subscribe();
        Box::pin(async move {
            let outcome = closed.wait_for(Option::is_some).await;
            outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or(Ok(()))
        })
    }
}

/// The outcome of closing, which is announced in any case.
struct Announcement {
    to: watch::Sender<Option<Result<(), CloseError>>>,
    id: SessionId,
}

impl Announcement {
    fn announce(&self, outcome: Result<(), CloseError>) {
        self.to.send_if_modified(|announced| {
            let is_first = announced.is_none();
            announced.get_or_insert(outcome);
            is_first
        });
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let message = "the runtime ended before it was done".to_owned();
        self.announce(Err(CloseError { id: self.id.clone(), kind: "poisoned", message }));
    }
}
