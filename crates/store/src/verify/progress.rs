//! How far long work has come.

use std::{fmt, sync::Arc};

/// Is told how far long work has come, from whatever thread does it.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(u64, u64) + Send + Sync>>);

impl Progress {
    /// Nobody wants to know.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Calls `told` now and then, with how much is done and how much there is to do; in bytes of
    /// the log, or in events where it is no file.
    #[must_use]
    pub fn new(told: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    pub(crate) fn tell(&self, done: u64, of: u64) {
        if let Some(told) = &self.0 {
            told(done, of);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}
