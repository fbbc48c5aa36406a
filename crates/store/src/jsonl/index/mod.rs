//! The index beside a log: `turnkeep.idx`.
//!
//! It says how far somebody has read and checked the log, where to start reading from to see its
//! end, and what a list shows of it. All of that is in the log, so the index is never needed, never
//! synced and never trusted: it counts as far as the log still has the bytes that it was made from,
//! and what is read by means of it is checked as it is read. Where anything does not fit, the log is
//! read from the beginning, as if there were no index.
//!
//! | | |
//! |---|---|
//! | `form` | how an index is spelled |
//! | `file` | the file it is in |
//! | `keeper` | the index of a log that is being written |

mod file;
mod form;
mod keeper;
#[cfg(test)]
mod tests;

use std::{io, path::Path, sync::Arc};

use turnkeep_log::SessionId;
use xxhash_rust::xxh64::{Xxh64, xxh64};

pub(crate) use self::keeper::{Entries, Keeper};
use super::{
    cut,
    fs::{File, FileStat, OpenMode},
    layout::SessionDir,
    reader::{Marks, Progress},
    root::Root,
    seal::Ending,
    tail::TailKind,
};
use crate::{outline::Outline, seam::SessionHints};

/// How many bytes before an end tell whether it is still the same.
const LAST: u64 = 4 << 10;

/// From how many bytes on it is worth an index that a log was read, or has grown.
const WORTH: u64 = 256 << 10;

/// By what part of itself a log has grown when its index is made again.
const GROWTH: u64 = 8;

/// The largest number that every reader of JSON can hold.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// What an index says of the log that it belongs to, and what a list wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    session: SessionId,
    /// By which rules the log was read: those of another build may find it in order, or not.
    rules: u64,
    /// How large a frame was taken.
    max_frame_bytes: u64,
    /// The size of the log.
    size: u64,
    /// How far it was read, and is in order.
    end: u64,
    /// The hash of the last bytes before the end.
    last: u64,
    /// What comes after the end.
    tail: Option<TailSeal>,
    hints: SessionHints,
}

/// The bytes behind the end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TailSeal {
    kind: TailKind,
    /// The hash of the last of them.
    last: u64,
}

/// All of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    head: Head,
    marks: Marks,
    outline: Outline,
}

impl Head {
    /// The head of the index of this log, if there is one and it is for us.
    fn load(root: &Root, id: &SessionId, dir: &SessionDir) -> Option<Self> {
        file::head(&*root.fs, dir).filter(|head| head.is_for(root, id))
    }

    /// Whether it was made for this session, by the rules of this store.
    fn is_for(&self, root: &Root, id: &SessionId) -> bool {
        self.session == *id
            && self.rules == rules(root)
            && self.max_frame_bytes <= root.max_frame_bytes
    }

    /// Whether a log begins with what the index was made from.
    fn holds(&self, log: &dyn File, stat: &FileStat) -> io::Result<bool> {
        Ok(stat.size >= self.end && last_bytes(log, 0, self.end)? == self.last)
    }

    /// Whether a log is what the index was made from, and nothing more.
    fn is_current(&self, log: &dyn File, stat: &FileStat) -> io::Result<bool> {
        if stat.size != self.size || !self.holds(log, stat)? {
            return Ok(false);
        }
        match self.tail {
            Some(tail) => last_bytes(log, self.end, self.size).map(|last| last == tail.last),
            None => Ok(self.size == self.end),
        }
    }
}

/// What is known of a log by its index, if that is the index of the log as it is.
pub(crate) fn hints(
    root: &Root,
    id: &SessionId,
    dir: &SessionDir,
    log: &dyn File,
    stat: &FileStat,
) -> Option<SessionHints> {
    let head = Head::load(root, id, dir)?;
    head.is_current(log, stat).ok()?.then_some(head.hints)
}

/// How far a log was read and found to be in order, by its index; `None` when that is not known.
/// `limit` is where the log ends for the reader, if not with its file.
pub(crate) fn known(
    root: &Root,
    id: &SessionId,
    log: &Path,
    limit: Option<u64>,
) -> Option<Progress> {
    let dir = SessionDir::of_log(log)?;
    let Index { head, marks, outline } = file::index(&*root.fs, &dir)?;
    if !head.is_for(root, id) || limit.is_some_and(|limit| head.end > limit) {
        return None;
    }
    let file = root.fs.open(log, OpenMode::Read).ok()?;
    let stat = file.stat().ok()?;
    let (end, next) = (head.end, outline.next);
    let known = Progress { file: stat, end, next, marks, outline: Arc::new(outline) };
    head.holds(&*file, &stat).ok()?.then_some(known)
}

/// Up to which byte the index of a log counts; 0 when there is none.
pub(crate) fn reach(root: &Root, id: &SessionId, log: &Path) -> u64 {
    let reach = || {
        let head = Head::load(root, id, &SessionDir::of_log(log)?)?;
        let file = root.fs.open(log, OpenMode::Read).ok()?;
        let stat = file.stat().ok()?;
        head.holds(&*file, &stat).ok()?.then_some(head.end)
    };
    reach().unwrap_or(0)
}

/// Whether a log that ends here wants another index than one that counts up to there.
pub(crate) fn is_due(end: u64, reach: u64) -> bool {
    end >= WORTH && (reach == 0 || end.saturating_sub(reach) >= (end / GROWTH).max(WORTH))
}

/// How it is known what a log holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Basis {
    /// It was read, and nothing has changed since.
    Read,
    /// It was written, or cut: it is on disk, and ends like this.
    Written(Ending),
}

/// Makes the index of a log that was read or written so far. Nothing depends on it: where it cannot
/// be made, there is none.
pub(crate) fn save(
    root: &Root,
    id: &SessionId,
    log: &Path,
    progress: &Progress,
    tail: Option<TailKind>,
    basis: Basis,
) {
    match try_save(root, id, log, progress, tail, basis) {
        Ok(saved) => tracing::debug!(session = %id, end = progress.end, saved, "index"),
        Err(error) => tracing::debug!(session = %id, %error, "no index could be written"),
    }
}

fn try_save(
    root: &Root,
    id: &SessionId,
    log: &Path,
    progress: &Progress,
    tail: Option<TailKind>,
    basis: Basis,
) -> io::Result<bool> {
    let Some(dir) = SessionDir::of_log(log) else { return Ok(false) };
    let file = root.fs.open(log, OpenMode::Read)?;
    let draft = file::Draft::begin(&*root.fs, &dir)?;
    let published = spell(root, id, &*file, progress, tail, basis).and_then(|text| match text {
        Some(text) => draft.publish(&text).map(|()| true),
        None => Ok(false),
    });
    if !matches!(published, Ok(true)) {
        draft.give_up();
    }
    published
}

/// The text of the index of a log, if the log still is what was read or written.
fn spell(
    root: &Root,
    id: &SessionId,
    log: &dyn File,
    progress: &Progress,
    tail: Option<TailKind>,
    basis: Basis,
) -> io::Result<Option<String>> {
    let stat = log.stat()?;
    let unchanged = match basis {
        Basis::Read => {
            // What was read need not be on disk yet. After a power cut the end of it could be there
            // and something before it not, and nobody looks before the end.
            log.sync_data()?;
            stat == progress.file
        }
        Basis::Written(ending) => {
            let grown = stat.same_file(&progress.file) && stat.size >= progress.end;
            grown && ending.holds(log)?
        }
    };
    if !unchanged {
        return Ok(None);
    }
    let end = progress.end;
    let size = if tail.is_some() { stat.size } else { end };
    let tail = match tail {
        Some(kind) => Some(TailSeal { kind, last: last_bytes(log, end, size)? }),
        None => None,
    };
    let index = Index {
        head: Head {
            session: id.clone(),
            rules: rules(root),
            max_frame_bytes: root.max_frame_bytes.min(MAX_SAFE),
            size,
            end,
            last: last_bytes(log, 0, end)?,
            tail,
            hints: progress.outline.hints(),
        },
        marks: progress.marks.thinned().collect(),
        outline: Outline::clone(&progress.outline),
    };
    Ok(form::spell(&index))
}

/// The hash of the last bytes of a part of a file.
fn last_bytes(file: &dyn File, from: u64, to: u64) -> io::Result<u64> {
    let from = to.saturating_sub(LAST).max(from);
    Ok(xxh64(&cut::read(file, from, to)?, 0))
}

/// What the rules are by which this store reads logs.
fn rules(root: &Root) -> u64 {
    *root.rules.get_or_init(|| rules_of(root))
}

fn rules_of(root: &Root) -> u64 {
    let mut hash = Xxh64::new(0);
    for part in [env!("CARGO_PKG_VERSION"), root.encoding.setting()] {
        hash.update(part.as_bytes());
        hash.update(b"\n");
    }
    for name in root.vocabulary.types() {
        hash.update(name.as_bytes());
        hash.update(b"\n");
    }
    hash.digest()
}
