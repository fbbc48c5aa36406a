//! Where a database is, who may get at it, and making a new one.

use std::{
    ffi::OsStr,
    fs,
    hash::{BuildHasher, RandomState},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf, absolute},
};

use rusqlite::{Connection, TransactionBehavior};
use turnkeep_log::SessionId;

use super::{
    database::{connect, set_up},
    fault::Fault,
    schema,
};
use crate::{
    jsonl::{
        fs::{Fs, OpenMode, OsFs},
        lock::Lock,
    },
    segment::encode_id,
};

/// Permission bits that let someone else in.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The sticky bit: a directory such as `/tmp`, which others must go on writing to.
const SHARED: u32 = 0o1000;

/// How much of an encoded id a lock file is named after, so that it fits a file name.
const LONGEST_LOCK: usize = 200;

/// Which file a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    dev: u64,
    ino: u64,
}

/// The database file and the directory of its locks.
#[derive(Debug)]
pub(super) struct Place {
    database: PathBuf,
    locks: PathBuf,
}

impl Place {
    /// Resolves a path, as far as there is anything. Two names of one file must lead to the same
    /// locks and the same log of SQLite's.
    pub(super) fn resolve(path: &Path) -> Result<Self, Fault> {
        let path = absolute(path)?;
        let name = path.file_name().map(OsStr::to_owned).ok_or_else(|| {
            Fault::Refused("it names no file; name one, or a place for one".to_owned())
        })?;
        let database = match fs::canonicalize(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match path.parent().map(fs::canonicalize) {
                    Some(Ok(parent)) => parent.join(name),
                    _ => path,
                }
            }
            found => found?,
        };
        let locks = with_suffix(&database, ".locks");
        Ok(Self { database, locks })
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    /// Looks at the file, which must be safe to use; `None` when it is not there.
    pub(super) fn look(&self) -> Result<Option<FileId>, Fault> {
        let file = match fs::metadata(&self.database) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let problem = if !file.is_file() {
            Some("it is not a file; name a file, or a place for one")
        } else if file.nlink() != 1 {
            Some("it has other names, under which SQLite would not find its log; remove them")
        } else if file.mode() & WRITABLE_BY_OTHERS != 0 {
            Some("others than its owner may write to it; run `chmod go-w` on it")
        } else if file.size() == 0 {
            Some("it is empty, and no database; remove it")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(Fault::Refused(problem.to_owned()));
        }
        self.database.parent().map_or(Ok(()), check_dir)?;
        Ok(Some(FileId { dev: file.dev(), ino: file.ino() }))
    }

    /// Makes the database if it is not there.
    ///
    /// It is made under another name and then renamed: it appears whole or not at all, and never
    /// in place of another.
    pub(super) fn make(&self) -> Result<(), Fault> {
        if self.look()?.is_some() {
            return Ok(());
        }
        let Some(parent) = self.database.parent() else { return Ok(()) };
        make_dir(parent)?;
        check_dir(parent)?;
        // SQLite would take it for the log of the new one.
        for suffix in ["-wal", "-journal"] {
            if fs::symlink_metadata(with_suffix(&self.database, suffix)).is_ok() {
                return Err(Fault::Refused(format!(
                    "a log ({suffix}) is left beside it, of a database that is gone; put the \
                     database back, or move the log away"
                )));
            }
        }
        let temporary =
            with_suffix(&self.database, &format!(".{:016x}.tmp", RandomState::new().hash_one(())));
        let made = fill(&temporary).and_then(|()| Ok(publish(&temporary, &self.database)?));
        for suffix in ["", "-journal", "-wal", "-shm"] {
            // All gone when all went well.
            let _ = fs::remove_file(with_suffix(&temporary, suffix));
        }
        match made {
            Err(Fault::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        Ok(OsFs.sync_dir(parent)?)
    }

    /// Takes the lock of a session; `None` when someone else has it.
    pub(super) fn lock(&self, id: &SessionId) -> Result<Option<Lock>, Fault> {
        make_dir(&self.locks)?;
        check_dir(&self.locks)?;
        Ok(Lock::take(&OsFs, &self.locks.join(lock_name(id)))?)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What the lock of a session is called. Names of long ids may coincide: such sessions have one
/// writer between them.
fn lock_name(id: &SessionId) -> String {
    let name = encode_id(id);
    match name.get(..LONGEST_LOCK) {
        Some(start) if name.len() > LONGEST_LOCK => {
            format!("{start}~~{:016x}", xxhash_rust::xxh64::xxh64(name.as_bytes(), 0))
        }
        _ => name,
    }
}

fn fill(path: &Path) -> Result<(), Fault> {
    // Not by SQLite, which would let the group read it.
    drop(OsFs.open(path, OpenMode::CreateNew)?);
    let mut connection: Connection = connect(path, true)?;
    let random = [(), ()].map(|()| RandomState::new().hash_one(()));
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    schema::make(&transaction, &format!("{:016x}{:016x}", random[0], random[1]))?;
    transaction.commit()?;
    set_up(&connection, std::time::Duration::ZERO)?;
    connection.close().map_err(|(_, error)| Fault::Sqlite(error))
}

fn publish(from: &Path, to: &Path) -> io::Result<()> {
    match OsFs.rename_new(from, to) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) =>
        {
            OsFs.link(from, to)
        }
        renamed => renamed,
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        looked => return looked.map(drop),
    }
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    match OsFs.create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }?;
    path.parent().map_or(Ok(()), |parent| OsFs.sync_dir(parent))
}

/// Whoever may write to a directory may put another database in place of ours.
fn check_dir(path: &Path) -> Result<(), Fault> {
    let mode = fs::metadata(path)?.mode();
    if mode & WRITABLE_BY_OTHERS == 0 {
        return Ok(());
    }
    if mode & SHARED != 0 {
        return Err(Fault::Refused(format!(
            "the directory {} is shared by everyone on this machine; keep the database in a \
             directory of your own",
            path.display()
        )));
    }
    Err(Fault::Refused(format!(
        "others than its owner may write to the directory {}; run `chmod go-w` on it, or use \
         another one",
        path.display()
    )))
}
