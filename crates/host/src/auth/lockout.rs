//! Who has failed too often waits.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How many failures within [`WINDOW`] lock a network out.
const FAILURES: usize = 10;

/// How long a failure counts.
const WINDOW: Duration = Duration::from_secs(5 * 60);

/// How long a network is locked out.
const LOCK: Duration = Duration::from_secs(15 * 60);

/// How many networks are remembered. Whoever has more of them to attack from than this is not
/// stopped by counting.
const NETWORKS: usize = 10_000;

/// The failures of each network.
#[derive(Debug, Default)]
pub(crate) struct Lockout {
    networks: Mutex<HashMap<IpAddr, Record>>,
}

#[derive(Debug, Default)]
struct Record {
    failed: VecDeque<Instant>,
    under_way: usize,
    locked_until: Option<Instant>,
}

/// A login that is being looked at. It counts as failed unless it is said to be none: a client that
/// leaves before the answer has still guessed.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    lockout: &'a Lockout,
    network: IpAddr,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Failed,
    Succeeded,
    /// It came to no comparison.
    Void,
}

/// How long a network has to wait before its next login is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) Duration);

impl Wait {
    /// For a `Retry-After`: whole seconds, at least one.
    pub(crate) fn seconds(self) -> u64 {
        self.0.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX).max(1)
    }
}

impl Lockout {
    /// Lets a login be looked at. Those under way count as failures meanwhile, so that asking with
    /// all guesses at once gains nothing.
    pub(crate) fn attempt(&self, network: IpAddr, now: Instant) -> Result<Attempt<'_>, Wait> {
        let mut networks = self.lock();
        make_room(&mut networks, network, now);
        let record = networks.entry(network).or_default();
        if let Some(wait) = record.wait(now) {
            return Err(wait);
        }
        if record.failed.len() + record.under_way >= FAILURES {
            return Err(Wait(Duration::from_secs(1)));
        }
        record.under_way += 1;
        Ok(Attempt { lockout: self, network, outcome: Outcome::Failed })
    }

    /// How long a network still has to wait, if it has to.
    pub(crate) fn wait(&self, network: IpAddr, now: Instant) -> Option<Wait> {
        self.lock().get_mut(&network).and_then(|record| record.wait(now))
    }

    /// Counts a failure that took no looking at.
    pub(crate) fn failed(&self, network: IpAddr, now: Instant) {
        let mut networks = self.lock();
        make_room(&mut networks, network, now);
        networks.entry(network).or_default().fail(now);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Record>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// Forgets what is over; how long to wait, while locked out.
    fn wait(&mut self, now: Instant) -> Option<Wait> {
        if self.locked_until.is_some_and(|until| until <= now) {
            self.locked_until = None;
        }
        while self.failed.front().is_some_and(|at| now.saturating_duration_since(*at) >= WINDOW) {
            self.failed.pop_front();
        }
        self.locked_until.map(|until| Wait(until - now))
    }

    fn fail(&mut self, now: Instant) {
        if self.wait(now).is_some() {
            return;
        }
        self.failed.push_back(now);
        if self.failed.len() >= FAILURES {
            self.failed.clear();
            self.locked_until = Some(now + LOCK);
            tracing::warn!("too many failed logins from one address; it is locked out");
        }
    }

    /// When nothing is left to remember.
    fn ends(&self) -> Option<Instant> {
        self.locked_until.max(self.failed.back().map(|at| *at + WINDOW))
    }
}

/// Makes room for a new network: by forgetting those that nothing is left to remember of, else the
/// one that would be forgotten next, one that is not locked out if there is any.
fn make_room(networks: &mut HashMap<IpAddr, Record>, new: IpAddr, now: Instant) {
    if networks.len() < NETWORKS || networks.contains_key(&new) {
        return;
    }
    networks.retain(|_, record| {
        record.wait(now);
        record.under_way > 0 || record.ends().is_some()
    });
    if networks.len() < NETWORKS {
        return;
    }
    let idle = networks.iter().filter(|(_, record)| record.under_way == 0);
    let next = idle.min_by_key(|(_, record)| (record.locked_until.is_some(), record.ends()));
    if let Some(network) = next.map(|(network, _)| *network) {
        networks.remove(&network);
    }
}

impl Attempt<'_> {
    /// It was the password. What a person mistyped before is forgotten.
    pub(crate) fn succeeded(mut self) {
        self.outcome = Outcome::Succeeded;
    }

    /// Nothing was compared.
    pub(crate) fn void(mut self) {
        self.outcome = Outcome::Void;
    }

    /// It was not. How long the network is locked out, when that was one too many.
    pub(crate) fn failed(self) -> Option<Wait> {
        let (lockout, network) = (self.lockout, self.network);
        drop(self);
        lockout.wait(network, Instant::now())
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut networks = self.lockout.lock();
        let Some(record) = networks.get_mut(&self.network) else { return };
        record.under_way = record.under_way.saturating_sub(1);
        match self.outcome {
            Outcome::Failed => record.fail(Instant::now()),
            Outcome::Succeeded => record.failed.clear(),
            Outcome::Void => {}
        }
        if record.under_way == 0 && record.ends().is_none() {
            networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
#[path = "lockout_tests.rs"]
mod tests;
