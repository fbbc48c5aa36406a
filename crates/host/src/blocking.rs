//! Work that takes long, kept away from the threads that answer requests.

use std::{future::pending, panic::resume_unwind};

/// Looking through this many bytes takes about as long as a request may keep others waiting.
const LARGE_BYTES: usize = 256 << 10;

/// Does work over this many bytes: at once when they are few, else on a thread for such work.
///
/// Work that has begun ends even when nobody waits for it any more, so it must own what it uses.
pub(crate) async fn off_the_workers<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    if bytes <= LARGE_BYTES { work() } else { on_a_thread(work).await }
}

/// Does work that waits, or takes long in any case, on a thread for such work.
///
/// Work that has begun ends even when nobody waits for it any more, so it must own what it uses.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and whoever waits here with it.
            Err(_) => pending().await,
        },
    }
}
