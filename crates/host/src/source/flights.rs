//! Reads that are under way, shared by all who ask for the same.
//!
//! When a session is opened in several windows, or a client asks again before it is answered, the
//! same page is wanted several times at once. It is read once: who comes later waits for the read
//! that is under way. Nothing is kept when it is done. A read belongs to those who wait for it: any
//! of them may leave, and when the last one has left it is dropped, the upstream's connection with
//! it.
//!
//! A read that began earlier tells of an earlier state. For the first read of a request that is a
//! matter of moments; but one that follows another must not fall back behind it, or the newest row
//! of a session might seem to be older than one already sent. So beginnings and ends are counted,
//! and a read is shared only by those whose own last read had ended when it began.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared, WeakShared},
};

/// A moment, told apart from all others by its place in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// The reads under way that end in a `T`, by what is read.
pub(crate) struct Flights<T: Clone> {
    moments: Arc<AtomicU64>,
    under_way: Mutex<HashMap<String, Flight<T>>>,
}

/// What a read ends in, and when.
type End<T> = (T, Moment);

struct Flight<T: Clone> {
    began: Moment,
    read: WeakShared<BoxFuture<'static, End<T>>>,
}

impl<T: Clone> Flight<T> {
    /// The read, if someone waits for it.
    fn read(&self) -> Option<Shared<BoxFuture<'static, End<T>>>> {
        self.read.upgrade().filter(|read| read.peek().is_none())
    }
}

impl<T: Clone> Default for Flights<T> {
    fn default() -> Self {
        Self { moments: Arc::default(), under_way: Mutex::default() }
    }
}

impl<T: Clone + Send + 'static> Flights<T> {
    /// What the read under `key` ends in, and when: of one that is under way and has begun after
    /// `floor`, else of the one that is started.
    pub(crate) async fn join<F>(
        &self,
        key: String,
        floor: Moment,
        start: impl FnOnce() -> F,
    ) -> (T, Moment)
    where
        F: Future<Output = T> + Send + 'static,
    {
        let read = {
            let mut under_way = self.under_way();
            let known = under_way.get(&key).filter(|flight| flight.began >= floor);
            known.and_then(Flight::read).unwrap_or_else(|| {
                // What was left or is done has no one to take it off the list.
                under_way.retain(|_, flight| flight.read().is_some());
                let began = next(&self.moments);
                let (moments, read) = (Arc::clone(&self.moments), start());
                let read = async move { (read.await, next(&moments)) }.boxed().shared();
                let flight = read.downgrade().map(|read| Flight { began, read });
                under_way.extend(flight.map(|flight| (key, flight)));
                read
            })
        };
        read.await
    }
}

fn next(moments: &AtomicU64) -> Moment {
    Moment(moments.fetch_add(1, Ordering::SeqCst) + 1)
}

impl<T: Clone> Flights<T> {
    /// Nothing can panic while this is locked; a poisoned lock would be as good as any.
    fn under_way(&self) -> MutexGuard<'_, HashMap<String, Flight<T>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
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
