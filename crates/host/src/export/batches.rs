//! A log's events, some at a time.

use turnkeep_log::Event;
use turnkeep_store::{Cancel, EventRange, SessionHandle, error::ReadError};

/// How many events are read at first.
const FIRST: u64 = 16;

/// How many are read at most. It is events that can be asked for, not bytes: a log whose small
/// events are followed by large ones must not fill the memory with them.
const MOST: u64 = 4096;

/// How many bytes of events are about right. A batch of the log is unpacked as a whole for each
/// part of it that is read, so less would cost time.
const BYTES: u64 = 8 << 20;

/// Reads a log from its beginning.
#[derive(Debug)]
pub(super) struct Batches {
    handle: Box<dyn SessionHandle>,
    next: u64,
    count: u64,
    /// Where to stop, when that is before the end of the log.
    until: Option<u64>,
}

impl Batches {
    /// Of the whole log, or of so many events.
    pub(super) fn of(handle: Box<dyn SessionHandle>, until: Option<u64>) -> Self {
        Self { handle, next: 0, count: FIRST, until }
    }

    /// How many events were read.
    pub(super) fn events(&self) -> u64 {
        self.next
    }

    /// The events that come next; none at the end.
    pub(super) async fn next(&mut self, cancel: &Cancel) -> Result<Vec<Event>, ReadError> {
        let left = self.until.map_or(u64::MAX, |until| until.saturating_sub(self.next));
        let length = self.count.min(left);
        if length == 0 {
            return Ok(Vec::new());
        }
        let range = EventRange { offset: self.next, length: Some(length) };
        let events = self.handle.read(range, cancel).await?;
        self.next += events.len() as u64;
        self.count = adapted(length, bytes_of(&events));
        Ok(events)
    }
}

/// How many bytes these events take.
pub(super) fn bytes_of(events: &[Event]) -> u64 {
    events.iter().map(|event| event.text().len() as u64 + 1).sum()
}

/// How many events to read after so many took so many bytes.
fn adapted(count: u64, bytes: u64) -> u64 {
    let fitting = count.saturating_mul(BYTES) / bytes.max(1);
    fitting.clamp(1, count.saturating_mul(2).min(MOST))
}

#[cfg(test)]
mod tests {
    use super::{BYTES, MOST, adapted};

    #[test]
    fn the_count_follows_the_size_of_the_events() {
        assert_eq!(adapted(64, 64 * 100), 128, "small events: more, but not at once");
        assert_eq!(adapted(MOST, MOST * 100), MOST, "there is an end to it");
        assert_eq!(adapted(64, BYTES * 4), 16, "large ones: fewer");
        assert_eq!(adapted(64, u64::MAX), 1, "but one at least");
        assert_eq!(adapted(64, 0), 128);
    }
}
