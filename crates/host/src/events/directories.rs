//! Directories, compared by where they really are.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// How many directories are remembered.
const MAX_KNOWN: usize = 1024;

/// Where directories really are, so that the disk is not asked with every event.
#[derive(Debug, Default)]
pub(super) struct Directories {
    known: Mutex<HashMap<String, Arc<str>>>,
}

impl Directories {
    /// The path with symbolic links resolved; as it is, but for a slash at its end, when it names
    /// nothing here: the upstream may be on another machine.
    pub(super) fn real(&self, path: &str) -> Arc<str> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(real) = known().get(path) {
            return Arc::clone(real);
        }
        let path_here = Path::new(path);
        // A relative one would be relative to us.
        let resolved = path_here.is_absolute().then(|| path_here.canonicalize().ok()).flatten();
        let Some(real) = resolved.and_then(|real| real.into_os_string().into_string().ok()) else {
            // It may come into being.
            let bare = path.trim_end_matches('/');
            return Arc::from(if bare.is_empty() { path } else { bare });
        };
        let real: Arc<str> = Arc::from(real);
        let mut known = known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(path.to_owned(), Arc::clone(&real));
        real
    }
}

#[cfg(test)]
#[path = "directories_tests.rs"]
mod tests;
