//! What a list says of each session.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use turnkeep_log::{Blank, SessionHeader, SessionId};

use super::{
    cache::{ColdCache, StoreKey, check, read},
    kept::{Kept, Limits, Serial},
    several::at_a_time,
};
use crate::{
    error::{Cancelled, ColdError},
    seam::{Cancel, Revision, SessionStat, SessionStore},
    shell::locked,
};

/// How many sessions are probed at a time.
const AT_A_TIME: usize = 16;

/// Of how many sessions it is remembered what was found.
const REMEMBERED: usize = 4096;

/// How large a session may be to be read for a list.
///
/// Which gate applies is decided by what the backend knows of the session: by its number of events
/// where that is known, else by the bytes it takes. A gate that is 0 lets nothing in, and does not
/// leave the decision to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlankGates {
    /// How many events at most, where the backend counts them.
    pub max_events: u64,
    /// How many bytes at most, where it does not, and knows the size.
    pub max_bytes: u64,
}

impl Default for BlankGates {
    /// 16 events, or 1024 bytes.
    fn default() -> Self {
        Self { max_events: 16, max_bytes: 1024 }
    }
}

impl BlankGates {
    /// Whether a session is small enough. One of which neither is known is not.
    #[must_use]
    pub fn let_in(&self, stat: &SessionStat) -> bool {
        let within = |gate: u64, found: u64| gate > 0 && found <= gate;
        match (stat.event_count, stat.size_bytes) {
            (Some(events), _) => within(self.max_events, events),
            (None, Some(bytes)) => within(self.max_bytes, bytes),
            (None, None) => false,
        }
    }
}

/// What a list says of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Whether no turn has started in it. `false` as well when that is not known: a list hides
    /// blank sessions, and one that may not be must stay in sight.
    pub blank: bool,
    /// When a person last spoke in it, in milliseconds since the epoch, as far as it was read.
    pub last_prompt_at: Option<i64>,
    /// When it was last of interest to a person, in milliseconds since the epoch: when it was made
    /// or last spoken in, whichever is later.
    pub updated_at: i64,
    /// Whether that is a guess, since the log has not been read: the time of its file then.
    pub updated_at_estimated: bool,
}

impl Glance {
    /// Of a session whose whole log was read.
    #[must_use]
    pub fn of(stat: &SessionStat, blank: Blank) -> Self {
        Self {
            blank: blank.blank,
            last_prompt_at: blank.last_prompt_at,
            updated_at: milliseconds(blank.updated_at(stat.header.created_at)),
            updated_at_estimated: false,
        }
    }

    /// Of a session of which no more is known than this.
    #[must_use]
    pub fn unread(stat: &SessionStat) -> Self {
        let created_at = milliseconds(stat.header.created_at);
        Self {
            blank: false,
            last_prompt_at: None,
            updated_at: stat.modified_at.unwrap_or(created_at),
            updated_at_estimated: true,
        }
    }
}

fn milliseconds(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

/// Finds out which sessions are blank, at the cost of reading only the small ones.
///
/// A turn that has started stays started: a session that was found not to be blank is not read
/// again for this, whatever has been written to it since. A blank one is, once it has changed.
///
/// A session that is being written in this process is not probed. Whoever writes it knows better,
/// and is asked through [`with_live`](Self::with_live); without an answer it is listed as not
/// blank, since someone is at work in it.
#[derive(Clone)]
pub struct BlankProbe {
    gates: BlankGates,
    cache: ColdCache,
    found: Arc<Mutex<Kept<Finding>>>,
    counted: Arc<AtomicU64>,
    live: Arc<LiveBlank>,
}

/// Asks those who write sessions. It must not wait for anything.
type LiveBlank = dyn Fn(&SessionId) -> Option<Blank> + Send + Sync;

/// What was found in a session.
#[derive(Clone, Debug)]
struct Finding {
    store: StoreKey,
    header: SessionHeader,
    revision: Revision,
    blank: Blank,
}

impl BlankProbe {
    /// A probe that looks into this cache first. What it reads itself it does not put there: a
    /// list would push out everything that someone is going to look at again.
    #[must_use]
    pub fn new(gates: BlankGates, cache: &ColdCache) -> Self {
        let limits = Limits { entries: REMEMBERED, bytes: u64::MAX };
        Self {
            gates,
            cache: cache.clone(),
            found: Arc::new(Mutex::new(Kept::new(limits))),
            counted: Arc::default(),
            live: Arc::new(|_: &SessionId| None),
        }
    }

    /// The same, with someone to ask about sessions that are being written.
    #[must_use]
    pub fn with_live(
        self,
        live: impl Fn(&SessionId) -> Option<Blank> + Send + Sync + 'static,
    ) -> Self {
        Self { live: Arc::new(live), ..self }
    }

    /// What a list says of these sessions, which are as a listing has them. The answers are in the
    /// same order. Sixteen sessions are read at a time; no session is looked at otherwise.
    ///
    /// A session that cannot be read, or is gone, is one that was not read.
    ///
    /// # Errors
    ///
    /// Only when it is called off.
    pub async fn glances(
        &self,
        store: &Arc<dyn SessionStore>,
        stats: &[SessionStat],
        cancel: &Cancel,
    ) -> Result<Vec<Glance>, Cancelled> {
        check(cancel)?;
        let looks = stats.iter().map(|stat| {
            let (probe, store) = (self.clone(), Arc::clone(store));
            let (stat, cancel) = (stat.clone(), cancel.clone());
            async move { probe.glance(&store, &stat, &cancel).await }
        });
        let glances = at_a_time(AT_A_TIME, looks).await;
        check(cancel)?;
        let unread =
            |(glance, stat): (Option<Glance>, _)| glance.unwrap_or_else(|| Glance::unread(stat));
        Ok(glances.into_iter().zip(stats).map(unread).collect())
    }

    async fn glance(
        &self,
        store: &Arc<dyn SessionStore>,
        stat: &SessionStat,
        cancel: &Cancel,
    ) -> Glance {
        if let Some(glance) = self.of_live(store, stat) {
            return glance;
        }
        if let Some(glance) = self.of_known(store, stat) {
            return glance;
        }
        if !self.gates.let_in(stat) {
            return Glance::unread(stat);
        }
        let session = read(Arc::clone(store), stat.clone(), false, cancel.clone()).await;
        if let Some(glance) = self.of_live(store, stat) {
            return glance;
        }
        match session {
            Ok(session) => {
                self.remember(store, stat, session.blank());
                Glance::of(stat, session.blank())
            }
            Err(failure) => {
                if !matches!(failure, ColdError::Cancelled(_) | ColdError::NotFound(_)) {
                    tracing::debug!(session = %stat.header.id, kind = failure.kind(), "not probed");
                }
                Glance::unread(stat)
            }
        }
    }

    /// What is to be said of a session that is being written.
    fn of_live(&self, store: &Arc<dyn SessionStore>, stat: &SessionStat) -> Option<Glance> {
        let id = &stat.header.id;
        match (self.live)(id) {
            Some(blank) => Some(Glance::of(stat, blank)),
            None => store.owns(id).then(|| Glance::unread(stat)),
        }
    }

    /// What is known from an earlier reading and still holds.
    fn of_known(&self, store: &Arc<dyn SessionStore>, stat: &SessionStat) -> Option<Glance> {
        let id = &stat.header.id;
        let observed = self
            .cache
            .peek(store, id)
            .map(|session| (session.header().clone(), session.revision().clone(), session.blank()));
        let found = || {
            let found = locked(&self.found);
            let (finding, _) = found.get(id)?;
            let Finding { header, revision, blank, .. } = finding.clone();
            (finding.store == StoreKey::of(store)).then_some((header, revision, blank))
        };
        let holds = |(header, revision, blank): (SessionHeader, Revision, Blank)| {
            if header != stat.header {
                None
            } else if revision == stat.revision {
                Some(Glance::of(stat, blank))
            } else if blank.blank {
                None
            } else {
                // When a person spoke last may have changed since; that nothing did, has not.
                let last_prompt_at = blank.last_prompt_at;
                Some(Glance { last_prompt_at, ..Glance::unread(stat) })
            }
        };
        observed.and_then(holds).or_else(|| found().and_then(holds))
    }

    fn remember(&self, store: &Arc<dyn SessionStore>, stat: &SessionStat, blank: Blank) {
        let SessionStat { header, revision, .. } = stat.clone();
        let id = header.id.clone();
        let finding = Finding { store: StoreKey::of(store), header, revision, blank };
        let serial = Serial(self.counted.fetch_add(1, Ordering::Relaxed));
        let mut found = locked(&self.found);
        let _older = found.insert(&id, serial, 0, &finding);
        found.unpin(&id, serial);
    }
}

impl fmt::Debug for BlankProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlankProbe").field("gates", &self.gates).finish_non_exhaustive()
    }
}
