//! One stored session that is followed: its new events become those that clients watch.

use std::{fmt::Write as _, sync::Arc};

use tokio::time::Instant;
use turnkeep_log::{
    Event, Seq, SessionHeader,
    json::{Json, write_str},
};
use turnkeep_store::{Cancel, EventBatches, EventRange, SessionHandle, SessionStat};
use turnkeep_turns::fold::{Change, Fold, LiveFold};

use super::{coverage::Coverage, publisher::Publisher};
use crate::{
    blocking::off_the_workers,
    source::{LogError, LogSource},
};

/// A session that is followed.
pub(super) struct Tail {
    header: SessionHeader,
    handle: Arc<dyn SessionHandle>,
    live: LiveFold,
    /// The newest event that is in. A log that has another one in its place is another log.
    newest: Option<Event>,
    told: Told,
    /// About how much the fold keeps alive.
    pub(super) bytes: u64,
    /// When it last had something new.
    pub(super) used: Instant,
}

/// What was published of the session itself.
#[derive(Default)]
struct Told {
    is_busy: Option<bool>,
    headline: Option<String>,
}

/// What came of reading on.
pub(super) enum ReadOn {
    /// Everything that is there was read.
    Done,
    /// It is not the same log any more.
    Replaced,
}

impl Tail {
    /// Begins to follow a session: with the events from `count` on, which is how many it had when it
    /// was last looked at, or earlier ones if a page needs them. Where nothing says, with its last
    /// turn.
    pub(super) async fn start(
        log: &LogSource,
        coverage: &Coverage,
        stat: &SessionStat,
        count: Option<u64>,
    ) -> Result<Self, LogError> {
        let header = stat.header.clone();
        let handle = log.open(&header.id).await?;
        loop {
            let due = coverage.due(&header.id);
            let from = match (due, count.map(Seq)) {
                (Some(due), Some(count)) => Some(due.min(count)),
                (due, count) => due.or(count),
            };
            let (fold, newest, bytes) = fold_up_to(&*handle, &header, from).await?;
            let first = fold.next_seq();
            if coverage.follow(&header.id, first).is_err() {
                continue;
            }
            let told = Told { is_busy: None, headline: fold.headline().map(str::to_owned) };
            let (live, used) = (LiveFold::from(fold), Instant::now());
            return Ok(Self { header, handle, live, newest, told, bytes, used });
        }
    }

    /// The event it wants next.
    pub(super) fn next_seq(&self) -> Seq {
        self.live.next_seq()
    }

    /// The header of its log.
    pub(super) fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Reads what has come, and publishes what that changes, a few megabytes of log at a time.
    pub(super) async fn read_on(
        &mut self,
        publisher: &mut Publisher<'_>,
    ) -> Result<ReadOn, LogError> {
        let first = self.newest.as_ref().map_or(Seq(0), Event::seq);
        let mut batches = EventBatches::new(EventRange::from(first));
        let mut is_first = true;
        loop {
            let events = match batches.next(&*self.handle, &Cancel::never()).await {
                Ok(events) => events,
                Err(error) if matches!(error.kind(), "log_shrank" | "not_found") => {
                    return Ok(ReadOn::Replaced);
                }
                Err(error) => return Err(error.into()),
            };
            if std::mem::take(&mut is_first)
                && self.newest.is_some()
                && events.first() != self.newest.as_ref()
            {
                return Ok(ReadOn::Replaced);
            }
            let Some(last) = events.last().cloned() else { return Ok(ReadOn::Done) };
            if last.seq() >= self.live.next_seq() {
                self.used = Instant::now();
            }
            let bytes: usize = events.iter().map(|event| event.text().len()).sum();
            let session = self.header.id.clone();
            let live = std::mem::replace(&mut self.live, LiveFold::from(Fold::new(&session)));
            let (told, header) = (std::mem::take(&mut self.told), self.header.clone());
            let (live, told, changes) = off_the_workers(bytes, move || {
                let mut telling = Telling { live, told, header: &header, out: Vec::new() };
                for event in &events {
                    telling.push(event);
                }
                let Telling { live, told, out, .. } = telling.finish();
                (live, told, out)
            })
            .await;
            (self.live, self.told) = (live, told);
            self.bytes += bytes as u64;
            self.newest = Some(last);
            publisher.send(&self.header, changes).await;
        }
    }
}

/// Folds a log up to an event; up to the beginning of its last turn when none is named.
async fn fold_up_to(
    handle: &dyn SessionHandle,
    header: &SessionHeader,
    from: Option<Seq>,
) -> Result<(Fold, Option<Event>, u64), LogError> {
    let range = EventRange { offset: 0, length: from.map(|from| from.0) };
    let mut batches = EventBatches::new(range);
    let (mut fold, mut newest, mut bytes) = (Fold::new(&header.id), None, 0);
    let mut turn: Vec<Event> = Vec::new();
    loop {
        let events = batches.next(handle, &Cancel::never()).await.map_err(LogError::from)?;
        if events.is_empty() {
            // Without a turn in it there is nothing that would be too much to tell.
            return Ok((fold, newest, bytes));
        }
        let size: usize = events.iter().map(|event| event.text().len()).sum();
        bytes += size as u64;
        let is_open = from.is_none();
        (fold, newest, turn) = off_the_workers(size, move || {
            for event in events {
                if is_open {
                    if event.event_type() == "turn/start" {
                        for event in turn.drain(..) {
                            fold.push(&event);
                            newest = Some(event);
                        }
                    }
                    turn.push(event);
                } else {
                    fold.push(&event);
                    newest = Some(event);
                }
            }
            (fold, newest, turn)
        })
        .await;
    }
}

/// Turns events into what is published of them.
struct Telling<'a> {
    live: LiveFold,
    told: Told,
    header: &'a SessionHeader,
    out: Vec<Change>,
}

impl Telling<'_> {
    fn push(&mut self, event: &Event) {
        if event.seq() < self.live.next_seq() {
            return;
        }
        let was_in_turn = self.live.fold().in_turn();
        self.live.push(event, &mut self.out);
        let is_in_turn = self.live.fold().in_turn();
        if is_in_turn && self.told.is_busy != Some(true) {
            self.busy(true);
        } else if was_in_turn && !is_in_turn {
            self.live.tell(&mut self.out);
            self.busy(false);
            self.tell("session.idle", |_| {});
            self.session("session.updated", event.time());
        }
        let headline = self.live.fold().headline();
        if headline != self.told.headline.as_deref() {
            self.told.headline = headline.map(str::to_owned);
            self.live.tell(&mut self.out);
            self.session("session.updated", event.time());
        }
    }

    fn finish(mut self) -> Self {
        self.live.tell(&mut self.out);
        self
    }

    fn busy(&mut self, is_busy: bool) {
        self.told.is_busy = Some(is_busy);
        let status = if is_busy { "busy" } else { "idle" };
        self.tell("session.status", |out| {
            out.push_str(r#","status":{"type":""#);
            out.push_str(status);
            out.push_str(r#""}"#);
        });
    }

    fn session(&mut self, kind: &'static str, updated: i64) {
        let headline = self.told.headline.as_deref();
        self.out.push(session(kind, self.header, headline, updated));
    }

    fn tell(&mut self, kind: &'static str, rest: impl FnOnce(&mut String)) {
        let mut properties = String::from(r#"{"sessionID":"#);
        write_str(&mut properties, self.header.id.as_str());
        rest(&mut properties);
        properties.push('}');
        self.out.push(Change { kind, properties });
    }
}

/// An event about a session itself, with what OpenCode says of one.
pub(super) fn session(
    kind: &'static str,
    header: &SessionHeader,
    headline: Option<&str>,
    updated: i64,
) -> Change {
    let mut out = String::from(r#"{"sessionID":"#);
    let id = header.id.as_str();
    write_str(&mut out, id);
    out.push_str(r#","info":{"id":"#);
    write_str(&mut out, id);
    out.push_str(r#","slug":"#);
    write_str(&mut out, id);
    // What OpenCode files sessions under that belong to no repository.
    out.push_str(r#","projectID":"global","directory":"#);
    write_str(&mut out, header.cwd.as_deref().unwrap_or_default());
    if let Some(parent) = &header.parent_session {
        out.push_str(r#","parentID":"#);
        write_str(&mut out, parent);
    }
    out.push_str(r#","title":"#);
    write_str(&mut out, headline.unwrap_or_default());
    out.push_str(r#","version":"#);
    write_str(&mut out, env!("CARGO_PKG_VERSION"));
    let created = header.created_at;
    let _ = write!(out, r#","time":{{"created":{created},"updated":{updated}}}}}}}"#);
    debug_assert!(Json::parse(&out).is_ok());
    Change { kind, properties: out }
}
