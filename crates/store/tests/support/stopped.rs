//! The file system of the machine, with a clock that stands still.

use std::{io, path::Path};

use turnkeep_store::jsonl::fs::{DirEntry, File, FileStat, Fs, OpenMode, OsFs};

/// A file system on which no change shows in the times of a file.
#[derive(Debug, Default)]
pub struct StoppedFs;

fn stopped(stat: FileStat) -> FileStat {
    FileStat { mtime_ns: 0, ctime_ns: 0, ..stat }
}

impl Fs for StoppedFs {
    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        OsFs.stat(path).map(stopped)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        OsFs.read_dir(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        OsFs.create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        OsFs.sync_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        Ok(Box::new(StoppedFile(OsFs.open(path, mode)?)))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFs.link(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFs.rename_new(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        OsFs.unlink(path)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsFs.rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        OsFs.remove_dir(path)
    }
}

#[derive(Debug)]
struct StoppedFile(Box<dyn File>);

impl File for StoppedFile {
    fn stat(&self) -> io::Result<FileStat> {
        self.0.stat().map(stopped)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.truncate(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}
