//! Reading a log.

mod handle;
mod intake;
mod marks;
mod pass;

use std::{io, path::Path, sync::Arc};

use turnkeep_log::{Event, Seq, SessionHeader, SessionId};

use self::pass::Pass;
pub(crate) use self::{
    handle::JsonlReader,
    marks::{Mark, Marks},
};
use super::{
    failure::{LogFailure, Subject},
    fs::{FileStat, OpenMode},
    root::Root,
    seal::Ending,
    tail::Tail,
    writer::Acknowledged,
};
use crate::{
    outline::Outline,
    seam::{Cancel, EventRange},
};

/// How often a log that changes under the reader is read again while that does any good.
const ATTEMPTS: usize = 3;

/// What is wanted of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadRequest<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) path: &'a Path,
    pub(crate) range: EventRange,
    /// How far the log was read before.
    pub(crate) known: Option<&'a Progress>,
    /// Where the log ends for this reader, when a writer in this store says so.
    pub(crate) acknowledged: Option<Acknowledged>,
    pub(crate) cancel: &'a Cancel,
    /// What a cancelled read is called.
    pub(crate) operation: &'static str,
}

/// What was read of a log.
#[derive(Debug)]
pub(crate) struct LogRead {
    /// The header, when reading began at the beginning.
    pub(crate) header: Option<SessionHeader>,
    /// The events of the range.
    pub(crate) events: Vec<Event>,
    /// How far the log goes.
    pub(crate) progress: Progress,
    /// Whether the reading went that far itself, instead of relying on an earlier one.
    pub(crate) went_to_end: bool,
    /// What comes after it.
    pub(crate) tail: Option<Tail>,
    /// What the file ends with, when reading began at the beginning.
    pub(crate) ending: Option<Ending>,
}

/// How far a log has been read and found to be in order.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// The file, as it was before it was read.
    pub(crate) file: FileStat,
    /// Where in the file the last record ends.
    pub(crate) end: u64,
    /// The seq that comes next.
    pub(crate) next: Seq,
    /// Where to start from to read a part of it.
    pub(crate) marks: Marks,
    /// What its events say in short.
    pub(crate) outline: Arc<Outline>,
}

impl Progress {
    /// Whether the file can be the one that was read, perhaps grown since.
    fn still_holds(&self, stat: &FileStat) -> bool {
        self.file.same_file(stat) && stat.size >= self.end
    }
}

/// Reads a range of a log; `None` when there is no log.
///
/// The file's state is taken before and after. If it changed, the log is read once more, and then
/// stands as far as it reached before that reading: what was written meanwhile lies behind. Only
/// damage that may come from such a change is looked at again.
pub(crate) fn read_log(
    root: &Root,
    request: &ReadRequest<'_>,
) -> Result<Option<LogRead>, LogFailure> {
    let subject = Subject { id: request.id, path: request.path };
    let cannot_look = |source| subject.io("look at", source);
    let mut attempt = 1;
    loop {
        let file = match root.fs.open(request.path, OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|source| subject.io("open", source))?,
        };
        let stat = file.stat().map_err(cannot_look)?;
        // Nothing before what was acknowledged changes.
        let acknowledged = request.acknowledged.filter(|known| known.file.same_file(&stat));
        let end = acknowledged.map_or(stat.size, |known| known.end.min(stat.size));
        let read = Pass::read(root, request, &*file, stat, end);
        let settled = acknowledged.is_some() || file.stat().map_err(cannot_look)? == stat;
        let worth_another = attempt == 1 || read.is_err();
        if settled || !worth_another || attempt == ATTEMPTS {
            return read.map(Some);
        }
        attempt += 1;
    }
}
