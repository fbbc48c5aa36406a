//! What was read last, for those who go on to write.
//!
//! To resume a session is to read it and then to open it to write, which checks the whole log
//! again. If the file is still the very same by then, the second reading finds what the first one
//! found. Whether it is the same is asked under the session's lock.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use turnkeep_log::{SessionHeader, SessionId};

use super::{fs::FileStat, reader::Progress, seal::Ending, tail::Tail};
use crate::shell::locked;

/// How many logs are remembered.
const MOST: usize = 2;

/// A log that was read from its beginning to its end, and found to be in order.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) header: SessionHeader,
    pub(crate) progress: Arc<Progress>,
    pub(crate) tail: Option<Tail>,
    pub(crate) ending: Ending,
}

/// The logs that were checked last, one for each session, the latest at the back.
#[derive(Debug, Default)]
pub(crate) struct Memo(Mutex<VecDeque<Entry>>);

#[derive(Debug)]
struct Entry {
    id: SessionId,
    path: PathBuf,
    checked: Checked,
}

impl Memo {
    /// Remembers a log in place of the one that was remembered longest.
    pub(crate) fn remember(&self, id: &SessionId, path: &Path, checked: Checked) {
        let mut entries = locked(&self.0);
        entries.retain(|entry| entry.id != *id);
        if entries.len() >= MOST {
            entries.pop_front();
        }
        entries.push_back(Entry { id: id.clone(), path: path.to_owned(), checked });
    }

    /// Forgets a session that is being written.
    pub(crate) fn forget(&self, id: &SessionId) {
        locked(&self.0).retain(|entry| entry.id != *id);
    }

    /// Whether anything is remembered of a session, be it as it may.
    pub(crate) fn knows(&self, id: &SessionId) -> bool {
        locked(&self.0).iter().any(|entry| entry.id == *id)
    }

    /// What was found in a log, if its file, as it is now, is the one that was read then: the same
    /// inode, the same size, the same times.
    pub(crate) fn recall(&self, id: &SessionId, path: &Path, file: &FileStat) -> Option<Checked> {
        let entries = locked(&self.0);
        let entry = entries.iter().find(|entry| entry.id == *id && entry.path == path)?;
        (entry.checked.progress.file == *file).then(|| entry.checked.clone())
    }
}
