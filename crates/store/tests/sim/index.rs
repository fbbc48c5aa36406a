//! The index that a crash left: it may be anything, and changes nothing that is read.

use std::{io, path::Path, sync::Arc};

use turnkeep_store::{
    EventRange,
    jsonl::{
        blocking::BlockingStore,
        fs::{DirEntry, File, FileStat, Fs, OpenMode},
    },
};

use super::{
    fs::SimFs,
    run::{Life, options},
    tally::Met,
};
use crate::support::{disk::INDEX, id};

impl Life {
    /// Reads what a crash left with the index and without.
    pub(super) fn compare_index(&mut self) {
        let fs = self.disk.process();
        let path = self.log_path().with_file_name(INDEX);
        let Some(left) = self.disk.bytes(&path) else { return };
        let with = BlockingStore::open_on(options(self.plan), Arc::new(fs.clone())).unwrap();
        let without = Arc::new(WithoutIndex(fs));
        let without = BlockingStore::open_on(options(self.plan), without).unwrap();
        let name = id(&self.name());
        let read = |store: &BlockingStore, range| {
            let read = store.read(&name, range);
            read.map_err(|error| (error.kind(), error.to_string()))
        };
        let all = read(&without, EventRange::ALL);
        let events = all.as_ref().map_or(0, Vec::len) as u64;
        let offsets = [0, 1, events / 2, events.saturating_sub(2), events, events + 1];
        for offset in offsets {
            for length in [None, Some(1), Some(3)] {
                let range = EventRange { offset, length };
                let (with, without) = (read(&with, range), read(&without, range));
                assert!(with == without, "the index changes what is read from {offset} on");
            }
        }
        let hints = with.stat(&name).ok().flatten().and_then(|stat| stat.hints);
        self.disk.note(if hints.is_some() { Met::IndexCurrent } else { Met::IndexOutdated });
        if let Some(hints) = hints {
            assert_eq!(hints.event_count, events, "an index of {} bytes", left.len());
        }
    }
}

/// A file system that hides the indexes.
#[derive(Clone, Debug)]
struct WithoutIndex(SimFs);

impl Fs for WithoutIndex {
    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        self.0.stat(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.0.read_dir(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        if path.file_name().is_some_and(|name| name == INDEX) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.0.open(path, mode)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.link(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename_new(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.0.unlink(path)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.remove_dir(path)
    }
}
