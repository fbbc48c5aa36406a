//! The lock that keeps other processes from writing.

use std::{io, path::Path};

use super::fs::{File, Fs, OpenMode};

/// How often the lock file may be replaced under our hands before the session counts as owned.
const ATTEMPTS: usize = 3;

/// The lock on a session, held until it is dropped or the process ends.
///
/// It is the kernel's `flock(2)` on `session.lock`, the same that other builds take. It needs no
/// heartbeat and leaves nothing stale behind; a process that hangs keeps it until it is ended. The
/// file is never removed, since whoever locks a removed file locks nothing.
#[derive(Debug)]
pub(crate) struct Lock {
    file: Box<dyn File>,
}

impl Lock {
    /// Takes the lock at a path in an existing directory; `None` when someone else has it.
    pub(crate) fn take(fs: &dyn Fs, path: &Path) -> io::Result<Option<Self>> {
        for _ in 0..ATTEMPTS {
            let file = fs.open(path, OpenMode::Lock)?;
            if !file.try_lock()? {
                return Ok(None);
            }
            // Another file may have been put there between opening and locking; then someone else
            // can lock that one.
            match fs.stat(path) {
                Ok(there) if there.same_file(&file.stat()?) => {
                    return Ok(Some(Self { file }));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started right now has a
        // copy of it, and would keep the next writer out for as long as it has.
        let _ = self.file.unlock();
    }
}
