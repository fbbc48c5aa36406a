//! The file system of the machine, with faults where a test wants them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use turnkeep_store::jsonl::{
    Encoding, JsonlStore,
    fs::{DirEntry, File, FileStat, Fs, OpenMode, OsFs},
};

use super::{disk::Disk, store_session};

/// Parts of paths.
pub const LOG: &str = "session.jsonl";
pub const LOCK: &str = "session.lock";
pub const CUT: &str = "turnkeep.cut-";

/// A disk with a stored session `s` of three events, and a store on a faulty file system.
pub async fn stored(encoding: Encoding) -> (Disk, FaultyFs, JsonlStore) {
    let disk = Disk::new(encoding);
    store_session(&disk.store(), "s", 3).await;
    let faults = FaultyFs::default();
    let store = disk.store_on(Arc::new(faults.clone()));
    (disk, faults, store)
}

/// One kind of file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Stat,
    ReadDir,
    CreateDir,
    SyncDir,
    Open(OpenMode),
    Link,
    RenameNew,
    Replace,
    Unlink,
    RenameDir,
    RemoveDir,
    FileStat,
    ReadAt,
    Append,
    Truncate,
    SyncData,
    SyncAll,
    TryLock,
    Unlock,
}

/// What happens instead of an operation, or before it.
pub enum Effect {
    /// It fails.
    Fail(io::ErrorKind),
    /// A write stores this many bytes, and then says so.
    Short(usize),
    /// Something else is done first.
    Before(Box<dyn FnMut() + Send>),
}

struct Fault {
    op: Op,
    /// A part of the path.
    part: String,
    /// How many such operations pass before.
    skip: usize,
    /// How many are hit.
    times: usize,
    effect: Effect,
}

#[derive(Default)]
struct Script {
    faults: Vec<Fault>,
    log: Vec<(Op, PathBuf, u64)>,
}

/// A file system that does as it is told.
#[derive(Clone, Default)]
pub struct FaultyFs(Arc<Mutex<Script>>);

impl std::fmt::Debug for FaultyFs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FaultyFs")
    }
}

impl FaultyFs {
    /// Lets the next such operation fail.
    pub fn fail(&self, op: Op, part: &str, kind: io::ErrorKind) {
        self.inject(op, part, 0, 1, Effect::Fail(kind));
    }

    /// Does something before the next such operation.
    pub fn before(&self, op: Op, part: &str, act: impl FnMut() + Send + 'static) {
        self.inject(op, part, 0, 1, Effect::Before(Box::new(act)));
    }

    pub fn inject(&self, op: Op, part: &str, skip: usize, times: usize, effect: Effect) {
        let part = part.to_owned();
        self.0.lock().unwrap().faults.push(Fault { op, part, skip, times, effect });
    }

    /// Lets every write fail from now on, as on a full disk; or lets everything work again.
    pub fn set_full(&self, full: bool) {
        self.0.lock().unwrap().faults.clear();
        if full {
            let effect = Effect::Fail(io::ErrorKind::StorageFull);
            self.inject(Op::Append, "", 0, usize::MAX, effect);
        }
    }

    /// That everything that was injected has happened.
    pub fn assert_spent(&self) {
        let script = self.0.lock().unwrap();
        let left: Vec<_> = script.faults.iter().map(|fault| (fault.op, &fault.part)).collect();
        assert!(left.is_empty(), "never happened: {left:?}");
    }

    /// Whether everything that was injected has happened.
    pub fn is_spent(&self) -> bool {
        self.0.lock().unwrap().faults.is_empty()
    }

    /// Forgets what has been done so far.
    pub fn clear_log(&self) {
        self.0.lock().unwrap().log.clear();
    }

    /// What has been done, in order.
    pub fn log(&self) -> Vec<(Op, PathBuf)> {
        let script = self.0.lock().unwrap();
        script.log.iter().map(|(op, path, _)| (*op, path.clone())).collect()
    }

    /// What has been done to a path that has this part, in order.
    pub fn ops(&self, part: &str) -> Vec<Op> {
        let has_part = |path: &Path| path.to_str().unwrap().contains(part);
        self.log().into_iter().filter(|(_, path)| has_part(path)).map(|(op, _)| op).collect()
    }

    /// How many bytes have been read.
    pub fn bytes_read(&self) -> u64 {
        let script = self.0.lock().unwrap();
        script.log.iter().filter(|(op, ..)| *op == Op::ReadAt).map(|(_, _, bytes)| bytes).sum()
    }

    /// Notes an operation. `Some` when it is to fail or be short.
    fn enter(&self, op: Op, path: &Path) -> io::Result<Option<usize>> {
        let mut act = None;
        let mut short = None;
        let mut failure = None;
        {
            let mut script = self.0.lock().unwrap();
            script.log.push((op, path.to_owned(), 0));
            let matches =
                |fault: &Fault| fault.op == op && path.to_str().unwrap().contains(&fault.part);
            if let Some(at) = script.faults.iter().position(matches) {
                let fault = &mut script.faults[at];
                if fault.skip > 0 {
                    fault.skip -= 1;
                    return Ok(None);
                }
                fault.times -= 1;
                let spent = fault.times == 0;
                match &mut fault.effect {
                    Effect::Fail(kind) => failure = Some(io::Error::from(*kind)),
                    Effect::Short(bytes) => short = Some(*bytes),
                    // Taken out, so that what it does can use this file system.
                    Effect::Before(effect) => {
                        act = Some((at, std::mem::replace(effect, Box::new(|| {}))));
                    }
                }
                if spent {
                    script.faults.remove(at);
                    act = act.map(|(_, effect)| (usize::MAX, effect));
                }
            }
        }
        if let Some((at, mut effect)) = act {
            effect();
            if let Some(fault) = self.0.lock().unwrap().faults.get_mut(at) {
                fault.effect = Effect::Before(effect);
            }
        }
        failure.map_or(Ok(short), Err)
    }

    fn note_bytes(&self, bytes: usize) {
        if let Some(last) = self.0.lock().unwrap().log.last_mut() {
            last.2 = bytes as u64;
        }
    }
}

impl Fs for FaultyFs {
    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        self.enter(Op::Stat, path)?;
        OsFs.stat(path)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.enter(Op::ReadDir, path)?;
        OsFs.read_dir(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.enter(Op::CreateDir, path)?;
        OsFs.create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.enter(Op::SyncDir, path)?;
        OsFs.sync_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        self.enter(Op::Open(mode), path)?;
        let file = OsFs.open(path, mode)?;
        Ok(Box::new(FaultyFile { fs: self.clone(), path: path.to_owned(), file }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter(Op::Link, to)?;
        OsFs.link(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter(Op::RenameNew, to)?;
        OsFs.rename_new(from, to)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter(Op::Replace, to)?;
        OsFs.replace(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.enter(Op::Unlink, path)?;
        OsFs.unlink(path)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter(Op::RenameDir, to)?;
        OsFs.rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.enter(Op::RemoveDir, path)?;
        OsFs.remove_dir(path)
    }
}

#[derive(Debug)]
struct FaultyFile {
    fs: FaultyFs,
    path: PathBuf,
    file: Box<dyn File>,
}

impl File for FaultyFile {
    fn stat(&self) -> io::Result<FileStat> {
        self.fs.enter(Op::FileStat, &self.path)?;
        self.file.stat()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.fs.enter(Op::ReadAt, &self.path)?;
        let read = self.file.read_at(offset, buffer)?;
        self.fs.note_bytes(read);
        Ok(read)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let short = self.fs.enter(Op::Append, &self.path)?;
        self.file.append(&bytes[..short.unwrap_or(bytes.len()).min(bytes.len())])
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.fs.enter(Op::Truncate, &self.path)?;
        self.file.truncate(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fs.enter(Op::SyncData, &self.path)?;
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.fs.enter(Op::SyncAll, &self.path)?;
        self.file.sync_all()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.fs.enter(Op::TryLock, &self.path)?;
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.fs.enter(Op::Unlock, &self.path)?;
        self.file.unlock()
    }
}
