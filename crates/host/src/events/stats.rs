//! Numbers for whoever watches the host.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::{client::Client, event::Wire};

/// What a [`Hub`](super::Hub) has done since the process began, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubStats {
    /// Clients over SSE now.
    pub sse_clients: u64,
    /// Clients over WebSockets now.
    pub socket_clients: u64,
    /// Events published.
    pub events: u64,
    /// Bytes of events kept now, in all the forms they were sent in.
    pub replay_bytes: u64,
    /// Bytes of events that wait for clients now, over all clients. They share the events: this is
    /// no memory.
    pub queued_bytes: u64,
    /// How often a client was told that it may have missed events.
    pub resets: u64,
    /// Clients dropped as too slow.
    pub clients_too_slow: u64,
    /// How often the upstream's stream began.
    pub upstream_connects: u64,
    /// How often the upstream's stream was given up because nothing came any more.
    pub upstream_stalls: u64,
    /// Blocks of the upstream's stream that were too large, or no events.
    pub upstream_skipped: u64,
}

/// What is counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) events: Count,
    pub(super) resets: Count,
    pub(super) too_slow: Count,
    pub(super) connects: Count,
    pub(super) stalls: Count,
    pub(super) skipped: Count,
}

/// A number that goes up.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    pub(super) fn stats(&self, clients: &[Arc<Client>], held: usize, queued: u64) -> HubStats {
        let sse = clients.iter().filter(|client| client.form.wire == Wire::Sse).count() as u64;
        HubStats {
            sse_clients: sse,
            socket_clients: clients.len() as u64 - sse,
            events: self.events.now(),
            replay_bytes: held as u64,
            queued_bytes: queued,
            resets: self.resets.now(),
            clients_too_slow: self.too_slow.now(),
            upstream_connects: self.connects.now(),
            upstream_stalls: self.stalls.now(),
            upstream_skipped: self.skipped.now(),
        }
    }
}
