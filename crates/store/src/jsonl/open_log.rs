//! A log on disk, open to append to.

use std::{
    io,
    path::{Path, PathBuf},
};

use turnkeep_log::SessionId;

use super::{
    cut,
    discover::Contents,
    failure::io_failure,
    frames::encode_frame,
    fs::{File, FileStat},
    layout::{Encoding, SessionDir},
    materialize::Made,
    reader::Progress,
    root::Root,
    seal::{Ending, Seal},
    tail::Tail,
    writer::Acknowledged,
};
use crate::shell::{Broken, Setback};

/// How often a batch is written that the system takes in pieces.
const ATTEMPTS: usize = 3;

/// A log, open to append to.
///
/// Nothing before `end` is ever written. A batch goes behind it in one piece and counts once it is
/// synced; until then `left` and `end` stay as they are, which is where a failed batch is taken
/// back to.
#[derive(Debug)]
pub(crate) struct OpenLog {
    dir: SessionDir,
    path: PathBuf,
    file: Box<dyn File>,
    /// The file as this handle left it, or found it.
    left: FileStat,
    /// Where the last record ends.
    end: u64,
    /// What the file ends with.
    ending: Ending,
    /// What lies behind the last record, to be cut off before anything is appended.
    tail: Option<Tail>,
    /// Whether what was found is known to be on disk, and the way to it.
    settled: bool,
}

impl OpenLog {
    /// A log that was just made.
    pub(crate) fn made(root: &Root, made: Made) -> Self {
        let Made { dir, file, stat, ending, .. } = made;
        let path = dir.log(root.encoding);
        Self { dir, path, file, left: stat, end: stat.size, ending, tail: None, settled: true }
    }

    /// A log that was read to its end.
    pub(crate) fn read(
        root: &Root,
        dir: SessionDir,
        file: Box<dyn File>,
        progress: &Progress,
        tail: Option<Tail>,
        ending: Ending,
    ) -> Self {
        let path = dir.log(root.encoding);
        Self {
            dir,
            path,
            file,
            left: progress.file,
            end: progress.end,
            ending,
            tail,
            settled: false,
        }
    }

    /// What is stored for certain.
    pub(crate) fn acknowledged(&self) -> Acknowledged {
        Acknowledged { file: self.left, end: self.end }
    }

    /// What the file ends with.
    pub(crate) fn ending(&self) -> Ending {
        self.ending
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a batch of records, durably.
    pub(crate) fn append(
        &mut self,
        root: &Root,
        id: &SessionId,
        records: &str,
    ) -> Result<(), Setback> {
        let failed = |doing: &str, path: &PathBuf, source| {
            Setback::Failed(io_failure(id, doing, path, source).into())
        };
        let encoded;
        let bytes = match root.encoding {
            Encoding::None => records.as_bytes(),
            Encoding::Zstd => {
                encoded = encode_frame(records)
                    .map_err(|source| failed("compress a batch for", &self.path, source))?;
                &encoded
            }
        };
        self.pass_fence(root, id)?;
        self.settle(root, id)?;
        self.cut_tail(root, id)?;
        match self.write(bytes) {
            Ok(()) => self.confirm(root, bytes),
            Err(torn) => {
                self.take_back(&torn)?;
                Err(failed("append to", &self.path, torn.source))
            }
        }
    }

    /// Makes durable what was found, if that has not been done.
    pub(crate) fn flush(&mut self, root: &Root, id: &SessionId) -> Result<(), Setback> {
        if self.settled {
            return Ok(());
        }
        self.pass_fence(root, id)?;
        self.settle(root, id)
    }

    fn pass_fence(&self, root: &Root, id: &SessionId) -> Result<(), Setback> {
        match self.check_fence(root) {
            Ok(None) => Ok(()),
            Ok(Some(evidence)) => Err(Setback::Broken(Broken::Lost(evidence))),
            Err(source) => {
                Err(Setback::Failed(io_failure(id, "look at", &self.path, source).into()))
            }
        }
    }

    /// Whether anyone else has written since, and what gives it away.
    fn check_fence(&self, root: &Root) -> io::Result<Option<String>> {
        let open = self.file.stat()?;
        let named = match root.fs.stat(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some("its log was removed; nothing was written".to_owned()));
            }
            named => named?,
        };
        if !named.same_file(&open) || !open.same_file(&self.left) {
            return Ok(Some(
                "its log was replaced by another file; nothing was written".to_owned(),
            ));
        }
        if open.size != self.left.size {
            return Ok(Some(format!(
                "its log has {} bytes, where this handle left {}; nothing was written",
                open.size, self.left.size
            )));
        }
        if let Some((version, _)) = Contents::of(&*root.fs, self.dir.path())?.newer {
            return Ok(Some(format!(
                "a newer harness has moved the session to log format v{version}; nothing was written"
            )));
        }
        let rewritten = !self.ending.holds(&*self.file)?;
        Ok(rewritten.then(|| {
            "its log ends with other bytes than this handle left; nothing was written".to_owned()
        }))
    }

    /// Makes what was found durable, before anything goes behind it.
    ///
    /// The writer before may have been killed between a write and its sync. Its batch counts by
    /// now, since it is whole. But if ours reached the disk and that one did not, there would be a
    /// hole in the log.
    fn settle(&mut self, root: &Root, id: &SessionId) -> Result<(), Setback> {
        if self.settled {
            return Ok(());
        }
        root.sync_session_dir(self.dir.path()).map_err(|source| {
            Setback::Failed(io_failure(id, "sync the way to", self.dir.path(), source).into())
        })?;
        self.file
            .sync_data()
            .map_err(|error| poisoned("what was found in its log could not be synced", &error))?;
        self.settled = true;
        Ok(())
    }

    /// Cuts off what an interrupted append left, durably.
    fn cut_tail(&mut self, root: &Root, id: &SessionId) -> Result<(), Setback> {
        let Some(tail) = self.tail else { return Ok(()) };
        let failed =
            |doing, source| Setback::Failed(io_failure(id, doing, &self.path, source).into());
        if tail.legible {
            cut::keep(&*root.fs, &self.dir, &*self.file, self.end, self.left.size)
                .map_err(|source| failed("keep a copy of the torn tail of", source))?;
        }
        self.file
            .truncate(self.end)
            .map_err(|source| failed("cut off the torn tail of", source))?;
        self.file
            .sync_all()
            .and_then(|()| self.file.stat())
            .map(|stat| self.note_cut(id, tail, stat))
            .map_err(|error| poisoned("the cut of its torn tail could not be synced", &error))
    }

    fn note_cut(&mut self, id: &SessionId, tail: Tail, stat: FileStat) {
        tracing::warn!(
            session = %id,
            kind = tail.kind.as_str(),
            offset = self.end,
            bytes = self.left.size.saturating_sub(self.end),
            copied = tail.legible,
            "cut off the tail that an interrupted append left",
        );
        self.left = stat;
        self.ending = Ending::clean(self.ending.record);
        self.tail = None;
    }

    /// Writes a batch in one piece.
    ///
    /// The first of two pieces may reach the disk without the second, which then reads as zeros
    /// from the middle of a sector on: nobody could tell that from damage. So a piece is taken back
    /// before the whole is written again. Only the last attempt asks for the rest, to hear why.
    fn write(&self, bytes: &[u8]) -> Result<(), TornWrite> {
        for attempt in 1..ATTEMPTS {
            let torn = |written, source| TornWrite {
                written,
                untouched: attempt == 1 && written == 0,
                source,
            };
            let count = self.file.append(bytes).map_err(|source| torn(0, source))?;
            let Some(piece) = bytes.get(..count).filter(|_| count < bytes.len()) else {
                return Ok(());
            };
            let written = count as u64;
            if self.is_last(piece, self.end + written) != Some(self.end) {
                return Err(torn(written, io::ErrorKind::WriteZero.into()));
            }
            self.file.truncate(self.end).map_err(|source| torn(written, source))?;
        }
        let pieces =
            write_all(&*self.file, bytes).map_err(|torn| TornWrite { untouched: false, ..torn })?;
        if pieces <= 1 {
            return Ok(());
        }
        let source = "the system does not write the batch in one piece";
        Err(TornWrite {
            written: bytes.len() as u64,
            untouched: false,
            source: io::Error::new(io::ErrorKind::WriteZero, source),
        })
    }

    /// Checks that the batch is where it belongs, and syncs it.
    fn confirm(&mut self, root: &Root, bytes: &[u8]) -> Result<(), Setback> {
        let stat = self.file.stat().map_err(|error| {
            self.withdraw(bytes, self.end + bytes.len() as u64);
            poisoned("its log could not be looked at", &error)
        })?;
        if stat.size != self.end + bytes.len() as u64 {
            return Err(Setback::Broken(Broken::Lost(self.give_way(bytes, stat.size))));
        }
        self.file.sync_data().map_err(|error| {
            self.withdraw(bytes, stat.size);
            poisoned("a batch could not be synced", &error)
        })?;
        self.ending = Ending::clean(Seal::of_written(root.encoding, self.end, bytes));
        self.left = stat;
        self.end = stat.size;
        Ok(())
    }

    /// Takes back what a failed write left, as long as nothing came after it.
    fn take_back(&mut self, torn: &TornWrite) -> Result<(), Setback> {
        if torn.untouched {
            return Ok(());
        }
        let undone = format!("failed to roll back append to \"{}\"", self.path.display());
        let stat = self.file.stat().map_err(|error| poisoned(&undone, &error))?;
        if stat.size != self.end + torn.written {
            return Err(Setback::Broken(Broken::Lost(format!(
                "someone else wrote while a batch failed half way: its log has {} bytes",
                stat.size
            ))));
        }
        let stat = self
            .file
            .truncate(self.end)
            .and_then(|()| self.file.sync_all())
            .and_then(|()| self.file.stat());
        self.left = stat.map_err(|error| poisoned(&undone, &error))?;
        Ok(())
    }

    /// Takes back a batch that someone else's bytes lie around, if it is last. Says what happened.
    fn give_way(&self, bytes: &[u8], size: u64) -> String {
        let evidence = format!(
            "someone else wrote at the same time: its log has {size} bytes, where {} were expected",
            self.end + bytes.len() as u64
        );
        if self.withdraw(bytes, size) {
            evidence + "; the batch was taken back"
        } else {
            evidence + "; bytes of the batch are still there"
        }
    }

    /// Takes back a batch that cannot be acknowledged, if it is last; whether that worked.
    ///
    /// After a failed sync this is a matter of appearances, and important for that: the system may
    /// have given up bytes that it goes on showing, and no later sync would store them. Whoever
    /// opened the log next would append behind them, and have a hole there after a power cut.
    fn withdraw(&self, bytes: &[u8], size: u64) -> bool {
        self.is_last(bytes, size)
            .and_then(|start| self.file.truncate(start).and_then(|()| self.file.sync_all()).ok())
            .is_some()
    }

    /// Where these bytes begin, if they are the last of the file.
    fn is_last(&self, bytes: &[u8], size: u64) -> Option<u64> {
        let start = size.checked_sub(bytes.len() as u64)?;
        let last = cut::read(&*self.file, start, size).ok()?;
        let unchanged = self.file.stat().ok()?.size == size;
        (last == bytes && unchanged).then_some(start)
    }
}

fn poisoned(what: &str, error: &io::Error) -> Setback {
    Setback::Broken(Broken::Poisoned(format!("{what}: {error}")))
}

/// A write that stopped half way.
pub(crate) struct TornWrite {
    /// How much of it is in the file.
    pub(crate) written: u64,
    /// Whether nothing of it ever was.
    pub(crate) untouched: bool,
    pub(crate) source: io::Error,
}

/// Writes all of some bytes to the end of a file; in how many pieces.
pub(crate) fn write_all(file: &dyn File, bytes: &[u8]) -> Result<usize, TornWrite> {
    let mut rest = bytes;
    let mut pieces = 0;
    while !rest.is_empty() {
        let written = file.append(rest).and_then(|count| match rest.get(count..) {
            Some(after) if count > 0 => Ok(after),
            _ => Err(io::ErrorKind::WriteZero.into()),
        });
        pieces += 1;
        rest = written.map_err(|source| {
            let written = (bytes.len() - rest.len()) as u64;
            TornWrite { written, untouched: written == 0, source }
        })?;
    }
    Ok(pieces)
}
