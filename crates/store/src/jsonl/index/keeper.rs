//! The index of a log that is being written.

use std::{path::Path, sync::Arc};

use turnkeep_log::{Event, Seq, SessionId};

use super::{Basis, WORTH, is_due, reach, save};
use crate::{
    jsonl::{
        fs::FileStat,
        reader::{Mark, Marks, Progress},
        root::Root,
        seal::Ending,
    },
    outline::Note,
    seam::SessionHints,
};

/// What a writer knows of its log, to write the index from.
#[derive(Debug)]
pub(crate) struct Keeper {
    progress: Progress,
    /// Up to which byte there is an index, as far as this writer made it.
    saved: u64,
    /// Whether anything was added.
    changed: bool,
}

/// What a batch adds to the index.
#[derive(Debug)]
pub(crate) struct Entries {
    first: Seq,
    next: Seq,
    last_event_at: i64,
    notes: Vec<Note>,
}

impl Entries {
    /// Of consecutive events; `None` when there are none.
    pub(crate) fn of(events: &[Event]) -> Option<Self> {
        let (first, last) = (events.first()?, events.last()?);
        Some(Self {
            first: first.seq(),
            next: last.seq().plus(1),
            last_event_at: last.time(),
            notes: events.iter().filter_map(Note::of).collect(),
        })
    }
}

impl Keeper {
    /// For a log that was read to its end.
    pub(crate) fn of_read(progress: Progress) -> Self {
        let saved = progress.end;
        Self { progress, saved, changed: false }
    }

    /// For a log that was just made.
    pub(crate) fn of_new(file: FileStat) -> Self {
        let (marks, outline) = (Marks::default(), Arc::default());
        let progress = Progress { file, end: file.size, next: Seq(0), marks, outline };
        Self { progress, saved: 0, changed: true }
    }

    /// Notes a batch that was stored from this byte on, and where the log ends now.
    pub(crate) fn add(&mut self, offset: u64, entries: Entries, file: FileStat, end: u64) {
        let Entries { first, next, last_event_at, notes } = entries;
        let progress = &mut self.progress;
        progress.marks.add(Mark { offset, seq: first });
        let outline = Arc::make_mut(&mut progress.outline);
        for note in notes {
            outline.add(note);
        }
        outline.reach(next, last_event_at);
        (progress.file, progress.end, progress.next) = (file, end, next);
        self.changed = true;
    }

    /// What the log says in short.
    pub(crate) fn hints(&self) -> Arc<SessionHints> {
        Arc::new(self.progress.outline.hints())
    }

    /// Has the index written, if that is worth it by now, when whoever waits for the log has been
    /// answered. Without a runtime there is nobody to do that, and it is done here.
    pub(crate) fn save_later(
        &mut self,
        root: &Arc<Root>,
        id: &SessionId,
        log: &Path,
        ending: Ending,
    ) {
        if !self.changed || !is_due(self.progress.end, self.saved) {
            return;
        }
        self.saved = self.progress.end;
        let (root, id, log) = (Arc::clone(root), id.clone(), log.to_owned());
        let progress = self.progress.clone();
        let write = move || save(&root, &id, &log, &progress, None, Basis::Written(ending));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(write)),
            Err(_) => write(),
        }
    }

    /// Writes the index, the last time, unless it is there.
    pub(crate) fn finish(&self, root: &Root, id: &SessionId, log: &Path, ending: Ending) {
        let Progress { end, file, .. } = &self.progress;
        let basis = if self.changed {
            Basis::Written(ending)
        } else if *end >= WORTH && *end == file.size && reach(root, id, log) != *end {
            Basis::Read
        } else {
            return;
        };
        save(root, id, log, &self.progress, None, basis);
    }
}
