//! One reading for everyone who wants it at the same time.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    io,
    sync::{Arc, Mutex, Weak},
};

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    error::{Cancelled, ColdError, Corrupt, FormatUnsupported, IoFailure, NotFound},
    seam::Cancel,
    shell::locked,
};

/// Readings under way, by what is read.
#[derive(Debug)]
pub(super) struct Flights<K, T> {
    under_way: Arc<Mutex<HashMap<K, Weak<Flight<T>>>>>,
}

/// One reading. It is called off when nobody waits for it any more.
#[derive(Debug)]
struct Flight<T> {
    outcome: watch::Receiver<Option<Outcome<T>>>,
    _wanted: DropGuard,
}

type Outcome<T> = Result<T, Arc<ColdError>>;

impl<K, T> Default for Flights<K, T> {
    fn default() -> Self {
        Self { under_way: Arc::default() }
    }
}

impl<K, T> Flights<K, T>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Waits for the reading of `key` that is under way, or begins one.
    ///
    /// The reading is nobody's own: whoever began it may stop waiting, and the others still get
    /// what came of it. A failure is theirs as well, all of them, and is not kept.
    pub(super) async fn join<R, F>(&self, key: K, read: R, cancel: &Cancel) -> Result<T, ColdError>
    where
        R: FnOnce(Cancel) -> F,
        F: Future<Output = Result<T, ColdError>> + Send + 'static,
    {
        let flight = self.flight(key, read)?;
        let mut outcome = flight.outcome.clone();
        tokio::select! {
            biased;
            landed = outcome.wait_for(Option::is_some) => match landed.as_deref() {
                Ok(Some(Ok(read))) => Ok(read.clone()),
                Ok(Some(Err(failure))) => Err(same(failure)),
                Ok(None) | Err(_) => Err(lost(io::Error::other("the runtime ended before it was done"))),
            },
            () = cancel.cancelled() => Err(Cancelled { operation: "observe" }.into()),
        }
    }

    fn flight<R, F>(&self, key: K, read: R) -> Result<Arc<Flight<T>>, ColdError>
    where
        R: FnOnce(Cancel) -> F,
        F: Future<Output = Result<T, ColdError>> + Send + 'static,
    {
        let runtime = tokio::runtime::Handle::try_current();
        let runtime = runtime.map_err(|error| lost(io::Error::other(error)))?;
        let mut under_way = locked(&self.under_way);
        if let Some(flight) = under_way.get(&key).and_then(Weak::upgrade) {
            return Ok(flight);
        }
        let token = CancellationToken::new();
        let (announce, outcome) = watch::channel(None);
        let reading = read(token.clone().into());
        let flight = Arc::new(Flight { outcome, _wanted: token.drop_guard() });
        under_way.insert(key.clone(), Arc::downgrade(&flight));
        let landing = Landing {
            under_way: Arc::clone(&self.under_way),
            flight: Arc::downgrade(&flight),
            key,
        };
        runtime.spawn(async move {
            let outcome = reading.await.map_err(Arc::new);
            // Before anyone hears of it: who comes later than that begins a reading of their own.
            drop(landing);
            announce.send_replace(Some(outcome));
        });
        Ok(flight)
    }
}

/// Takes a reading off the list when it is over, however it ended.
struct Landing<K: Eq + Hash, T> {
    under_way: Arc<Mutex<HashMap<K, Weak<Flight<T>>>>>,
    flight: Weak<Flight<T>>,
    key: K,
}

impl<K: Eq + Hash, T> Drop for Landing<K, T> {
    fn drop(&mut self) {
        let mut under_way = locked(&self.under_way);
        if under_way.get(&self.key).is_some_and(|flight| flight.ptr_eq(&self.flight)) {
            under_way.remove(&self.key);
        }
    }
}

fn lost(source: io::Error) -> ColdError {
    IoFailure { context: "cannot read a session".to_owned(), source }.into()
}

/// The same failure, for one more who waited.
fn same(failure: &ColdError) -> ColdError {
    match failure {
        ColdError::NotFound(NotFound { id }) => NotFound { id: id.clone() }.into(),
        ColdError::FormatUnsupported(FormatUnsupported { id, message, path }) => {
            FormatUnsupported { id: id.clone(), message: message.clone(), path: path.clone() }
                .into()
        }
        ColdError::Corrupt(Corrupt { id, message, path }) => {
            Corrupt { id: id.clone(), message: message.clone(), path: path.clone() }.into()
        }
        ColdError::SourceConflict(conflict) => conflict.clone().into(),
        ColdError::Cancelled(Cancelled { operation }) => Cancelled { operation }.into(),
        ColdError::IoFailure(IoFailure { context, source }) => {
            let source = io::Error::new(source.kind(), source.to_string());
            IoFailure { context: context.clone(), source }.into()
        }
    }
}
