//! Reading a long log a piece at a time.

use crate::{
    error::ReadError,
    seam::{Cancel, EventRange, SessionHandle},
};
use turnkeep_log::{Event, Seq};

/// How many events are read first.
const FIRST: u64 = 1024;

/// How many are read at a time at least, and at most. What a writer stored at once is unpacked as a
/// whole for each piece of it, so that small pieces are dear.
const FEWEST: u64 = 16;
const MOST: u64 = 262_144;

/// How many bytes of text a piece should have: pieces grow while they have less, and shrink when
/// they have more.
const TEXT_BYTES: std::ops::RangeInclusive<usize> = 1 << 20..=4 << 20;

/// Reads a range of events in pieces of a few megabytes, however long the log is.
///
/// At the end of the log a piece is empty; asking again later goes on from there, so that a log can
/// be followed.
///
/// ```
/// use turnkeep_log::{EventDraft, Seq, SessionHeader, SessionId, json::JsonText};
/// use turnkeep_store::{Cancel, EventBatches, EventRange, SessionStore};
/// # use turnkeep_store::memory::{Disk, MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (store, never) = (MemoryStore::new(&Disk::new()), Cancel::never());
/// # let id = SessionId::new("session-1").ok_or("an id is not empty")?;
/// # let handle = store.create(SessionHeader::new(id, 5), &never).await?;
/// # let data = JsonText::parse(&r#"{"turn":1}"#.into())?;
/// # handle.append(vec![EventDraft::new("turn/start", &data).complete(Seq(0), 5)?], &never).await?;
/// let mut batches = EventBatches::new(EventRange::ALL);
/// let mut count = 0;
/// loop {
///     let events = batches.next(&*handle, &never).await?;
///     if events.is_empty() {
///         break;
///     }
///     count += events.len();
/// }
/// assert_eq!((count, batches.position()), (1, Seq(1)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EventBatches {
    next: u64,
    left: Option<u64>,
    size: u64,
}

impl EventBatches {
    /// Reads these events.
    #[must_use]
    pub fn new(range: EventRange) -> Self {
        Self { next: range.offset, left: range.length, size: FIRST }
    }

    /// The event that comes next.
    #[must_use]
    pub fn position(&self) -> Seq {
        Seq(self.next)
    }

    /// Whether as many events were read as there are in the range.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.left == Some(0)
    }

    /// The next events; none when the range or the log ends here.
    ///
    /// # Errors
    ///
    /// Those of [`SessionHandle::read`]. The same events may be asked for again.
    pub async fn next(
        &mut self,
        handle: &dyn SessionHandle,
        cancel: &Cancel,
    ) -> Result<Vec<Event>, ReadError> {
        if self.is_done() {
            return Ok(Vec::new());
        }
        let wanted = self.left.map_or(self.size, |left| left.min(self.size));
        let range = EventRange { offset: self.next, length: Some(wanted) };
        let events = handle.read(range, cancel).await?;
        let count = events.len() as u64;
        self.next += count;
        self.left = self.left.map(|left| left.saturating_sub(count));
        let bytes: usize = events.iter().map(|event| event.text().len()).sum();
        if bytes > *TEXT_BYTES.end() {
            self.size = (self.size / 2).max(FEWEST);
        } else if count == self.size && bytes < *TEXT_BYTES.start() {
            self.size = (self.size * 2).min(MOST);
        }
        Ok(events)
    }
}

#[cfg(test)]
#[path = "batches_tests.rs"]
mod tests;
