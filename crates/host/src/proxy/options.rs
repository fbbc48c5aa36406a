//! How long requests on their way to the upstream may take.

use std::time::Duration;

/// How long requests that are handed on to the upstream may take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyOptions {
    /// How long a request waits for an upstream that is starting.
    pub hold: Duration,
    /// How long the answer to a GET or a HEAD may take to begin. Other requests have no such
    /// deadline: a prompt is answered when its whole turn is over. Nor has one that says that it
    /// wants events: an answer may begin with the first of them.
    pub head_deadline: Duration,
    /// How long a body that has begun may say nothing, in either direction, while the other side
    /// waits for it. A stream of events may: some of the server's are silent until something
    /// happens.
    pub idle: Duration,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            hold: Duration::from_secs(6),
            head_deadline: Duration::from_secs(240),
            idle: Duration::from_secs(240),
        }
    }
}
