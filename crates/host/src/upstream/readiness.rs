//! Whether the upstream takes requests.
//!
//! A starting OpenCode listens a moment before it serves, and a request that falls into that gap
//! is never answered. So before the first request, and again after every sign of a restart, a
//! cheap probe with a short deadline is repeated until it is answered; only then are requests
//! sent.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::sync::Mutex;

/// How long one probe may take.
pub(super) const PROBE_DEADLINE: Duration = Duration::from_secs(1);

/// How one probe went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// It was answered.
    Answered,
    /// Nobody listens, or the server says that it is not ready.
    Refused,
    /// It was taken, and not answered in time.
    Silent,
}

/// The upstream takes no requests now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotReady;

/// Whether the upstream takes requests, as far as is known.
#[derive(Debug, Default)]
pub(super) struct Readiness {
    ready: AtomicBool,
    probing: Mutex<()>,
}

impl Readiness {
    /// Returns once the upstream takes requests; one caller probes for all who wait.
    ///
    /// A probe that is refused ends the wait at once, so that clients are told; one that is not
    /// answered is repeated for as long as the caller waits.
    pub(super) async fn wait<F>(&self, probe: impl Fn() -> F) -> Result<(), NotReady>
    where
        F: Future<Output = Probe>,
    {
        if self.is_ready() {
            return Ok(());
        }
        let _turn = self.probing.lock().await;
        while !self.is_ready() {
            match probe().await {
                Probe::Answered => self.ready.store(true, Ordering::Release),
                Probe::Refused => return Err(NotReady),
                Probe::Silent => {}
            }
        }
        Ok(())
    }

    /// Notes a sign that the upstream went away.
    pub(super) fn lose(&self) {
        self.ready.store(false, Ordering::Release);
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
}
