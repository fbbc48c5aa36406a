//! Making the log of a new session.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    path::Path,
};

use turnkeep_log::SessionHeader;

use super::{
    discover,
    failure::{WriteFailure, io_failure},
    frames::encode_frame,
    fs::{File, FileStat, Fs, OpenMode},
    layout::{Encoding, SessionDir},
    lock::Lock,
    open_log::write_all,
    root::Root,
    seal::{Ending, Seal},
};
use crate::error::{AlreadyExists, AlreadyOwned, Poisoned};

/// How often a directory is made that is moved away before it is locked.
const ATTEMPTS: usize = 3;

/// A log that was just made.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) dir: SessionDir,
    pub(crate) file: Box<dyn File>,
    pub(crate) stat: FileStat,
    pub(crate) ending: Ending,
    /// Where the records begin.
    pub(crate) records: u64,
}

/// Stores a new session, with its first batch of records if there is one.
///
/// The log is written under a temporary name, synced, and then linked to its own: it appears whole
/// or not at all, and never in place of another. The lock is taken first and stays in `lock` even
/// if what follows fails, so that a second attempt needs no luck.
pub(crate) fn materialize(
    root: &Root,
    header: &SessionHeader,
    records: Option<&str>,
    lock: &mut Option<Lock>,
) -> Result<Made, WriteFailure> {
    let id = &header.id;
    let dir = root.layout.session_dir(header);
    discover::refuse_mixture(root, id)?;
    if lock.is_none() {
        *lock = Some(make_and_lock(root, header, &dir)?);
    } else {
        make_dir(root, header, &dir)?;
    }
    if discover::find(root, id)?.is_some() {
        return Err(exists(header));
    }

    let path = dir.log(root.encoding);
    let failed = |source| io_failure(id, "make", &path, source);
    let (bytes, records) = encode_log(root.encoding, header, records).map_err(failed)?;
    let file = publish(&*root.fs, root.encoding, &dir, &bytes).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            exists(header)
        } else {
            failed(error).into()
        }
    })?;
    let ending = Ending::clean(Seal::of_written(root.encoding, 0, &bytes));
    root.fs
        .sync_dir(dir.path())
        .and_then(|()| file.stat())
        .map(|stat| Made { dir, file, stat, ending, records })
        .map_err(|error| {
            let cause = format!("its directory could not be synced: {error}");
            WriteFailure::Poisoned(Poisoned { id: id.clone(), cause })
        })
}

fn make_dir(root: &Root, header: &SessionHeader, dir: &SessionDir) -> Result<(), WriteFailure> {
    root.make_session_dir(dir.path())
        .map_err(|source| io_failure(&header.id, "make the directory", dir.path(), source).into())
}

/// Makes the session's directory and locks it.
fn make_and_lock(
    root: &Root,
    header: &SessionHeader,
    dir: &SessionDir,
) -> Result<Lock, WriteFailure> {
    let mut attempts = ATTEMPTS;
    loop {
        make_dir(root, header, dir)?;
        attempts -= 1;
        match Lock::take(&*root.fs, &dir.lock()) {
            Ok(taken) => return taken.ok_or_else(|| owned(header)),
            // It was of a session that was there before, and that has just been deleted.
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts > 0 => {}
            Err(source) => return Err(io_failure(&header.id, "lock", &dir.lock(), source).into()),
        }
    }
}

fn exists(header: &SessionHeader) -> WriteFailure {
    WriteFailure::AlreadyExists(AlreadyExists { id: header.id.clone() })
}

fn owned(header: &SessionHeader) -> WriteFailure {
    WriteFailure::AlreadyOwned(AlreadyOwned { id: header.id.clone() })
}

/// The bytes of a log, and where in them the records begin.
fn encode_log(
    encoding: Encoding,
    header: &SessionHeader,
    records: Option<&str>,
) -> io::Result<(Vec<u8>, u64)> {
    let header = header.to_line() + "\n";
    let records = records.unwrap_or_default();
    match encoding {
        Encoding::None => {
            let start = header.len() as u64;
            Ok(((header + records).into_bytes(), start))
        }
        Encoding::Zstd => {
            let mut bytes = encode_frame(&header)?;
            let start = bytes.len() as u64;
            if !records.is_empty() {
                bytes.extend(encode_frame(records)?);
            }
            Ok((bytes, start))
        }
    }
}

/// Puts a synced file of these bytes where the log belongs. Its name is not synced yet.
fn publish(
    fs: &dyn Fs,
    encoding: Encoding,
    dir: &SessionDir,
    bytes: &[u8],
) -> io::Result<Box<dyn File>> {
    let path = dir.log(encoding);
    let temporary = dir.temporary(encoding, RandomState::new().hash_one(()));
    let file = create(fs, &temporary, bytes)?;
    let named = match fs.link(&temporary, &path) {
        Err(error) if is_unsupported(&error) => match fs.rename_new(&temporary, &path) {
            Err(error) if is_unsupported(&error) => {
                let _ = fs.unlink(&temporary);
                // Not at once, but exclusively, and under the lock.
                return create(fs, &path, bytes);
            }
            renamed => return renamed.map(|()| file).inspect_err(|_| drop(fs.unlink(&temporary))),
        },
        linked => linked,
    };
    // Where this fails, a file is left over that no reader looks at.
    let _ = fs.unlink(&temporary);
    named.map(|()| file)
}

/// Creates a file of these bytes and syncs it; removes it again where that fails.
fn create(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<Box<dyn File>> {
    let file = fs.open(path, OpenMode::CreateNew)?;
    let written = write_all(&*file, bytes).map_err(|torn| torn.source);
    match written.and_then(|_| file.sync_all()) {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = fs.unlink(path);
            Err(error)
        }
    }
}

/// Whether a file system says that it cannot do something at all. Some refuse it as forbidden,
/// some as invalid.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Unsupported
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::TooManyLinks
    )
}
