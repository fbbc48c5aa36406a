//! How long things take, and may take.

use std::time::Duration;

/// The durations of the event streams. The defaults suit a server; tests want them shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTiming {
    /// How long the upstream may take to begin its stream, readiness included.
    pub connect: Duration,
    /// How long the upstream may say nothing before it is taken for dead. OpenCode says something
    /// every ten seconds.
    pub stall: Duration,
    /// The pause before a lost stream is asked for again; it doubles with each try in vain.
    pub retry: Duration,
    /// The longest such pause.
    pub retry_at_most: Duration,
    /// The pause after the upstream did not take our login, which trying does not mend.
    pub retry_login: Duration,
    /// How long a client is kept waiting for an upstream that refuses the stream. A starting
    /// OpenCode does so for up to five seconds.
    pub hold: Duration,
    /// How often a client over SSE hears from us.
    pub heartbeat: Duration,
    /// How often a client over a WebSocket does.
    pub socket_heartbeat: Duration,
    /// How long a client that was dropped as too slow may take to be told so.
    pub farewell: Duration,
    /// How long the store is left alone between two looks at what has changed in it.
    pub store_poll: Duration,
    /// How long the store is watched on after the last client has left, so that one that comes back
    /// has missed nothing.
    pub store_grace: Duration,
}

impl Default for EventTiming {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            stall: Duration::from_secs(20),
            retry: Duration::from_millis(250),
            retry_at_most: Duration::from_secs(8),
            retry_login: Duration::from_secs(15),
            hold: Duration::from_secs(5),
            heartbeat: Duration::from_secs(10),
            socket_heartbeat: Duration::from_secs(15),
            farewell: Duration::from_secs(5),
            store_poll: Duration::from_millis(250),
            store_grace: Duration::from_secs(60),
        }
    }
}
