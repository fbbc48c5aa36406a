//! A client: a place in the line of events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use super::{
    event::{Event, Form},
    frames::{Channel, ResetReason},
    hub::Hub,
    id::EventId,
};

/// How many events a client is given at a time, so that it does not hold the line.
const MAX_TAKEN_EVENTS: usize = 64;

/// About how many bytes, for the same reason.
const MAX_TAKEN_BYTES: u64 = 256 << 10;

/// What a client wants to see.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) form: Form,
    /// On the channel of one directory: which one, with symbolic links resolved. `None` for what
    /// concerns everyone and nothing else.
    pub(crate) directory: Option<Arc<str>>,
    /// The id of the last event it has seen.
    pub(crate) last: Option<String>,
}

/// Where a client begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Set when it does not begin where it asked to.
    pub(crate) reset: Option<ResetReason>,
    /// The newest event there was.
    pub(crate) position: EventId,
    /// The place behind that event: what is at or behind it is new.
    pub(super) barrier: u64,
}

/// A client, as the hub sees it.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) form: Form,
    directory: Option<Arc<str>>,
    /// The place of the next event it gets.
    place: AtomicU64,
    /// What all events before that one cost.
    taken: AtomicU64,
    /// What it was behind when it came, until it has caught up: coming back is not being slow.
    behind_at_first: AtomicU64,
    was_slow: AtomicBool,
    /// Tells whoever is busy sending that it was.
    dropped: Notify,
    waker: AtomicWaker,
}

impl Client {
    pub(super) fn new(watch: Watch, place: u64, taken: u64, behind: u64) -> Self {
        Self {
            form: watch.form,
            directory: watch.directory,
            place: AtomicU64::new(place),
            taken: AtomicU64::new(taken),
            behind_at_first: AtomicU64::new(behind),
            was_slow: AtomicBool::new(false),
            dropped: Notify::new(),
            waker: AtomicWaker::new(),
        }
    }

    pub(super) fn place(&self) -> u64 {
        self.place.load(Ordering::Relaxed)
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// How many bytes may wait for it now, where usually `queue_bytes` may.
    pub(super) fn limit(&self, queue_bytes: u64) -> u64 {
        queue_bytes.saturating_add(self.behind_at_first.load(Ordering::Relaxed))
    }

    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    pub(super) fn drop_as_slow(&self) {
        self.was_slow.store(true, Ordering::Release);
        self.dropped.notify_one();
        self.wake();
    }

    /// Whether the event is one for it.
    pub(super) fn gets(&self, event: &Event) -> bool {
        self.form.channel == Channel::Global
            || !event.is_sync
                && event
                    .directory
                    .real
                    .as_ref()
                    .is_none_or(|it| Some(it) == self.directory.as_ref())
    }
}

/// What a client got when it looked.
#[derive(Debug)]
pub(crate) enum Taken {
    /// What happened, in order; never nothing.
    Events(Vec<Arc<Event>>),
    /// It was dropped for being too slow, when this was the newest event.
    Slow(EventId),
    /// The host stops.
    Closed,
}

/// A client's hold on its place, given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    client: Arc<Client>,
}

impl Subscription {
    pub(super) fn new(hub: Arc<Hub>, client: Arc<Client>) -> Self {
        Self { hub, client }
    }

    /// The form that events are sent in.
    pub(crate) fn form(&self) -> &Form {
        &self.client.form
    }

    /// Takes what has happened since the last look.
    pub(crate) fn poll_take(&mut self, context: &mut Context<'_>) -> Poll<Taken> {
        let client = &self.client;
        client.waker.register(context.waker());
        let state = self.hub.state();
        if client.was_slow.load(Ordering::Acquire) {
            return Poll::Ready(Taken::Slow(state.position()));
        }
        let (mut place, mut taken) = (client.place(), client.taken());
        let (mut events, mut bytes) = (Vec::new(), 0);
        for event in state.from(place) {
            if events.len() >= MAX_TAKEN_EVENTS || bytes >= MAX_TAKEN_BYTES {
                break;
            }
            place += 1;
            taken += event.cost(true);
            if client.gets(event) {
                bytes += event.cost(client.form.reasoning);
                events.push(Arc::clone(event));
            }
        }
        client.place.store(place, Ordering::Relaxed);
        client.taken.store(taken, Ordering::Relaxed);
        if place == state.next_place() {
            client.behind_at_first.store(0, Ordering::Relaxed);
        }
        if !events.is_empty() {
            Poll::Ready(Taken::Events(events))
        } else if state.is_closed() {
            Poll::Ready(Taken::Closed)
        } else {
            Poll::Pending
        }
    }

    /// Whether everything before this place has been taken.
    pub(crate) fn has_passed(&self, start: &Start) -> bool {
        self.client.place() >= start.barrier
    }

    /// How many bytes wait, and how many may.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        let limit = self.client.limit(self.hub.queue_bytes);
        let (bytes, _) = self.hub.state().waiting_for(&self.client, limit / 2);
        (bytes, limit)
    }

    /// Returns when the client was dropped for being too slow.
    pub(crate) async fn dropped(&self) {
        self.client.dropped.notified().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.unsubscribe(&self.client);
    }
}
