//! The one reader of the upstream's event stream.
//!
//! It asks for the stream of all directories once the upstream takes requests, hands its events to
//! the hub, and asks again when the stream ends or nothing comes any more. OpenCode has no memory
//! of its events, so what happened in between is lost: the hub begins a new epoch with each
//! connection.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::{Instant, timeout, timeout_at};
use turnkeep_log::Text;

use super::{
    hub::Hub,
    link::{Link, Unavailable},
    payload::Published,
    sse::Blocks,
    timing::EventTiming,
};
use crate::{
    blocking::off_the_workers,
    upstream::{StreamTrouble, Upstream},
};

/// A block larger than this is left out. OpenCode sends a message whole, its files included.
const MAX_BLOCK_BYTES: usize = 64 << 20;

/// Reads until it is dropped.
pub(crate) async fn read(hub: &Hub, upstream: &Upstream, timing: &EventTiming) {
    let link = Following { hub };
    let (mut retry, mut last_id) = (Retry::new(timing), None);
    loop {
        let connecting = timeout(timing.connect, upstream.events(last_id.as_deref())).await;
        let pause = match connecting.map_err(|_| Unavailable::Silent) {
            Ok(Ok(response)) => {
                hub.tally.connects.add(1);
                tracing::info!("the upstream's events are followed");
                link.begins();
                let began = Instant::now();
                let end = follow(hub, response.bytes_stream(), timing.stall, &mut last_id).await;
                link.ends();
                upstream.lose_readiness();
                tracing::warn!(end = end.label(), "the upstream's events are lost");
                if end == End::Stalled {
                    hub.tally.stalls.add(1);
                }
                // A server that begins and ends a stream over and over would have every client
                // fetch everything each time.
                if began.elapsed() > timing.retry_at_most {
                    retry.restart();
                }
                retry.next()
            }
            Ok(Err(trouble)) => link.fails(Unavailable::from(trouble), &mut retry),
            Err(silent) => link.fails(silent, &mut retry),
        };
        tokio::time::sleep(pause).await;
    }
}

/// What the hub is told of the connection, and that it is gone when this is dropped.
struct Following<'a> {
    hub: &'a Hub,
}

impl Following<'_> {
    fn begins(&self) {
        self.hub.connect_upstream();
        let now = Link { is_connected: true, was_connected: true, failure: None };
        self.hub.link.send_replace(now);
    }

    fn ends(&self) {
        self.hub.lose_upstream();
        self.hub.link.send_modify(|link| link.is_connected = false);
    }

    /// Tells of a try in vain, and says how long to wait before the next one.
    fn fails(&self, failure: Unavailable, retry: &mut Retry<'_>) -> Duration {
        // One line for each way to fail, not for each try.
        if self.hub.link.borrow().failure != Some(failure) {
            let status = match failure {
                Unavailable::Status(status) | Unavailable::Login(status) => Some(status),
                Unavailable::Refused | Unavailable::Silent => None,
            };
            tracing::warn!(trouble = failure.label(), status, "{}", failure.told());
        }
        self.hub.link.send_modify(|link| link.failure = Some(failure));
        match failure {
            Unavailable::Login(_) => retry.timing.retry_login,
            _ => retry.next(),
        }
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.ends();
    }
}

impl From<StreamTrouble> for Unavailable {
    fn from(trouble: StreamTrouble) -> Self {
        match trouble {
            StreamTrouble::Refused => Self::Refused,
            StreamTrouble::Status(status @ (401 | 403)) => Self::Login(status),
            StreamTrouble::Status(status) => Self::Status(status),
        }
    }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The server ended it.
    Ended,
    /// The connection broke.
    Broken,
    /// Nothing came any more.
    Stalled,
}

impl End {
    fn label(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Broken => "broken",
            Self::Stalled => "stalled",
        }
    }
}

/// Hands the events of a stream to the hub, until it ends or nothing comes for `stall`.
async fn follow<E>(
    hub: &Hub,
    chunks: impl Stream<Item = Result<Bytes, E>>,
    stall: Duration,
    last_id: &mut Option<String>,
) -> End {
    let (mut chunks, mut blocks) = (pin!(chunks), Blocks::new(MAX_BLOCK_BYTES));
    let mut too_large = 0;
    let mut deadline = Instant::now() + stall;
    loop {
        let chunk = match timeout_at(deadline, chunks.next()).await {
            Err(_) => return End::Stalled,
            Ok(None) => return End::Ended,
            Ok(Some(Err(_))) => return End::Broken,
            Ok(Some(Ok(chunk))) => chunk,
        };
        if chunk.is_empty() {
            continue;
        }
        deadline = Instant::now() + stall;
        let mut found = Vec::new();
        blocks.read(&chunk, |block| found.push(block.data));
        for data in found {
            let data = Text::from(data);
            let bytes = data.len();
            let event = off_the_workers(bytes, move || Published::from_block(&data)).await;
            let published = event.map(|event| hub.publish(event));
            hub.tally.skipped.add(u64::from(published.is_none()));
        }
        if let Some(id) = blocks.last_id() {
            *last_id = Some(id.to_owned()).filter(|id| !id.is_empty());
        }
        hub.tally.skipped.add(blocks.too_large() - too_large);
        too_large = blocks.too_large();
        // Those who were woken get their turn before more comes.
        tokio::task::yield_now().await;
    }
}

/// How long to wait before each try.
struct Retry<'a> {
    timing: &'a EventTiming,
    next: Duration,
}

impl<'a> Retry<'a> {
    fn new(timing: &'a EventTiming) -> Self {
        Self { timing, next: timing.retry }
    }

    fn restart(&mut self) {
        self.next = self.timing.retry;
    }

    /// The pause before the next try: about twice the last one. Several hosts do not come at once.
    fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.timing.retry_at_most);
        let random = getrandom::u32().unwrap_or_default() % 256;
        pause * (896 + random) / 1024
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
