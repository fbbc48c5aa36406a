//! Reads that are under way, shared by all who ask for the same.
//!
//! When a session is opened in several windows, or a client asks again before it is answered, the
//! same page is wanted several times at once. It is read once: who comes later waits for the read
//! that is under way. Nothing is kept when it is done. A read belongs to those who wait for it: any
//! of them may leave, and when the last one has left it is dropped, the upstream's connection with
//! it.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, WeakShared},
};

/// The reads under way that end in a `T`, by what is read.
pub(crate) struct Flights<T: Clone>(Mutex<HashMap<String, WeakShared<BoxFuture<'static, T>>>>);

impl<T: Clone> Default for Flights<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Flights<T> {
    /// What the read under `key` ends in: of the one that is under way, else of the one that is
    /// started.
    pub(crate) async fn join<F>(&self, key: String, start: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let flight = {
            let mut under_way = self.under_way();
            let known = under_way.get(&key).and_then(WeakShared::upgrade);
            known.filter(|flight| flight.peek().is_none()).unwrap_or_else(|| {
                // What was left or is done has no one to take it off the list.
                under_way.retain(|_, flight| flight.upgrade().is_some());
                let flight = start().boxed().shared();
                under_way.extend(flight.downgrade().map(|weak| (key, weak)));
                flight
            })
        };
        flight.await
    }

    /// Nothing can panic while this is locked; a poisoned lock would be as good as any.
    fn under_way(&self) -> MutexGuard<'_, HashMap<String, WeakShared<BoxFuture<'static, T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> fmt::Debug for Flights<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flights").field("listed", &self.under_way().len()).finish()
    }
}

#[cfg(test)]
#[path = "flights_tests.rs"]
mod tests;
