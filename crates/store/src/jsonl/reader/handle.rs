//! What the reads of one handle know of each other.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use turnkeep_log::SessionId;

use super::{Progress, ReadRequest, read_log};
use crate::{
    jsonl::{failure::LogFailure, memo::Checked, root::Root, writer::Registry},
    seam::{Cancel, EventRange},
    shell::{ReadLog, Slice, locked},
};

/// Reads one log for one handle, from where earlier reads of it have been.
#[derive(Debug)]
pub(crate) struct JsonlReader {
    root: Arc<Root>,
    registry: Arc<Registry>,
    path: PathBuf,
    /// How far the log was read before.
    progress: Mutex<Option<Arc<Progress>>>,
}

impl JsonlReader {
    pub(crate) fn new(root: Arc<Root>, registry: Arc<Registry>, path: PathBuf) -> Self {
        Self { root, registry, path, progress: Mutex::new(None) }
    }

    /// The same, for a handle that has read the log already.
    pub(crate) fn primed(self, progress: Arc<Progress>) -> Self {
        Self { progress: Mutex::new(Some(progress)), ..self }
    }

    /// Keeps the further of two readings.
    fn advance(&self, progress: Arc<Progress>) {
        let mut known = locked(&self.progress);
        if known.as_ref().is_none_or(|known| {
            !known.file.same_file(&progress.file) || known.next <= progress.next
        }) {
            *known = Some(progress);
        }
    }
}

impl ReadLog for JsonlReader {
    fn read(
        &self,
        id: &SessionId,
        range: EventRange,
        cancel: &Cancel,
    ) -> Result<Option<Slice>, LogFailure> {
        // Before the log is looked at, so that what it has to hold by then is known.
        let acknowledged = self.registry.acknowledged(id);
        let known = locked(&self.progress).clone();
        let request = ReadRequest {
            id,
            path: &self.path,
            range,
            known: known.as_deref(),
            acknowledged,
            cancel,
            operation: "read",
        };
        let Some(read) = read_log(&self.root, &request)? else { return Ok(None) };
        // Behind what was known the log may go on, and this reading did not look.
        let end = read.went_to_end.then_some(read.progress.next.0);
        let progress = Arc::new(read.progress);
        self.advance(Arc::clone(&progress));
        // Where someone in this store writes, the file goes on behind what was read.
        if let (Some(header), Some(ending), None) = (read.header, read.ending, acknowledged) {
            let checked = Checked { header, progress, tail: read.tail, ending };
            self.root.memo.remember(id, &self.path, checked);
        }
        Ok(Some(Slice { events: read.events, end }))
    }
}
