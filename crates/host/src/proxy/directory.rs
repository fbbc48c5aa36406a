//! Directories by their real paths.
//!
//! The upstream keeps sessions under the real path of their directory and compares paths as text.
//! A client that came to the same directory through a symbolic link would see none of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

/// How long a real path is believed: links change.
const FRESH: Duration = Duration::from_secs(30);

/// How many directories are remembered. Clients work in few.
const MAX_KNOWN: usize = 256;

/// Real paths of directories, looked up once for all who ask at a time.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    known: Mutex<HashMap<String, Arc<Known>>>,
}

#[derive(Debug)]
struct Known {
    since: Instant,
    /// `None` when there is no other path to send.
    real: OnceCell<Option<String>>,
}

impl Directories {
    /// The real path of a directory when it has another one than this; `None` when it has not, or
    /// when that cannot be found out. A relative one is left to the server, which starts from a
    /// directory of its own.
    pub(crate) async fn real(&self, directory: &str) -> Option<String> {
        if !directory.starts_with('/') {
            return None;
        }
        let known = self.known(directory);
        known.real.get_or_init(|| look_up(directory)).await.clone()
    }

    fn known(&self, directory: &str) -> Arc<Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(fresh) = known.get(directory)
            && now.duration_since(fresh.since) < FRESH
        {
            return Arc::clone(fresh);
        }
        if known.len() >= MAX_KNOWN {
            known.retain(|_, other| now.duration_since(other.since) < FRESH);
        }
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        let entry = Arc::new(Known { since: now, real: OnceCell::new() });
        known.insert(directory.to_owned(), Arc::clone(&entry));
        entry
    }
}

async fn look_up(directory: &str) -> Option<String> {
    let real = tokio::fs::canonicalize(directory).await.ok()?;
    let real = real.into_os_string().into_string().ok()?;
    (real != directory).then_some(real)
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
