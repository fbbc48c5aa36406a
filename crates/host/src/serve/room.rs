//! How many connections are served at a time, and how many of them one client may have.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::peer::network_of;

/// Places for connections.
#[derive(Debug)]
pub(super) struct Room {
    all: Arc<Semaphore>,
    limit: u32,
    share: u32,
    held: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// One place, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
    shared: Option<Share>,
}

#[derive(Debug)]
struct Share {
    held: Arc<Mutex<HashMap<IpAddr, u32>>>,
    network: IpAddr,
}

impl Room {
    /// `limit` places, of which a network gets `share`.
    pub(super) fn new(limit: u32, share: u32) -> Self {
        let all = Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(usize::MAX)));
        Self { all, limit, share, held: Arc::default() }
    }

    /// A place, as soon as there is one.
    pub(super) async fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Place { _permit: permit, shared: None })
    }

    /// Gives a place to a client; `None` when its network has had its share.
    pub(super) fn take(&self, mut place: Place, address: IpAddr) -> Option<Place> {
        let network = network_of(address);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(network).or_default();
        if *count >= self.share {
            return None;
        }
        *count += 1;
        place.shared = Some(Share { held: Arc::clone(&self.held), network });
        Some(place)
    }

    /// Ready once every place is free.
    pub(super) async fn is_empty(&self) {
        let _ = self.all.acquire_many(self.limit).await;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
#[path = "room_tests.rs"]
mod tests;
