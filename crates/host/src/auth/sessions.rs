//! Who has logged in with a browser.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    scope::Scope,
    secret::{Digest, Secret},
};

/// How long a login lasts without a request.
const IDLE: Duration = Duration::from_secs(12 * 60 * 60);

/// How long it lasts at most.
const AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How many logins there can be; another one ends the one that was used longest ago.
const LOGINS: usize = 256;

/// The logins of this process: they end with it.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    logins: Mutex<Vec<Login>>,
}

#[derive(Debug)]
struct Login {
    /// Of what the cookie holds. The cookie itself is nowhere but in the browser.
    id: Digest,
    by: LoginBy,
    began: Instant,
    used: Instant,
}

/// What somebody has logged in with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LoginBy {
    /// The password, which everything is allowed with.
    Password,
    /// An API token. The login allows what it allows, as long as it does.
    Token(Digest),
}

impl Sessions {
    /// Begins a login; what its cookie holds.
    pub(crate) fn begin(&self, by: LoginBy, now: Instant) -> Result<Secret, getrandom::Error> {
        let id = Secret::random("")?;
        let mut logins = self.lock(now);
        if logins.len() >= LOGINS {
            let oldest = logins.iter().enumerate().min_by_key(|(_, login)| login.used);
            if let Some(at) = oldest.map(|(at, _)| at) {
                logins.swap_remove(at);
            }
        }
        logins.push(Login { id: id.digest(), by, began: now, used: now });
        Ok(id)
    }

    /// The login that goes by this id, if there is one, used now. All of them are compared, so that
    /// the time does not tell.
    pub(crate) fn used(&self, id: &Digest, now: Instant) -> Option<LoginBy> {
        let mut logins = self.lock(now);
        let mut found = None;
        for login in logins.iter_mut().filter(|login| login.id.matches(id)) {
            login.used = now;
            found = Some(login.by);
        }
        found
    }

    /// The same without using it.
    pub(crate) fn find(&self, id: &Digest, now: Instant) -> Option<LoginBy> {
        let logins = self.lock(now);
        logins.iter().fold(None, |found, login| login.id.matches(id).then_some(login.by).or(found))
    }

    /// Ends a login.
    pub(crate) fn end(&self, id: &Digest, now: Instant) {
        self.lock(now).retain(|login| !login.id.matches(id));
    }

    /// The logins that have not ended.
    fn lock(&self, now: Instant) -> MutexGuard<'_, Vec<Login>> {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |at: Instant| now.saturating_duration_since(at);
        logins.retain(|login| since(login.used) < IDLE && since(login.began) < AGE);
        logins
    }
}

impl LoginBy {
    /// What a login with a password may do.
    pub(crate) const PASSWORD_SCOPE: Scope = Scope::Admin;
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
