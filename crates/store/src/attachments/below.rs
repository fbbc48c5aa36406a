//! Files below a directory, and nowhere else.

use std::{fs::File, io, path::Path};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

/// Opens the regular file at this path below `directory`, one name after the other, without
/// following a link; `None` when there is none. The directory itself may be reached through links.
pub(super) fn open(directory: &Path, names: &[&str]) -> io::Result<Option<File>> {
    let Some((name, folders)) = names.split_last() else { return Ok(None) };
    let as_folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let below = as_folder | OFlags::NOFOLLOW;
    // A pipe that nobody writes to must not keep us waiting.
    let as_file = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(CWD, directory, as_folder, Mode::empty()).and_then(|root| {
        let folder = folders
            .iter()
            .try_fold(root, |above, folder| openat(above, *folder, below, Mode::empty()))?;
        openat(folder, *name, as_file, Mode::empty())
    });
    match opened {
        Ok(file) => {
            let file = File::from(file);
            Ok(file.metadata()?.is_file().then_some(file))
        }
        // Not there, a link, or a name that no file can have.
        Err(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::MLINK
            | Errno::NXIO
            | Errno::NAMETOOLONG
            | Errno::INVAL,
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
