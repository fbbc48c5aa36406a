//! Every file operation the jsonl store makes.
//!
//! The store never calls the system itself: it goes through [`Fs`] and [`File`], so that a test can
//! put a disk underneath that loses, tears, reorders or refuses writes. [`OsFs`] is the real one.
//!
//! The operations are the system's own, one call each: a write may be short, a listing has no
//! order, nothing is durable before it is synced. What they add up to is the store's business.

mod os;

use std::{ffi::OsString, fmt, io, path::Path};

pub use os::OsFs;

/// A file system.
pub trait Fs: fmt::Debug + Send + Sync {
    /// What a path leads to, symbolic links followed.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) when it leads nowhere; what else the system says.
    fn stat(&self, path: &Path) -> io::Result<FileStat>;

    /// The entries of a directory but `.` and `..`, in no order.
    ///
    /// # Errors
    ///
    /// What the system says; also when it fails half way.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// Makes one directory, with mode 0700 under the process's mask.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when there is anything of that name.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable.
    ///
    /// # Errors
    ///
    /// What the system says. The state on disk is unknown then.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Opens a regular file, without waiting for anybody.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when it is something else, such as a FIFO;
    /// what else the system says.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>>;

    /// Gives a file a second name, unless something has that name.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists), or that the file system has no hard links.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file, unless something has the new name.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists), or that the system cannot do this.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file, in place of whatever file has the new name.
    ///
    /// Only for what may be missing: unless a file system does better, nothing has the new name for
    /// a moment.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self.unlink(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.rename_new(from, to)
    }

    /// Removes a file's name.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Renames a directory, in place of nothing or of an empty directory.
    ///
    /// # Errors
    ///
    /// [`DirectoryNotEmpty`](io::ErrorKind::DirectoryNotEmpty) or
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when a directory of the new name holds
    /// something; [`CrossesDevices`](io::ErrorKind::CrossesDevices) between file systems; what else
    /// the system says. Nothing has changed then.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Whether someone holds a file's `flock(2)` lock, told without taking it: whoever takes a lock
    /// only to look keeps others out meanwhile. `None` where the system does not tell.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn is_locked(&self, path: &Path) -> io::Result<Option<bool>> {
        let _ = path;
        Ok(None)
    }
}

/// An open file. Closed when dropped, and its lock released.
pub trait File: fmt::Debug + Send + Sync {
    /// What the file is, whatever its path leads to by now.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn stat(&self) -> io::Result<FileStat>;

    /// Reads at an offset, perhaps less than was asked for; 0 at the end.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at the end of the file, perhaps less than was asked for. Not durable yet.
    ///
    /// # Errors
    ///
    /// What the system says; nothing was written then.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file to a length. Not durable yet.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes the file's bytes and length durable.
    ///
    /// # Errors
    ///
    /// What the system says. The state on disk is unknown then.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes the file's bytes, length and times durable.
    ///
    /// # Errors
    ///
    /// What the system says. The state on disk is unknown then.
    fn sync_all(&self) -> io::Result<()>;

    /// Takes the file's `flock(2)` lock, exclusively and without waiting. `false` when someone
    /// else holds it.
    ///
    /// # Errors
    ///
    /// What the system says, other than that the lock is held.
    fn try_lock(&self) -> io::Result<bool>;

    /// Gives the lock back, also on behalf of every copy of this open file: a process that was just
    /// forked has one until it runs its own program.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn unlock(&self) -> io::Result<()>;
}

/// How to open a file. Files that are made get mode 0600 under the process's mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and to append.
    Append,
    /// A file that must not exist yet, to append.
    CreateNew,
    /// A file that may exist, to lock.
    Lock,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: OsString,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is, as far as the directory itself tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Dir,
    /// A regular file.
    File,
    /// A symbolic link, a device, or something the directory does not tell: [`Fs::stat`] does.
    Other,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// A directory or a file.
    pub kind: EntryKind,
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
    /// The length in bytes.
    pub size: u64,
    /// The permission bits.
    pub mode: u32,
    /// When the bytes last changed, in nanoseconds since the epoch.
    pub mtime_ns: i128,
    /// When the file last changed in any way, in nanoseconds since the epoch.
    pub ctime_ns: i128,
}

impl FileStat {
    /// Whether both are the same file, at whatever time.
    #[must_use]
    pub fn same_file(&self, other: &Self) -> bool {
        self.dev == other.dev && self.ino == other.ino
    }
}
