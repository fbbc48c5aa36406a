//! The time between the first event that waits and the storing of all that wait then.

use std::{
    future::pending,
    sync::{Arc, Weak},
};

use tokio::time::{Instant, sleep_until};

use super::Live;
use crate::shell::mutations::WriteLog;

impl<L: WriteLog> Live<L> {
    /// Stores what waits once the time of a window is over, which begins now.
    pub(super) fn open_window(self: &Arc<Self>, number: u64) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // There is no clock to wait for.
            self.window_over(number);
            return;
        };
        let end = Instant::now().checked_add(self.options.window);
        let window = OpenWindow { live: Arc::downgrade(self), number };
        let task = runtime.spawn(async move {
            match end {
                Some(end) => sleep_until(end).await,
                None => pending().await,
            }
            if let Some(live) = window.live.upgrade() {
                live.window_over(window.number);
            }
        });
        if !self.state().watch_window(number, task.abort_handle()) {
            task.abort();
        }
    }

    fn window_over(self: &Arc<Self>, number: u64) {
        let counted = self.state().end_window(number);
        if counted {
            self.store_soon();
        }
    }
}

/// Held by the task of a window.
struct OpenWindow<L: WriteLog> {
    live: Weak<Live<L>>,
    number: u64,
}

impl<L: WriteLog> Drop for OpenWindow<L> {
    /// When the runtime ended before: the next event opens a window on a runtime of its own.
    fn drop(&mut self) {
        if let Some(live) = self.live.upgrade() {
            live.state().end_window(self.number);
        }
    }
}
