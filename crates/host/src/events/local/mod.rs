//! Stored sessions on the event channels.
//!
//! While somebody watches a channel, and for a little while after, the store is looked at a few
//! times a second: the newest page of its list, in which every session that has changed stands at
//! the top. Those that have are followed, and what their logs bring is published as the events
//! that OpenCode's clients know. Nothing that was there before is told again, unless a page needs
//! it, see [`Coverage`].
//!
//! What this costs is bounded: the store is looked at for a tenth of the time at most; so many
//! sessions are followed at once, so many bytes of their logs are kept, and those that have gone
//! quiet are let go. A session that was let go is read again from its beginning when it changes,
//! and nothing of it is missed.

mod coverage;
mod ids;
mod publisher;
mod tail;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{sync::watch, time::Instant};
use turnkeep_log::{Seq, SessionHeader, SessionId};
use turnkeep_store::{Cancel, ListQuery, Revision, SessionEntry, SessionStat, SessionState};

pub(crate) use self::coverage::Coverage;
use self::{
    publisher::Publisher,
    tail::{ReadOn, Tail, session},
};
use super::{Hub, timing::EventTiming};
use crate::source::LogSource;

/// How many sessions a page of the store's list has.
const PAGE: usize = 256;

/// How many pages are read of a list in which nothing stands that was there before.
const MAX_PAGES: usize = 16;

/// How many sessions are followed at a time.
const MAX_TAILS: usize = 32;

/// How many bytes of their logs are kept.
const MAX_BYTES: u64 = 256 << 20;

/// How long a session may be quiet before it is let go.
const QUIET: Duration = Duration::from_secs(60);

/// How far the clocks of the store and of this machine may be apart, in milliseconds.
const CLOCK_SLACK: u64 = 60_000;

/// How often a session is read again whose log has changed and brought nothing.
const MAX_VAIN_READS: u32 = 20;

/// How many times longer than it takes the store is left alone between two looks.
const REST: u32 = 9;

/// Publishes what happens in the store while somebody watches.
pub(super) async fn publish(hub: &Arc<Hub>, log: &LogSource, timing: &EventTiming) {
    let mut subscribers = hub.subscribers();
    loop {
        if subscribers.wait_for(|count| *count > 0).await.is_err() {
            return;
        }
        let Some(mut watch) = Watch::begin(hub, log).await else {
            tokio::time::sleep(timing.store_poll * 4).await;
            continue;
        };
        watch.run(&mut subscribers, timing).await;
    }
}

/// A session as it was when the list was last read.
struct Known {
    header: SessionHeader,
    revision: Revision,
    modified_at: i64,
    count: Option<u64>,
}

impl Known {
    fn of(stat: &SessionStat) -> Self {
        Self {
            header: stat.header.clone(),
            revision: stat.revision.clone(),
            modified_at: modified_at(stat),
            count: stat.event_count.or(stat.hints.as_ref().map(|hints| hints.event_count)),
        }
    }
}

/// A stretch of time in which nothing is missed.
struct Watch<'a> {
    log: &'a LogSource,
    publisher: Publisher<'a>,
    /// When it began, in milliseconds since the epoch: what was created later is new.
    began: u64,
    /// The sessions at the top of the list.
    known: HashMap<SessionId, Known>,
    /// Whether those were all there are.
    is_all_known: bool,
    tails: HashMap<SessionId, Tail>,
    /// How often sessions were read since they changed without anything coming of it. A writer in
    /// this process may have it on disk, and not have acknowledged it yet: then nothing changes any
    /// more when it does.
    vain_reads: HashMap<SessionId, u32>,
}

impl<'a> Watch<'a> {
    /// Notes how everything is. From then on whatever changes is published.
    async fn begin(hub: &'a Arc<Hub>, log: &'a LogSource) -> Option<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut watch = Self {
            log,
            publisher: Publisher::new(hub),
            began: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            known: HashMap::new(),
            is_all_known: false,
            tails: HashMap::new(),
            vain_reads: HashMap::new(),
        };
        let (entries, next) = watch.list(None).await?;
        watch.note(&entries, next.is_none());
        log.coverage().begin();
        hub.follow_store(true);
        Some(watch)
    }

    /// Looks again and again, until nobody has watched for a while.
    async fn run(&mut self, subscribers: &mut watch::Receiver<usize>, timing: &EventTiming) {
        let mut pause = timing.store_poll;
        let mut left: Option<Instant> = None;
        loop {
            if *subscribers.borrow_and_update() > 0 {
                left = None;
                tokio::time::sleep(pause).await;
            } else {
                let now = Instant::now();
                let until = *left.get_or_insert(now) + timing.store_grace;
                if now >= until {
                    return;
                }
                // Nobody waits for it: enough that nothing piles up.
                let slowly = until.min(now + pause.max(timing.store_poll * 4));
                tokio::select! {
                    () = tokio::time::sleep_until(slowly) => {}
                    changed = subscribers.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                }
            }
            let began = Instant::now();
            self.look().await;
            pause = timing.store_poll.max(began.elapsed() * REST);
        }
    }

    /// Finds out what has changed, and publishes it.
    async fn look(&mut self) {
        let mut entries = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let Some((page, next)) = self.list(cursor).await else { return };
            let is_new = page.iter().all(|entry| !self.is_known(entry));
            entries.extend(page);
            cursor = next;
            if cursor.is_none() || !is_new {
                break;
            }
        }
        let gone = self.missing(&entries, cursor.is_none());
        for id in gone {
            self.check(&id).await;
        }
        // The oldest change first, as it happened.
        for entry in entries.iter().rev() {
            if let Some(stat) = entry.stat.as_ref().filter(|_| entry.state == SessionState::Ok)
                && !self.is_known(entry)
            {
                self.follow(stat).await;
            }
        }
        self.note(&entries, cursor.is_none());
        self.let_go();
    }

    /// A page of the sessions, newest first, and where the next one begins.
    async fn list(&self, cursor: Option<String>) -> Option<(Vec<SessionEntry>, Option<String>)> {
        let query = ListQuery { cursor, limit: Some(PAGE), ..ListQuery::default() };
        match self.log.store().list(&query, &Cancel::never()).await {
            Ok(list) => Some((list.entries, list.cursor)),
            Err(error) => {
                tracing::warn!(kind = error.kind(), "the store, to be watched");
                None
            }
        }
    }

    /// Whether the session is as it was: when it was last looked at, or, if it was too far down in
    /// the list then, when this began. Where all are known, one that is not is new whatever its
    /// date: what has no event yet may have been created for a conversation of long ago.
    fn is_known(&self, entry: &SessionEntry) -> bool {
        let Some(stat) = &entry.stat else { return true };
        match self.known.get(&entry.id) {
            Some(known) => {
                let vain_reads = self.vain_reads.get(&entry.id);
                known.revision == stat.revision
                    && vain_reads.is_none_or(|reads| *reads > MAX_VAIN_READS)
            }
            None if self.is_all_known => false,
            None => u64::try_from(modified_at(stat)).is_ok_and(|at| at + CLOCK_SLACK < self.began),
        }
    }

    fn note(&mut self, entries: &[SessionEntry], is_all: bool) {
        self.is_all_known = is_all;
        let stats = entries.iter().filter_map(|entry| entry.stat.as_ref());
        self.known = stats.map(|stat| (stat.header.id.clone(), Known::of(stat))).collect();
        self.vain_reads.retain(|id, _| self.known.contains_key(id));
    }

    /// Sessions that were at the top of the list, and should still be there.
    fn missing(&self, entries: &[SessionEntry], is_all: bool) -> Vec<SessionId> {
        let oldest = entries.iter().rev().find_map(|entry| entry.stat.as_ref()).map(modified_at);
        let should_be = |known: &Known| is_all || oldest.is_none_or(|at| known.modified_at >= at);
        let listed: std::collections::HashSet<_> = entries.iter().map(|entry| &entry.id).collect();
        let missing =
            self.known.iter().filter(|(id, known)| !listed.contains(id) && should_be(known));
        missing.map(|(id, _)| id.clone()).collect()
    }

    /// Looks whether a session is gone.
    async fn check(&mut self, id: &SessionId) {
        if let Ok(None) = self.log.stat(id).await
            && let Some(known) = self.known.remove(id)
        {
            self.delete(&known.header, known.modified_at).await;
        }
    }

    async fn delete(&mut self, header: &SessionHeader, at: i64) {
        self.tails.remove(&header.id);
        self.log.coverage().forget(&header.id);
        self.publisher.send(header, vec![session("session.deleted", header, None, at)]).await;
    }

    async fn create(&mut self, stat: &SessionStat) {
        let created = session("session.created", &stat.header, None, modified_at(stat));
        self.publisher.send(&stat.header, vec![created]).await;
    }

    /// Publishes what has come to a session.
    async fn follow(&mut self, stat: &SessionStat) {
        let id = &stat.header.id;
        if self.known.get(id).is_none_or(|known| known.revision != stat.revision) {
            self.vain_reads.remove(id);
        }
        let known = self.known.get(id).map(|known| (known.header == stat.header, known.count));
        let mut count = match known {
            Some((true, count)) => count,
            Some((false, _)) => {
                self.replace(stat).await;
                Some(0)
            }
            None if self.is_all_known || stat.header.created_at >= self.began => {
                self.create(stat).await;
                Some(0)
            }
            None => None,
        };
        // Twice when it turns out to be another log under the same name.
        for _ in 0..2 {
            match self.read(stat, count).await {
                Ok(ReadOn::Done) => return,
                Ok(ReadOn::Replaced) => {
                    self.replace(stat).await;
                    count = Some(0);
                }
                Err(kind) => {
                    tracing::warn!(session = ?id.as_str(), kind, "a followed session");
                    match self.tails.remove(id) {
                        Some(tail) => self.log.coverage().pause(id, tail.next_seq()),
                        None => self.owe(id, count),
                    }
                    return;
                }
            }
        }
    }

    /// Another session has taken the place of one.
    async fn replace(&mut self, stat: &SessionStat) {
        let id = &stat.header.id;
        let before = self.known.get(id).map_or(&stat.header, |known| &known.header).clone();
        self.delete(&before, modified_at(stat)).await;
        self.create(stat).await;
    }

    /// Notes from where a session has to be told of that could not be read.
    fn owe(&self, id: &SessionId, count: Option<u64>) {
        if let Some(count) = count {
            let _ = self.log.coverage().covers(id, Seq(count));
        }
    }

    async fn read(
        &mut self,
        stat: &SessionStat,
        count: Option<u64>,
    ) -> Result<ReadOn, &'static str> {
        let id = &stat.header.id;
        let mut tail = if let Some(tail) = self.tails.remove(id) {
            tail
        } else {
            let started = Tail::start(self.log, self.log.coverage(), stat, count).await;
            started.map_err(|error| error.kind())?
        };
        let before = tail.next_seq();
        let read = tail.read_on(&mut self.publisher).await;
        if tail.next_seq() == before {
            *self.vain_reads.entry(id.clone()).or_default() += 1;
        } else {
            self.vain_reads.remove(id);
        }
        self.tails.insert(id.clone(), tail);
        read.map_err(|error| error.kind())
    }

    /// Lets sessions go that are quiet, and the quietest while there are too many.
    fn let_go(&mut self) {
        loop {
            let bytes: u64 = self.tails.values().map(|tail| tail.bytes).sum();
            let Some((id, tail)) = self.tails.iter().min_by_key(|(_, tail)| tail.used) else {
                return;
            };
            let is_quiet = tail.used.elapsed() >= QUIET;
            if !is_quiet && bytes <= MAX_BYTES && self.tails.len() <= MAX_TAILS {
                return;
            }
            let id = id.clone();
            if let Some(tail) = self.tails.remove(&id) {
                self.log.coverage().pause(&tail.header().id, tail.next_seq());
            }
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.publisher.hub.follow_store(false);
        self.log.coverage().end();
    }
}

/// When a session last changed, in milliseconds since the epoch.
fn modified_at(stat: &SessionStat) -> i64 {
    stat.modified_at.or_else(|| i64::try_from(stat.header.created_at).ok()).unwrap_or_default()
}
