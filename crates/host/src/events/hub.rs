//! The line of events: numbered, kept for a while, and watched.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::watch, time::Instant};
use turnkeep_log::Text;
use turnkeep_turns::events::{LiveParts, LiveText, Passed, ReasoningFilter, reduce};

use super::{
    client::{Client, Start, Subscription, Watch},
    directories::Directories,
    event::{Directory, Encoded, Event, Held, WithoutReasoning},
    frames::ResetReason,
    id::{Epoch, EventId},
    link::Link,
    payload::{Concerns, Facts, Origin, Published},
    sessions::LastEvents,
    stats::{HubStats, Tally},
};

/// Of how many parts is remembered whether they are reasoning. One filter serves all clients, so
/// this is for every session that is at work at a time.
const MAX_FILTERED_PARTS: usize = 32 << 10;

/// How much text of parts that are still being written is kept.
const MAX_LIVE_BYTES: usize = 32 << 20;

/// With so many clients, waking them costs a millisecond of pause: see [`pause`].
const CLIENTS_PER_MILLISECOND: usize = 50;

/// However many there are, nobody waits longer than this.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The line of events, and everyone who watches it.
///
/// Everything that happens at one point of the line happens under one lock: an event gets its
/// number, the text of parts that are being written grows by it, and clients are found too far
/// behind. What is costly waits for those who need it, after the lock is gone.
pub struct Hub {
    me: Weak<Self>,
    replay_bytes: usize,
    pub(super) queue_bytes: u64,
    directories: Directories,
    /// What all events that are kept hold on to.
    held: Arc<AtomicUsize>,
    subscribers: watch::Sender<usize>,
    pub(super) link: watch::Sender<Link>,
    pub(super) tally: Tally,
    state: Mutex<State>,
}

/// What a page has to know of the line before it is read.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The last event that may be in the page already: a client that has applied the page, and then
    /// every event after this one, is exact.
    pub id: EventId,
    /// The text, as of that event, of the session's parts that are still being written.
    pub live: LiveText,
    /// The number of the session's own last event: while it stays the same, nothing happened there.
    pub session_events: u64,
}

impl Moment {
    /// A name for the state that the session is in: whatever was begun to be read in a state of this
    /// name is as good as what is begun now.
    pub(crate) fn state(&self) -> EventId {
        EventId { number: self.session_events, ..self.id }
    }
}

pub(super) struct State {
    epoch: Epoch,
    /// The number of the last event in this epoch.
    number: u64,
    next_place: u64,
    /// The newest events, without a gap between their places.
    ring: VecDeque<Arc<Event>>,
    /// What all events together cost since the process began; see [`Event::cost`].
    total: u64,
    filter: ReasoningFilter,
    live: LiveParts,
    sessions: LastEvents,
    upstream_is_followed: bool,
    store_is_followed: bool,
    store_was_followed: bool,
    clients: Arc<Vec<Arc<Client>>>,
    is_closed: bool,
    woken: Option<Instant>,
    /// Whether someone is going to wake the clients.
    will_wake: bool,
    /// What the events cost that nobody has been woken for.
    unannounced: u64,
}

impl Hub {
    /// An empty line. `replay_bytes` are kept for clients that come back, and `queue_bytes` may wait
    /// for one client.
    pub(crate) fn new(replay_bytes: usize, queue_bytes: usize) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            replay_bytes,
            queue_bytes: queue_bytes as u64,
            directories: Directories::default(),
            held: Arc::default(),
            subscribers: watch::Sender::new(0),
            link: watch::Sender::default(),
            tally: Tally::default(),
            state: Mutex::new(State {
                epoch: Epoch::new(),
                number: 0,
                next_place: 0,
                ring: VecDeque::new(),
                total: 0,
                filter: ReasoningFilter::new(MAX_FILTERED_PARTS),
                live: LiveParts::new(MAX_LIVE_BYTES),
                sessions: LastEvents::default(),
                upstream_is_followed: false,
                store_is_followed: false,
                store_was_followed: false,
                clients: Arc::default(),
                is_closed: false,
                woken: None,
                will_wake: false,
                unannounced: 0,
            }),
        })
    }

    /// Puts an event at the end of the line, and returns its id. `None` when it is no JSON object
    /// with a type, or speaks of a connection, and so is dropped.
    ///
    /// It never waits for a client.
    pub fn publish(&self, event: Published) -> Option<EventId> {
        let facts = Facts::of(&event.payload).filter(|facts| !facts.is_of_connection)?;
        let payload = on_one_line(event.payload);
        let payload = reduce(&payload).unwrap_or(payload);
        let name = event.directory.filter(|name| !name.is_empty());
        let real = name.as_deref().map(|name| self.directories.real(name));
        let directory = Directory { name, real };
        let mut state = self.state();
        let without_reasoning = match state.filter.pass(&payload) {
            Passed::Kept => WithoutReasoning::Same,
            Passed::Changed(text) => WithoutReasoning::Changed(text),
            Passed::Dropped => WithoutReasoning::Nothing,
        };
        state.live.apply(&payload);
        let is_sync = facts.is_sync;
        let id = state.push(&self.held, |place, id, encoded| Event {
            place,
            id,
            reset: None,
            is_sync,
            directory,
            project: event.project,
            encoded: encoded(&payload, &without_reasoning),
            payload,
            without_reasoning,
        });
        match facts.concerns {
            Concerns::NoSession => {}
            Concerns::One(session) => state.sessions.note(session, id.number),
            Concerns::Unknown => state.sessions.note_unknown(id.number),
        }
        self.tally.events.add(1);
        self.announce(state);
        Some(id)
    }

    /// The id of the newest event; `None` while events of this origin are not followed, so that
    /// there may be newer ones.
    #[must_use]
    pub fn position(&self, origin: Origin) -> Option<EventId> {
        let state = self.state();
        state.follows(origin).then(|| state.position())
    }

    /// The text of the session's parts that are still being written.
    #[must_use]
    pub fn live(&self, session: &str) -> LiveText {
        self.state().live.of_session(session)
    }

    /// What a page of this session has to know before it is read; `None` while events of this
    /// origin are not followed.
    #[must_use]
    pub fn moment(&self, origin: Origin, session: &str) -> Option<Moment> {
        let state = self.state();
        state.follows(origin).then(|| Moment {
            id: state.position(),
            live: state.live.of_session(session),
            session_events: state.sessions.of(session),
        })
    }

    /// How many clients there are, and how that changes.
    #[must_use]
    pub fn subscribers(&self) -> watch::Receiver<usize> {
        self.subscribers.subscribe()
    }

    /// What the hub has done so far, and what it holds.
    #[must_use]
    pub fn stats(&self) -> HubStats {
        let state = self.state();
        let queued = state.clients.iter().map(|client| state.total - client.taken()).sum();
        self.tally.stats(&state.clients, self.held.load(Ordering::Relaxed), queued)
    }

    /// Says whether whoever publishes the events of stored sessions sees all of them. Where it did
    /// before and stopped in between, a new epoch begins: something may have been missed.
    pub fn follow_store(&self, is_followed: bool) {
        let mut state = self.state();
        if is_followed && !state.store_is_followed && state.store_was_followed {
            self.begin_epoch(&mut state);
        }
        state.store_was_followed |= is_followed;
        state.store_is_followed = is_followed;
        self.announce(state);
    }

    /// The upstream's stream begins, or begins again: every client is told that it may have missed
    /// something.
    pub(crate) fn connect_upstream(&self) {
        let mut state = self.state();
        self.begin_epoch(&mut state);
        state.upstream_is_followed = true;
        self.announce(state);
    }

    /// The upstream's stream is lost.
    pub(crate) fn lose_upstream(&self) {
        self.state().upstream_is_followed = false;
    }

    /// Lets clients in again after [`Hub::close`].
    pub(crate) fn open(&self) {
        self.state().is_closed = false;
    }

    /// Ends the stream of every client once it has got what is there.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let clients = Arc::clone(&state.clients);
        drop(state);
        clients.iter().for_each(|client| client.wake());
    }

    /// Whether the upstream's stream is read now.
    pub(crate) fn is_connected(&self) -> bool {
        self.link.borrow().is_connected
    }

    /// Where a directory really is. Asks the disk.
    pub(crate) fn real_directory(&self, path: &str) -> Arc<str> {
        self.directories.real(path)
    }

    /// Takes a place in the line: right behind the event that the client names, or at the end.
    pub(crate) fn subscribe(&self, watch: Watch) -> Option<(Subscription, Start)> {
        let hub = self.me.upgrade()?;
        let mut state = self.state();
        let (reset, missed) = match watch.last.as_deref() {
            None => (None, 0),
            Some(last) => match state.missed_since(last) {
                Ok(missed) => (None, missed),
                Err(reason) => (Some(reason), 0),
            },
        };
        let barrier = state.next_place;
        let place = barrier - missed as u64;
        let backlog = state.from(place).map(|event| event.cost(true)).sum();
        let client = Arc::new(Client::new(watch, place, state.total - backlog, backlog));
        Arc::make_mut(&mut state.clients).push(Arc::clone(&client));
        self.tally.resets.add(u64::from(reset.is_some()));
        let start = Start { reset, position: state.position(), barrier };
        self.count_subscribers(&state);
        Some((Subscription::new(hub, client), start))
    }

    /// Gives a place up.
    pub(super) fn unsubscribe(&self, client: &Arc<Client>) {
        let mut state = self.state();
        if state.clients.iter().any(|it| Arc::ptr_eq(it, client)) {
            Arc::make_mut(&mut state.clients).retain(|it| !Arc::ptr_eq(it, client));
            self.count_subscribers(&state);
        }
    }

    /// Nothing can panic while this is locked; a poisoned lock would be as good as any.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_subscribers(&self, state: &State) {
        self.subscribers.send_replace(state.clients.len());
    }

    /// Begins to count anew, with the event that tells those who watch.
    fn begin_epoch(&self, state: &mut State) {
        state.epoch = Epoch::new();
        state.number = 0;
        state.live.clear();
        state.sessions = LastEvents::default();
        if state.clients.is_empty() {
            return;
        }
        let reason = ResetReason::UpstreamReconnected;
        let payload = Text::from(reason.payload());
        self.tally.resets.add(state.clients.len() as u64);
        state.push(&self.held, |place, id, encoded| Event {
            place,
            id,
            reset: Some(reason),
            is_sync: false,
            directory: Directory::default(),
            project: None,
            encoded: encoded(&payload, &WithoutReasoning::Same),
            payload,
            without_reasoning: WithoutReasoning::Same,
        });
    }

    /// Drops who is too far behind and what nobody needs, and wakes the rest.
    fn announce(&self, mut state: MutexGuard<'_, State>) {
        self.drop_the_slow(&mut state);
        state.forget(self.replay_bytes, &self.held);
        let now = Instant::now();
        let due = state.woken.map(|woken| woken + pause(state.clients.len()));
        // A burst must not be mistaken for a client that is slow to take it.
        if let Some(due) = due.filter(|due| *due > now && state.unannounced < self.queue_bytes / 4)
        {
            if state.will_wake {
                return;
            }
            if let (Some(hub), Ok(runtime)) = (self.me.upgrade(), Handle::try_current()) {
                state.will_wake = true;
                drop(state);
                runtime.spawn(async move {
                    tokio::time::sleep_until(due).await;
                    let mut state = hub.state();
                    state.will_wake = false;
                    wake(state, due);
                });
                return;
            }
        }
        wake(state, now);
    }

    fn drop_the_slow(&self, state: &mut State) {
        let slow = |client: &&Arc<Client>| {
            let (bytes, events) = state.waiting_for(client, client.limit(self.queue_bytes));
            // What waits alone may be as large as it is.
            bytes > client.limit(self.queue_bytes) && events > 1
        };
        let slow: Vec<_> = state.clients.iter().filter(slow).cloned().collect();
        if slow.is_empty() {
            return;
        }
        Arc::make_mut(&mut state.clients).retain(|it| !slow.iter().any(|one| Arc::ptr_eq(it, one)));
        self.count_subscribers(state);
        self.tally.too_slow.add(slow.len() as u64);
        for client in slow {
            client.drop_as_slow();
        }
    }
}

/// Wakes everyone, when nobody is kept from the line by it any more.
fn wake(mut state: MutexGuard<'_, State>, now: Instant) {
    state.woken = Some(now);
    state.unannounced = 0;
    let clients = Arc::clone(&state.clients);
    drop(state);
    clients.iter().for_each(|client| client.wake());
}

/// How long to wait between two wakings of this many clients. A write to each of a thousand
/// connections takes a good part of a core's time, however little is written, so that events are
/// better sent a few at a time; with few clients nobody has to wait.
fn pause(clients: usize) -> Duration {
    Duration::from_millis((clients / CLIENTS_PER_MILLISECOND) as u64).min(LONGEST_PAUSE)
}

/// The event with no line break in it, which only a text that is spread over several lines has:
/// within strings they are escaped.
fn on_one_line(payload: Text) -> Text {
    if payload.contains(['\n', '\r']) {
        Text::from(payload.replace(['\n', '\r'], " "))
    } else {
        payload
    }
}

impl State {
    pub(super) fn position(&self) -> EventId {
        EventId { epoch: self.epoch, number: self.number }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn next_place(&self) -> u64 {
        self.next_place
    }

    fn follows(&self, origin: Origin) -> bool {
        match origin {
            Origin::Upstream => self.upstream_is_followed,
            Origin::Store => self.store_is_followed,
        }
    }

    fn push(
        &mut self,
        held: &Arc<AtomicUsize>,
        make: impl FnOnce(u64, EventId, &dyn Fn(&Text, &WithoutReasoning) -> Encoded) -> Event,
    ) -> EventId {
        self.number += 1;
        let id = self.position();
        let encoded = |payload: &Text, without: &WithoutReasoning| {
            Encoded::new(payload, without, Held::new(Arc::clone(held)))
        };
        let event = make(self.next_place, id, &encoded);
        self.next_place += 1;
        let cost = event.cost(true);
        self.total += cost;
        self.unannounced += cost;
        self.ring.push_back(Arc::new(event));
        id
    }

    /// The events from this place on, as far as they are kept.
    pub(super) fn from(&self, place: u64) -> impl Iterator<Item = &Arc<Event>> {
        let first = self.next_place - self.ring.len() as u64;
        let skipped = usize::try_from(place.saturating_sub(first)).unwrap_or(usize::MAX);
        self.ring.iter().skip(skipped)
    }

    /// How many events came after the one of this id, when all of them are kept.
    fn missed_since(&self, last: &str) -> Result<usize, ResetReason> {
        let last = EventId::parse(last).ok_or(ResetReason::UnknownEpoch)?;
        if last.epoch != self.epoch {
            return Err(ResetReason::UnknownEpoch);
        }
        let missed = self.number.checked_sub(last.number).ok_or(ResetReason::UnknownEpoch)?;
        let missed = usize::try_from(missed).unwrap_or(usize::MAX);
        if missed > self.ring.len() {
            return Err(ResetReason::TooOld);
        }
        Ok(missed)
    }

    /// What waits for a client: bytes, and events. Nobody looks closer when everything since the
    /// client's last look is no more than `enough`.
    pub(super) fn waiting_for(&self, client: &Client, enough: u64) -> (u64, usize) {
        let at_most = self.total - client.taken();
        if at_most <= enough {
            return (
                at_most,
                usize::try_from(self.next_place - client.place()).unwrap_or(usize::MAX),
            );
        }
        let waiting = self.from(client.place()).filter(|event| client.gets(event));
        let costs = waiting.map(|event| event.cost(client.form.reasoning));
        costs.fold((0, 0), |(bytes, events), cost| (bytes + cost, events + 1))
    }

    /// Forgets the oldest events until what is kept fits, but none that a client still waits for.
    fn forget(&mut self, replay_bytes: usize, held: &AtomicUsize) {
        let needed = self.clients.iter().map(|client| client.place()).min().unwrap_or(u64::MAX);
        while held.load(Ordering::Relaxed) > replay_bytes
            && self.ring.front().is_some_and(|oldest| oldest.place < needed)
        {
            self.ring.pop_front();
        }
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
