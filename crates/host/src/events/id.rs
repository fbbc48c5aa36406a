//! The numbers of events.

use std::fmt;

/// The id of an event: `<epoch>-<number>`.
///
/// An epoch is a stretch in which every event was seen: it ends when the process does, and when
/// the connection to the upstream is lost, since nothing tells what happened meanwhile. Within one,
/// ids count up without a gap; across two they say nothing about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId {
    pub(crate) epoch: Epoch,
    pub(crate) number: u64,
}

/// A stretch without a gap, named by a random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// One that differs from all others, that of an earlier process included.
    pub(crate) fn new() -> Self {
        let random = getrandom::u64().ok();
        // A system that has no random numbers still has a clock.
        Self(random.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |since| since.as_secs() << 30 | u64::from(since.subsec_nanos()))
        }))
    }
}

impl EventId {
    /// Reads an id as it is written; anything else is `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, number) = text.split_once('-')?;
        let id = Self {
            epoch: Epoch(u64::from_str_radix(epoch, 16).ok()?),
            number: number.parse().ok()?,
        };
        // There is one way to write each.
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.epoch.0, self.number)
    }
}

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
