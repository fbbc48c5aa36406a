//! Copies of what is cut off a log.

use std::io;

use super::{
    fs::{File, Fs, OpenMode},
    layout::SessionDir,
    open_log::write_all,
};

/// How many cuts at one offset are kept apart.
const MOST: u32 = 1000;

/// Copies the bytes of a log from `start` to `end` to a file of their own beside it, durably.
pub(crate) fn keep(
    fs: &dyn Fs,
    dir: &SessionDir,
    log: &dyn File,
    start: u64,
    end: u64,
) -> io::Result<()> {
    let bytes = read(log, start, end)?;
    for attempt in 0..MOST {
        let path = dir.cut(start, attempt);
        let copy = match fs.open(&path, OpenMode::CreateNew) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            copy => copy?,
        };
        return write_all(&*copy, &bytes)
            .map_err(|torn| torn.source)
            .and_then(|_| copy.sync_all())
            .and_then(|()| fs.sync_dir(dir.path()))
            .inspect_err(|_| drop(fs.unlink(&path)));
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The bytes of a file from `start` to `end`.
pub(crate) fn read(file: &dyn File, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(end.saturating_sub(start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(start + read as u64, rest)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => read += count,
        }
    }
    Ok(bytes)
}
