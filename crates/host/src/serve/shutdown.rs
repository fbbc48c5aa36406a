//! The signal that the host stops.

use tokio_util::sync::CancellationToken;

/// Tells everything that would go on for ever, event streams above all, that the host stops.
///
/// Clones are the same signal. Once given it stays given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shutdown(CancellationToken);

impl Shutdown {
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
