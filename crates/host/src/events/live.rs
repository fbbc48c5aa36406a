//! What runs while a host serves.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::OnceCell, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    hub::Hub,
    link::{Link, Unavailable},
    reader,
    timing::EventTiming,
};
use crate::source::OpenCodeSource;

/// The hub of a host, and what feeds it.
pub(crate) struct LiveHost {
    hub: Arc<Hub>,
    timing: EventTiming,
    running: Mutex<Running>,
    /// The upstream's own directory, once it has been asked for.
    directory: OnceCell<Arc<str>>,
}

/// What runs, however many listeners are served.
#[derive(Debug, Default)]
struct Running {
    listeners: usize,
    stop: CancellationToken,
}

/// One listener's hold on what runs.
#[derive(Debug)]
pub(crate) struct Serving<'a> {
    live: &'a LiveHost,
    has_ended: Mutex<bool>,
}

impl LiveHost {
    pub(crate) fn new(hub: Arc<Hub>, timing: EventTiming) -> Self {
        Self { hub, timing, running: Mutex::default(), directory: OnceCell::new() }
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(crate) fn timing(&self) -> &EventTiming {
        &self.timing
    }

    /// What is cancelled when the host stops.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.running().stop.clone()
    }

    /// Lets clients in, and follows the upstream unless someone does already.
    pub(crate) fn begin(&self, opencode: Option<Arc<OpenCodeSource>>) -> Serving<'_> {
        let mut running = self.running();
        running.listeners += 1;
        if running.listeners == 1 {
            running.stop = CancellationToken::new();
            self.hub.open();
            if let Some(opencode) = opencode {
                let (hub, timing) = (Arc::clone(&self.hub), self.timing.clone());
                let stop = running.stop.clone();
                tokio::spawn(async move {
                    let reading = reader::read(&hub, opencode.upstream(), &timing);
                    let _ = stop.run_until_cancelled(reading).await;
                });
            }
        }
        drop(running);
        Serving { live: self, has_ended: Mutex::new(false) }
    }

    /// Waits until there is something to watch: an upstream that was connected once may be expected
    /// back. The first time it takes as long as a starting server does.
    ///
    /// # Errors
    ///
    /// There is no stream of the upstream, and it was not seen to come.
    pub(crate) async fn wait_for_upstream(&self) -> Result<(), Unavailable> {
        self.wait(|link| link.was_connected).await
    }

    /// Waits until the upstream is connected now.
    ///
    /// # Errors
    ///
    /// As [`LiveHost::wait_for_upstream`].
    pub(crate) async fn wait_for_connection(&self) -> Result<(), Unavailable> {
        self.wait(|link| link.is_connected).await
    }

    async fn wait(&self, is_enough: impl Fn(&Link) -> bool) -> Result<(), Unavailable> {
        let began = Instant::now();
        let mut link = self.hub.link.subscribe();
        loop {
            let now = *link.borrow_and_update();
            if is_enough(&now) {
                return Ok(());
            }
            let (patience, failure) = match now.failure {
                Some(Unavailable::Login(status)) => return Err(Unavailable::Login(status)),
                Some(failure) => (self.timing.hold, failure),
                None => (self.timing.connect, Unavailable::Silent),
            };
            let changed = tokio::time::timeout_at(began + patience, link.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                return Err(failure);
            }
        }
    }

    /// The directory that the upstream was started in; it is asked once. `None` when it does not
    /// say.
    pub(crate) async fn own_directory(&self, opencode: &OpenCodeSource) -> Option<Arc<str>> {
        let asking = self.directory.get_or_try_init(|| async {
            let directory = opencode.upstream().own_directory().await.ok_or(())?;
            Ok::<_, ()>(self.hub.real_directory(&directory))
        });
        let asked = tokio::time::timeout(self.timing.hold, asking).await;
        asked.ok()?.ok().cloned()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serving<'_> {
    /// Stops what runs, unless another listener needs it.
    pub(crate) fn end(&self) {
        let mut has_ended = self.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut has_ended, true) {
            return;
        }
        let mut running = self.live.running();
        running.listeners -= 1;
        if running.listeners == 0 {
            running.stop.cancel();
            self.live.hub.close();
        }
    }
}

/// A host that is no longer served has nothing running either.
impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for LiveHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveHost").field("hub", &self.hub).finish_non_exhaustive()
    }
}
