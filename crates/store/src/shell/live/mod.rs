//! Events that reach a write handle by the id of its session, and wait to be stored together.
//!
//! What waits is stored by jobs on the handle's queue, so that it keeps its place among the other
//! mutations. One job stores one batch: all that waits when the job runs. Whatever comes meanwhile
//! is the batch of the next job, which goes to the end of the queue: a flush that was asked for in
//! between does not wait for a producer that never pauses.
//!
//! An event is taken only where it continues the log, what waits included. So what was taken always
//! can be stored once the storage does its part, and no event can get in the way of others. While
//! an append is under way nobody knows where the log will end; events wait outside until it is done.

mod options;
mod state;
#[cfg(test)]
mod tests;
mod window;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;
use turnkeep_log::{Event, Seq, SessionId};

pub use self::options::LiveOptions;
use self::state::{Admission, State, line_len};
use super::{
    mutations::{Mutations, Owned, WriteLog},
    queue::{NotRun, Submitted},
    registry::locked,
};
use crate::{
    error::{AppendError, BufferFull, FlushError, HandleClosed, Poisoned, PublishError},
    seam::{Cancel, EventRange},
};

/// The events published to one write handle.
pub(crate) struct Live<L: WriteLog> {
    id: SessionId,
    options: LiveOptions,
    /// How many bytes a batch may have, as lines.
    max_batch_bytes: u64,
    /// How many events the handle has shown or stored.
    observed: Arc<AtomicU64>,
    mutations: OnceLock<Weak<Mutations<L>>>,
    /// Held by the publisher whose turn it is, so that they are served in the order they came in.
    turn: tokio::sync::Mutex<()>,
    /// Told when the publisher whose turn it is should look again.
    changed: Notify,
    state: Mutex<State>,
}

impl<L: WriteLog> Live<L> {
    /// For a handle that owns a session, has seen all of it and notes so in `observed`.
    pub(super) fn new(session: &Owned<L>, observed: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            id: session.claim().id().clone(),
            options: session.claim().live(),
            max_batch_bytes: session.max_batch_bytes(),
            observed,
            mutations: OnceLock::new(),
            turn: tokio::sync::Mutex::default(),
            changed: Notify::new(),
            state: Mutex::new(State::new(session.next())),
        })
    }

    /// Lets it reach the handle's queue, which holds it in turn.
    pub(super) fn attach(&self, mutations: &Arc<Mutations<L>>) {
        self.mutations.get_or_init(|| Arc::downgrade(mutations));
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Takes no more events. Whether it took some until now.
    pub(super) fn close(&self) -> bool {
        let first = self.state().close();
        self.changed.notify_one();
        first
    }

    /// Whether it takes no more events.
    pub(super) fn is_closed(&self) -> bool {
        self.state().is_closed()
    }

    /// The events that were taken and are not stored.
    pub(super) fn unstored(&self) -> Option<EventRange> {
        self.state().unstored()
    }

    /// Takes an event, to be stored soon. Waits while there is no room, and while an append is
    /// under way.
    pub(super) async fn publish(self: &Arc<Self>, event: Event) -> Result<(), PublishError> {
        let _turn = self.turn.lock().await;
        loop {
            let admission =
                self.state().admit(&self.id, &self.options, self.max_batch_bytes, &event)?;
            match admission {
                Admission::Taken => return Ok(()),
                Admission::TakenFirst(window) => {
                    self.open_window(window);
                    return Ok(());
                }
                Admission::TakenLast => {
                    self.store_soon();
                    return Ok(());
                }
                Admission::Crowded => {
                    self.store_soon();
                    self.changed.notified().await;
                }
                Admission::Wait => self.changed.notified().await,
                // Nothing else is going to try again.
                Admission::Stuck => self.store_now().await?,
            }
        }
    }

    /// Notes that an append is under way, until what is returned is dropped.
    pub(super) fn appending(self: &Arc<Self>) -> Appending<L> {
        self.state().begin_append();
        Appending(Arc::clone(self))
    }

    /// Stores what waits, then a batch of the caller's.
    pub(super) fn append(
        self: &Arc<Self>,
        owned: &mut Owned<L>,
        events: &[Event],
    ) -> Result<Seq, AppendError> {
        self.drain(owned)?;
        let outcome = owned.append(events);
        match &outcome {
            Ok(next) => {
                self.observe(*next);
                self.state().continue_at(*next);
            }
            Err(error) => self.state().note(error),
        }
        outcome
    }

    /// Stores what waits, then makes all of the log durable.
    pub(super) fn flush(self: &Arc<Self>, owned: &mut Owned<L>) -> Result<(), FlushError> {
        self.drain(owned)?;
        let outcome = owned.flush();
        if let Err(error) = &outcome {
            self.state().note_flush(error);
        }
        outcome
    }

    /// Stores what waits as one batch. What cannot be stored waits on, in front of the rest.
    pub(super) fn drain(self: &Arc<Self>, owned: &mut Owned<L>) -> Result<(), AppendError> {
        let outcome = Batch::take(self).store(owned);
        // What came meanwhile.
        self.store_soon();
        outcome
    }

    fn observe(&self, next: Seq) {
        self.observed.fetch_max(next.0, Ordering::AcqRel);
    }

    /// Has a job store what waits, if none is going to and storing has not failed. A failure is
    /// logged, and left to whoever asks next.
    fn store_soon(self: &Arc<Self>) {
        if !self.state().schedule() {
            return;
        }
        let scheduled = Scheduled(Some(Arc::clone(self)));
        let background = move |owned: &mut Owned<L>| {
            let Some(live) = scheduled.begin() else { return };
            if let Err(error) = live.drain(owned) {
                live.warn(&error);
            }
        };
        if self.submit(background).is_err() && !self.is_closed() {
            self.state().break_off();
        }
    }

    /// Has a job store what waits, and waits for it.
    async fn store_now(self: &Arc<Self>) -> Result<(), PublishError> {
        let live = Arc::clone(self);
        let outcome = match self.submit(move |owned| live.drain(owned)) {
            Ok(submitted) => submitted.outcome(&Cancel::never()).await,
            Err(why) => Err(why),
        };
        let id = self.id.clone();
        match outcome {
            Ok(stored) => stored.map_err(|source| BufferFull { id, source }.into()),
            Err(NotRun::Lost) => {
                let cause = "the runtime ended before it was done".to_owned();
                Err(Poisoned { id, cause }.into())
            }
            Err(_) => Err(HandleClosed { id, operation: "publish" }.into()),
        }
    }

    fn submit<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Owned<L>) -> T + Send + 'static,
    ) -> Result<Submitted<T>, NotRun> {
        let mutations = self.mutations.get().and_then(Weak::upgrade).ok_or(NotRun::Closed)?;
        mutations.submit(job, |_| {})
    }

    /// Ids and numbers only: what events say is nobody else's.
    fn warn(&self, error: &AppendError) {
        let EventRange { offset, length } = self.unstored().unwrap_or(EventRange::ALL);
        tracing::warn!(
            session = %self.id,
            kind = error.kind(),
            first = offset,
            events = length,
            "published events could not be stored; they are kept, and stored by the next flush",
        );
    }
}

/// The batch that is being stored.
struct Batch<'live, L: WriteLog> {
    live: &'live Live<L>,
    events: Vec<Event>,
    /// How many of them, from the first on.
    stored: usize,
    done: bool,
}

impl<'live, L: WriteLog> Batch<'live, L> {
    /// Takes all that waits.
    fn take(live: &'live Live<L>) -> Self {
        let events = live.state().take();
        // There is room now.
        live.changed.notify_one();
        Self { live, events, stored: 0, done: false }
    }

    fn store(mut self, owned: &mut Owned<L>) -> Result<(), AppendError> {
        let outcome = self.try_store(owned);
        self.done = true;
        match &outcome {
            Ok(()) => self.live.state().succeeded(),
            Err(error) => self.live.state().failed(error),
        }
        outcome
    }

    /// In one append, unless that would be more than readers take at once.
    fn try_store(&mut self, owned: &mut Owned<L>) -> Result<(), AppendError> {
        loop {
            let rest = self.events.get(self.stored..).unwrap_or_default();
            let part = rest.get(..fitting(rest, self.live.max_batch_bytes)).unwrap_or_default();
            if part.is_empty() {
                return Ok(());
            }
            let next = owned.append(part)?;
            self.stored += part.len();
            self.live.observe(next);
        }
    }
}

impl<L: WriteLog> Drop for Batch<'_, L> {
    fn drop(&mut self) {
        let mut state = self.live.state();
        state.put_back(self.events.drain(..).skip(self.stored));
        if !self.done {
            state.break_off();
        }
        drop(state);
        self.live.changed.notify_one();
    }
}

/// How many of these events, at least one of any, are no longer than this together.
fn fitting(events: &[Event], max_bytes: u64) -> usize {
    let mut bytes = 0;
    let fits = |event: &&Event| {
        bytes += line_len(event) as u64;
        bytes <= max_bytes
    };
    events.iter().take_while(fits).count().max(events.len().min(1))
}

/// An append that is under way.
pub(super) struct Appending<L: WriteLog>(Arc<Live<L>>);

impl<L: WriteLog> Drop for Appending<L> {
    fn drop(&mut self) {
        self.0.state().end_append();
        self.0.changed.notify_one();
    }
}

/// A job that is going to store what waits, until it begins or is gone.
struct Scheduled<L: WriteLog>(Option<Arc<Live<L>>>);

impl<L: WriteLog> Scheduled<L> {
    fn begin(mut self) -> Option<Arc<Live<L>>> {
        let live = self.0.take()?;
        live.state().unschedule();
        Some(live)
    }
}

impl<L: WriteLog> Drop for Scheduled<L> {
    fn drop(&mut self) {
        if let Some(live) = self.0.take() {
            live.state().unschedule();
            live.changed.notify_one();
        }
    }
}

impl<L: WriteLog> fmt::Debug for Live<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("id", &self.id)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
