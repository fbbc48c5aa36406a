//! What somebody who was let in may do, and for how long.

use std::{sync::Arc, time::Duration};

use super::{Auth, Scope, secret::Digest};

/// That a request was let in; in the extensions of every one that was.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    auth: Arc<Auth>,
    scope: Scope,
    via: Via,
}

/// What a request was let in for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    /// Nothing: the host is open.
    Nothing,
    /// The cookie of a login.
    Login(Digest),
    /// An API token.
    Token(Digest),
}

impl Pass {
    pub(super) fn new(auth: Arc<Auth>, scope: Scope, via: Via) -> Self {
        Self { auth, scope, via }
    }

    /// What it allows.
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    pub(crate) fn via(&self) -> &Via {
        &self.via
    }

    /// Whether it may end before the request does.
    pub(super) fn can_end(&self) -> bool {
        !matches!(self.via, Via::Nothing)
    }

    /// Whether the same request would be let in now: the token was not revoked and has not expired,
    /// the login has not ended.
    pub(crate) fn still_good(&self) -> bool {
        self.auth.is_still_in(&self.via)
    }

    /// Ready once it is good no more, which is looked for this often.
    pub(crate) async fn ended(&self, every: Duration) {
        if !self.can_end() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(every).await;
            if !self.still_good() {
                return;
            }
        }
    }
}
