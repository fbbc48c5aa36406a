//! How long requests on their way to the upstream may take.

use std::time::Duration;

/// How long requests that are handed on to the upstream may take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// How long a request waits for an upstream that is starting.
    pub hold: Duration,
    /// How long the answer to a GET or a HEAD may take to begin. Other requests have no such
    /// deadline: a prompt is answered when its whole turn is over.
    pub head_deadline: Duration,
    /// How long a body that has begun may say nothing, in either direction, while the other side
    /// waits for it.
    pub idle: Duration,
    /// The same for a stream of events, which says something every ten seconds.
    pub stall: Duration,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(6),
            head_deadline: Duration::from_secs(240),
            idle: Duration::from_secs(240),
            stall: Duration::from_secs(20),
        }
    }
}
