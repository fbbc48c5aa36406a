//! The file system as one process has it.

use std::{
    ffi::OsString,
    fmt, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use turnkeep_store::jsonl::fs::{DirEntry, File, FileStat, Fs, OpenMode};

use super::{
    bytes::{Entries, FileBytes},
    disk::{Content, Course, FOREIGN, Lie, Names, Op, State, gone, is_log, name},
    tally::Met,
};

/// The file system as one process has it.
#[derive(Clone)]
pub struct SimFs {
    state: Arc<Mutex<State>>,
    process: u64,
}

impl fmt::Debug for SimFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimFs({})", self.process)
    }
}

impl SimFs {
    pub(super) fn new(state: Arc<Mutex<State>>, process: u64) -> Self {
        Self { state, process }
    }

    /// The state, once it is known how the operation goes.
    fn enter(&self, op: Op, node: Option<usize>) -> io::Result<(MutexGuard<'_, State>, Course)> {
        let mut state = self.state.lock().unwrap();
        if let Some(stop) = state.ends_now(self.process, op) {
            state.steps += 1;
            state.give_up(stop);
            return Err(gone());
        }
        let course = state.enter(self.process, op, node)?;
        Ok((state, course))
    }
}

impl Fs for SimFs {
    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        let (state, _) = self.enter(Op::Stat, None)?;
        state.find(path).map(|node| state.stat(node))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let (mut state, _) = self.enter(Op::ReadDir, None)?;
        let entries = state.entries(path)?.cache().clone();
        let entry =
            |(name, node): (OsString, usize)| DirEntry { name, kind: state.stat(node).kind };
        Ok(entries.into_iter().map(entry).collect())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.enter(Op::CreateDir, None)?;
        state.put(path, Content::Dir(Entries::default())).map(drop)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.enter(Op::SyncDir, None)?;
        if state.lie == Some(Lie::Dir) {
            return state.entries(path).map(drop);
        }
        state.sync_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let (mut state, _) = self.enter(Op::Open, None)?;
        let node = match (state.find(path), mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(node), _) => node,
            (Err(_), OpenMode::CreateNew | OpenMode::Lock) => {
                state.put(path, Content::File(FileBytes::default()))?
            }
            (Err(error), _) => return Err(error),
        };
        state.opened += 1;
        let handle = state.opened;
        Ok(Box::new(SimFile { fs: self.clone(), node, handle, is_log: is_log(path) }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut state, _) = self.enter(Op::Name, None)?;
        if state.names != Names::Links {
            state.tally.note(Met::NoLinks);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let node = state.find(from)?;
        if state.find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.entries(to.parent().unwrap())?.add(name(to), node);
        state.touch(node);
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut state, _) = self.enter(Op::Name, None)?;
        if state.names == Names::Neither {
            state.tally.note(Met::NoRenames);
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let node = state.find(from)?;
        if state.find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        assert_eq!(from.parent(), to.parent());
        state.entries(to.parent().unwrap())?.rename(name(from), name(to));
        state.touch(node);
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.enter(Op::Name, None)?;
        let node = state.find(path)?;
        state.entries(path.parent().unwrap())?.remove(name(path));
        state.touch(node);
        Ok(())
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (mut state, _) = self.enter(Op::Name, None)?;
        state.move_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let (mut state, _) = self.enter(Op::Name, None)?;
        if !state.entries(path)?.cache().is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.entries(path.parent().unwrap())?.remove(name(path));
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    node: usize,
    handle: u64,
    is_log: bool,
}

impl SimFile {
    fn sync(&self, lie: Lie) -> io::Result<()> {
        let entered = self.fs.enter(Op::Sync, Some(self.node));
        match entered {
            Ok((mut state, _)) => {
                if state.lie != Some(lie) {
                    state.file(self.node).sync();
                }
                Ok(())
            }
            Err(error) => {
                let mut state = self.fs.state.lock().unwrap();
                if state.process == self.fs.process {
                    state.log_syncs_failed += u64::from(self.is_log);
                    let State { nodes, random, tally, .. } = &mut *state;
                    if let Content::File(file) = &mut nodes[self.node].content {
                        file.sync_fails(self.handle, random, tally);
                    }
                }
                Err(error)
            }
        }
    }
}

impl File for SimFile {
    fn stat(&self) -> io::Result<FileStat> {
        let (state, _) = self.fs.enter(Op::Stat, Some(self.node))?;
        Ok(state.stat(self.node))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut state, course) = self.fs.enter(Op::ReadAt, Some(self.node))?;
        let most = match course {
            Course::Part if !buffer.is_empty() => 1 + state.random.below(buffer.len()),
            _ => buffer.len(),
        };
        let bytes = state.file(self.node).cache();
        let bytes = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let count = bytes.len().min(most);
        buffer[..count].copy_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        {
            let mut state = self.fs.state.lock().unwrap();
            if self.is_log
                && let Some(rival) = state.rival.take()
            {
                state.file(self.node).append(&rival, FOREIGN);
                state.file(self.node).sync();
            }
            // The last write of a process may come half way.
            if state.ends_now(self.fs.process, Op::Append).is_some() {
                let count = state.random.below(bytes.len() + 1);
                state.file(self.node).append(&bytes[..count], self.handle);
            }
        }
        let (mut state, course) = self.fs.enter(Op::Append, Some(self.node))?;
        let count = match course {
            Course::Whole => bytes.len(),
            Course::Part => 1 + state.random.below(bytes.len()),
        };
        state.file(self.node).append(&bytes[..count], self.handle);
        state.touch(self.node);
        Ok(count)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let (mut state, _) = self.fs.enter(Op::Truncate, Some(self.node))?;
        state.file(self.node).truncate(usize::try_from(length).unwrap());
        state.touch(self.node);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(Lie::Data)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(Lie::All)
    }

    fn try_lock(&self) -> io::Result<bool> {
        let (mut state, _) = self.fs.enter(Op::Lock, Some(self.node))?;
        let holder = *state.locks.entry(self.node).or_insert(self.handle);
        Ok(holder == self.handle)
    }

    fn unlock(&self) -> io::Result<()> {
        let mut state = self.fs.state.lock().unwrap();
        if state.locks.get(&self.node) == Some(&self.handle) {
            state.locks.remove(&self.node);
        }
        Ok(())
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.unlock().unwrap();
    }
}
