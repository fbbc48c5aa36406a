//! The file system of the machine.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::{
    fs::{CWD, FlockOperation, OFlags, RenameFlags},
    io::Errno,
};

use super::{DirEntry, EntryKind, File, FileStat, Fs, OpenMode};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsFs;

impl Fs for OsFs {
    fn stat(&self, path: &Path) -> io::Result<FileStat> {
        fs::metadata(path).map(|metadata| file_stat(&metadata))
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        fs::read_dir(path)?
            .map(|entry| {
                let entry = entry?;
                Ok(DirEntry { name: entry.file_name(), kind: entry_kind(entry.file_type()?) })
            })
            .collect()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags(OFlags::DIRECTORY))
            .open(path)?
            .sync_all()
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let mut options = fs::OpenOptions::new();
        match mode {
            OpenMode::Read => options.read(true),
            OpenMode::Append => options.read(true).append(true),
            OpenMode::CreateNew => options.read(true).append(true).create_new(true).mode(0o600),
            OpenMode::Lock => options.write(true).create(true).truncate(false).mode(0o600),
        };
        let file = options.custom_flags(flags(OFlags::NOCTTY)).open(path).map_err(|error| {
            // A FIFO that nobody reads, a socket, or a device that is not there.
            if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) {
                not_regular()
            } else {
                error
            }
        })?;
        if !file.metadata()?.is_file() {
            return Err(not_regular());
        }
        Ok(Box::new(OsFile(file)))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
    }

    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn is_locked(&self, path: &Path) -> io::Result<Option<bool>> {
        let file = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(false)),
            file => file?,
        };
        // Elsewhere than on Linux, and in some containers, there is no such list.
        let Ok(locks) = fs::read_to_string("/proc/locks") else { return Ok(None) };
        Ok(Some(locks.lines().any(|line| is_lock_on(line, &file))))
    }
}

/// Whether a line such as `1: FLOCK  ADVISORY  WRITE 708 fe:00:13107 0 EOF` is about this file.
fn is_lock_on(line: &str, file: &fs::Metadata) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let (Some("FLOCK"), Some(_), Some("WRITE"), Some(_), Some(place)) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    let mut parts = place.split(':');
    let (Some(major), Some(minor), Some(inode)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
    let (of_major, of_minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    // Where several file systems share a device that does not exist, the numbers differ from one
    // view to the other.
    let is_device = number(major) == Some(of_major) && number(minor) == Some(of_minor);
    (is_device || of_major == 0) && inode.parse() == Ok(file.ino())
}

#[derive(Debug)]
struct OsFile(fs::File);

impl File for OsFile {
    fn stat(&self) -> io::Result<FileStat> {
        self.0.metadata().map(|metadata| file_stat(&metadata))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        retry(|| self.0.read_at(buffer, offset))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        retry(|| io::Write::write(&mut &self.0, bytes))
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match rustix::fs::flock(&self.0, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(rustix::fs::flock(&self.0, FlockOperation::Unlock)?)
    }
}

/// Flags to open with. Opening a FIFO waits for its other end unless told not to; a regular file
/// does not care.
fn flags(more: OFlags) -> i32 {
    (OFlags::NONBLOCK | more).bits().cast_signed()
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Repeats a call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn entry_kind(file_type: fs::FileType) -> EntryKind {
    if file_type.is_dir() {
        EntryKind::Dir
    } else if file_type.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    }
}

fn file_stat(metadata: &fs::Metadata) -> FileStat {
    let nanoseconds =
        |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    FileStat {
        kind: entry_kind(metadata.file_type()),
        dev: metadata.dev(),
        ino: metadata.ino(),
        size: metadata.size(),
        mode: metadata.mode() & 0o7777,
        mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}
