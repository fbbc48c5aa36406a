//! The signal that serving stops.

use axum::http::Extensions;
use tokio_util::sync::CancellationToken;

/// Tells everything that would go on for ever, event streams above all, that its listener stops. In
/// the extensions of every request: one host may serve several listeners, and one after the other.
///
/// Clones are the same signal. Once given it stays given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shutdown(CancellationToken);

impl Shutdown {
    /// The one of the listener that a request came in by.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Gives the signal.
    pub(crate) fn begin(&self) {
        self.0.cancel();
    }

    /// Ready once the signal was given. May be dropped and asked for again at any time.
    pub(crate) async fn begun(&self) {
        self.0.cancelled().await;
    }

    /// The same, for what outlives the borrow: a stream, a task.
    pub(crate) fn begun_owned(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.clone().cancelled_owned()
    }
}
