//! What is known of a session from its header and its file.

use std::{io, sync::Arc};

use turnkeep_log::{SessionHeader, SessionId};

use super::{
    discover::check_place,
    failure::{LogFailure, Subject},
    fs::{File, FileStat, OpenMode},
    head::Head,
    index,
    layout::SessionDir,
    root::Root,
    writer::{Live, Registry},
};
use crate::seam::{Revision, SessionHints, SessionStat};

/// Reads the header of a log, and the state of its file; `None` when there is no log, or not a
/// whole header yet.
pub(crate) fn take(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    dir: &SessionDir,
) -> Result<Option<SessionStat>, LogFailure> {
    let Some(first) = read_first(root, registry, id, dir)? else { return Ok(None) };
    let Some(header) = first.head.header()? else { return Ok(None) };
    check_place(root, &header, dir)?;
    Ok(Some(of(header, &first.stat, first.hints)))
}

/// Reads the head of a log, and the state of its file; `None` when there is no log.
pub(crate) fn read_head(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    dir: &SessionDir,
) -> Result<Option<(Head, FileStat)>, LogFailure> {
    let first = read(root, registry, id, dir, |_, _| None)?;
    Ok(first.map(|First { head, stat, .. }| (head, stat)))
}

/// What is to be seen of a log at first sight.
pub(crate) struct First {
    pub(crate) head: Head,
    /// The state of the file, as far as it counts.
    pub(crate) stat: FileStat,
    pub(crate) hints: Option<SessionHints>,
}

/// Reads the head of a log, the state of its file, and what its index says; `None` when there is no
/// log.
pub(crate) fn read_first(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    dir: &SessionDir,
) -> Result<Option<First>, LogFailure> {
    read(root, registry, id, dir, |file, stat| index::hints(root, id, dir, file, stat))
}

fn read(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    dir: &SessionDir,
    hints: impl FnOnce(&dyn File, &FileStat) -> Option<SessionHints>,
) -> Result<Option<First>, LogFailure> {
    let path = dir.log(root.encoding);
    let subject = Subject { id, path: &path };
    let file = match root.fs.open(&path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|source| subject.io("open", source))?,
    };
    // Taken before the file's own, so that what a writer acknowledges in between is not missed.
    let live = registry.acknowledged(id);
    let found = file.stat().map_err(|source| subject.io("look at", source))?;
    let head = Head::read(root, id, subject, &*file, &found)?;
    // A batch that is being written is no part of the log yet, and may never be.
    let first = match live.filter(|live| live.acknowledged.file.same_file(&found)) {
        Some(Live { acknowledged, hints }) => {
            First { head, stat: acknowledged.file, hints: hints.map(Arc::unwrap_or_clone) }
        }
        None => First { head, stat: found, hints: hints(&*file, &found) },
    };
    Ok(Some(first))
}

/// What a header, the state of a file and an index say.
pub(crate) fn of(
    header: SessionHeader,
    file: &FileStat,
    hints: Option<SessionHints>,
) -> SessionStat {
    SessionStat {
        header,
        revision: revision(file),
        event_count: None,
        size_bytes: Some(file.size),
        modified_at: Some(modified_at(file)),
        hints,
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
