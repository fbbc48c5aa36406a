//! Room for bodies of the upstream.
//!
//! A page is read whole before it is looked into, and one message may be hundreds of megabytes. How
//! much of that is in memory at a time, over all requests, is bounded here: a body is read only once
//! there is room for it, and the room is given back when the last one who uses the body drops it.
//! Until then the upstream's connection waits, and so does the client, within its deadline.
//!
//! Nobody who holds room waits for more: it is taken once for a body, as much as it can need.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Room is counted in units of this many bytes. A body of at most one unit needs none.
const UNIT_BYTES: usize = 64 << 10;

/// All the room there is.
#[derive(Debug)]
pub(super) struct Rooms {
    units: usize,
    free: Arc<Semaphore>,
}

/// Room for one body.
#[derive(Debug)]
pub(crate) struct Room(Option<OwnedSemaphorePermit>);

impl Rooms {
    /// Room for this many bytes, rounded down, but for no less than one unit.
    pub(super) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self { units, free: Arc::new(Semaphore::new(units)) }
    }

    /// The largest body that there can be room for.
    pub(super) fn largest(&self) -> usize {
        self.units * UNIT_BYTES
    }

    /// Waits for room for a body of this many bytes, which is at most the largest.
    pub(super) async fn take(&self, bytes: usize) -> Room {
        if bytes <= UNIT_BYTES {
            return Room(None);
        }
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES).min(self.units)).unwrap_or(u32::MAX);
        // It is never closed, which would be the one error.
        Room(Arc::clone(&self.free).acquire_many_owned(units).await.ok())
    }
}

impl Room {
    /// Gives back what the body turned out not to need.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.0 {
            drop(permit.split(permit.num_permits().saturating_sub(bytes.div_ceil(UNIT_BYTES))));
        }
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
