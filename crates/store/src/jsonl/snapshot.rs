//! What is known of a session from its header and its file.

use std::io;

use turnkeep_log::{SessionHeader, SessionId};

use super::{
    discover::check_place,
    failure::{LogFailure, Subject},
    fs::{FileStat, OpenMode},
    head::Head,
    layout::SessionDir,
    root::Root,
    writer::Registry,
};
use crate::seam::{Revision, SessionStat};

/// Reads the header of a log, and the state of its file; `None` when there is no log, or not a
/// whole header yet.
pub(crate) fn take(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    dir: &SessionDir,
) -> Result<Option<SessionStat>, LogFailure> {
    let Some((head, file)) = read_head(root, registry, id, dir)? else { return Ok(None) };
    let Some(header) = head.header()? else { return Ok(None) };
    check_place(root, &header, dir)?;
    Ok(Some(of(header, &file)))
}

/// Reads the head of a log, and the state of its file; `None` when there is no log.
pub(crate) fn read_head(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    dir: &SessionDir,
) -> Result<Option<(Head, FileStat)>, LogFailure> {
    let path = dir.log(root.encoding);
    let subject = Subject { id, path: &path };
    let file = match root.fs.open(&path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|source| subject.io("open", source))?,
    };
    // Taken before the file's own, so that what a writer acknowledges in between is not missed.
    let acknowledged = registry.acknowledged(id);
    let found = file.stat().map_err(|source| subject.io("look at", source))?;
    let head = Head::read(root, id, subject, &*file, &found)?;
    // A batch that is being written is no part of the log yet, and may never be.
    let acknowledged = acknowledged.filter(|known| known.file.same_file(&found));
    Ok(Some((head, acknowledged.map_or(found, |known| known.file))))
}

/// What a header and the state of a file say.
pub(crate) fn of(header: SessionHeader, file: &FileStat) -> SessionStat {
    SessionStat {
        header,
        revision: revision(file),
        event_count: None,
        size_bytes: Some(file.size),
        modified_at: Some(modified_at(file)),
        hints: None,
    }
}

/// The revision of a log: everything about its file that changes when it is written to, or
/// replaced.
fn revision(file: &FileStat) -> Revision {
    let FileStat { dev, ino, size, mtime_ns, ctime_ns, .. } = file;
    Revision::new(format!("{dev}:{ino}:{size}:{mtime_ns}:{ctime_ns}"))
}

/// When a file last changed, in milliseconds since the epoch.
pub(crate) fn modified_at(file: &FileStat) -> i64 {
    i64::try_from(file.mtime_ns.div_euclid(1_000_000)).unwrap_or(i64::MAX)
}
