//! How much is buffered, and for how long.

use std::time::Duration;

/// How a store buffers the events that are [published](crate::SessionStore::publish) to it, for
/// each write handle on its own.
///
/// The defaults are what programs should use. Tests make the window shorter or the buffer smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// How long the first buffered event waits for others to be stored with it.
    pub window: Duration,
    /// How many events wait at most, not counting those that are being stored meanwhile. At this
    /// many they are stored without waiting for the window to end.
    pub max_events: usize,
    /// How many bytes their texts have at most. A single event may have more, and is then the only
    /// one that waits.
    pub max_bytes: usize,
}

impl Default for LiveOptions {
    /// 200 ms, 4,096 events, 16 MiB.
    fn default() -> Self {
        Self { window: Duration::from_millis(200), max_events: 4096, max_bytes: 16 << 20 }
    }
}
