//! What the reads of one handle know of each other.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use turnkeep_log::SessionId;

use super::{Progress, ReadRequest, read_log};
use crate::{
    jsonl::{
        discover::{Contents, newer_generation},
        failure::{LogFailure, Subject, io_failure},
        index,
        memo::Checked,
        root::Root,
        tail::Tail,
        writer::{Acknowledged, Registry},
    },
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
    /// Up to which byte there is an index, once that was looked up.
    indexed: OnceLock<AtomicU64>,
}

impl JsonlReader {
    pub(crate) fn new(root: Arc<Root>, registry: Arc<Registry>, path: PathBuf) -> Self {
        Self { root, registry, path, progress: Mutex::new(None), indexed: OnceLock::new() }
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

    /// How far the log was read before, by this handle or by whoever wrote its index. Who asks for
    /// the whole log wants it read.
    fn known(
        &self,
        id: &SessionId,
        range: EventRange,
        acknowledged: Option<&Acknowledged>,
    ) -> Option<Arc<Progress>> {
        let known = locked(&self.progress).clone();
        if known.is_some() || range == EventRange::ALL {
            return known;
        }
        let limit = acknowledged.map(|acknowledged| acknowledged.end);
        let known = Arc::new(index::known(&self.root, id, &self.path, limit)?);
        self.indexed.get_or_init(|| AtomicU64::new(known.end));
        *locked(&self.progress) = Some(Arc::clone(&known));
        Some(known)
    }

    /// Refuses a log that a newer build has left behind since this handle was opened: its events
    /// are no longer all there are, and nothing in them would say so.
    ///
    /// Looked at after the log, so that what was read was the session until then.
    fn refuse_predecessor(&self, id: &SessionId) -> Result<(), LogFailure> {
        let Some(dir) = self.path.parent() else { return Ok(()) };
        match Contents::of(&*self.root.fs, dir) {
            Ok(Contents { newer: Some((version, name)), .. }) => {
                let path = dir.join(name);
                Err(Subject { id, path: &path }.unsupported(newer_generation(id, version)))
            }
            Ok(_) => Ok(()),
            // It was deleted meanwhile, which the next read finds.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(io_failure(id, "look into", dir, source).into()),
        }
    }

    /// Leaves an index behind, if reading this far took long enough for the next reader to care.
    fn keep_index(&self, id: &SessionId, progress: &Progress, tail: Option<Tail>) {
        if !index::is_due(progress.end, 0) {
            return;
        }
        let indexed =
            self.indexed.get_or_init(|| AtomicU64::new(index::reach(&self.root, id, &self.path)));
        if index::is_due(progress.end, indexed.load(Ordering::Relaxed)) {
            let tail = tail.map(|tail| tail.kind);
            index::save(&self.root, id, &self.path, progress, tail, index::Basis::Read);
            // Also when it could not be written: trying each time would not help.
            indexed.store(progress.end, Ordering::Relaxed);
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
        let acknowledged = self.registry.acknowledged(id).map(|live| live.acknowledged);
        let known = self.known(id, range, acknowledged.as_ref());
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
        self.refuse_predecessor(id)?;
        // Behind what was known the log may go on, and this reading did not look.
        let end = read.went_to_end.then_some(read.progress.next.0);
        let progress = Arc::new(read.progress);
        if acknowledged.is_none() {
            // Who writes the log in this store writes its index, too, and the file goes on behind
            // what was read.
            if read.went_to_end {
                self.keep_index(id, &progress, read.tail);
            }
            if let (Some(header), Some(ending)) = (read.header, read.ending) {
                let progress = Arc::clone(&progress);
                let checked = Checked { header, progress, tail: read.tail, ending };
                self.root.memo.remember(id, &self.path, checked);
            }
        }
        self.advance(progress);
        Ok(Some(Slice { events: read.events, end }))
    }
}
