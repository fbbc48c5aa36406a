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
    frames::{encode_frame, encode_hitched},
    fs::{File, FileStat},
    layout::{Encoding, SessionDir},
    materialize::Made,
    reader::Progress,
    root::Root,
    seal::{Ending, RunningSeal, Seal},
    tail::Tail,
    writer::Acknowledged,
};
use crate::{
    Durability,
    shell::{Broken, Setback},
};

/// How often a batch is written that the system takes in pieces.
const ATTEMPTS: usize = 3;

/// A log, open to append to.
///
/// Nothing that was written is ever written again. A batch goes behind it in one piece; a failed
/// one is taken back to where it began. Several may be written before the first is synced: all of
/// them are taken back when that fails, to where the last sync ended.
#[derive(Debug)]
pub(crate) struct OpenLog {
    dir: SessionDir,
    path: PathBuf,
    file: Box<dyn File>,
    /// The log as this handle left it, or found it.
    written: Extent,
    /// As much of it as is known to be on disk, or was found.
    synced: Extent,
    /// What lies between the two.
    between: RunningSeal,
    /// Whether what lies between the two does not count, since nobody will sync it.
    given_up: bool,
    /// Whether a sync has failed.
    sync_failed: bool,
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
        let extent = Extent { file: stat, end: stat.size, ending };
        Self { settled: true, ..Self::with(dir, path, file, extent, None) }
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
        let extent = Extent { file: progress.file, end: progress.end, ending };
        Self::with(dir, path, file, extent, tail)
    }

    fn with(
        dir: SessionDir,
        path: PathBuf,
        file: Box<dyn File>,
        extent: Extent,
        tail: Option<Tail>,
    ) -> Self {
        Self {
            dir,
            path,
            file,
            written: extent,
            synced: extent,
            between: RunningSeal::from(extent.end),
            given_up: false,
            sync_failed: false,
            tail,
            settled: false,
        }
    }

    /// What readers in this store may rely on.
    pub(crate) fn acknowledged(&self, root: &Root) -> Acknowledged {
        let extent = match root.durability {
            Durability::Flush if !self.given_up => &self.written,
            _ => &self.synced,
        };
        Acknowledged { file: extent.file, end: extent.end }
    }

    /// The log as this handle left it, be it on disk yet or not.
    pub(crate) fn written(&self) -> Acknowledged {
        Acknowledged { file: self.written.file, end: self.written.end }
    }

    /// What the file ends with.
    pub(crate) fn ending(&self) -> Ending {
        self.written.ending
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes were appended and are not synced.
    pub(crate) fn unsynced(&self) -> u64 {
        self.written.end - self.synced.end
    }

    /// Appends a batch of records, to be synced later.
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
                let encode = if self.unsynced() > 0 { encode_hitched } else { encode_frame };
                encoded = encode(records)
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
                self.take_back(root, &torn)?;
                Err(failed("append to", &self.path, torn.source))
            }
        }
    }

    /// Makes durable what was found and what was appended, as far as that has not been done.
    pub(crate) fn flush(&mut self, root: &Root, id: &SessionId) -> Result<(), Setback> {
        if self.settled && self.unsynced() == 0 {
            return Ok(());
        }
        self.pass_fence(root, id)?;
        self.settle(root, id)?;
        self.sync()
    }

    /// Makes durable what was appended.
    pub(crate) fn sync(&mut self) -> Result<(), Setback> {
        if self.unsynced() == 0 {
            return Ok(());
        }
        match self.file.sync_data() {
            Ok(()) => {
                self.note_synced();
                Ok(())
            }
            Err(error) => {
                self.sync_failed = true;
                let after = if self.give_up() { "it was cut off" } else { "it may still be there" };
                Err(poisoned(&format!("what was appended could not be synced ({after})"), &error))
            }
        }
    }

    fn note_synced(&mut self) {
        self.synced = self.written;
        self.between = RunningSeal::from(self.written.end);
    }

    /// Takes back what was appended since the last sync, if one has failed; whether it is gone.
    ///
    /// Without a failed sync it can stay: whoever opens the log next syncs it. After one this is a
    /// matter of appearances, and important for that: the system may have given up bytes that it
    /// goes on showing, and no later sync would store them. Whoever opened the log next would append
    /// behind them, and have a hole there after a power cut.
    fn give_up(&mut self) -> bool {
        self.given_up = true;
        self.sync_failed
            && self.holds_what_was_written().unwrap_or(false)
            && self.cut_to(self.synced.end).is_ok()
    }

    /// Whether the file is as long as this handle left it, and holds what it appended.
    fn holds_what_was_written(&self) -> io::Result<bool> {
        let is_last = self.file.stat()?.size == self.written.end;
        Ok(is_last && self.between.seal().holds(&*self.file)?)
    }

    fn cut_to(&mut self, end: u64) -> io::Result<()> {
        self.file.truncate(end)?;
        self.file.sync_all().inspect_err(|_| self.sync_failed = true)
    }

    /// Syncs what was appended, although nothing more can be, since someone else writes. Unless a
    /// sync has failed by now, which may have lost it.
    fn save(&mut self, root: &Root) {
        if self.unsynced() == 0 {
            return;
        }
        let is_in_place =
            root.fs.stat(&self.path).is_ok_and(|named| named.same_file(&self.written.file));
        let is_whole = || self.between.seal().holds(&*self.file).unwrap_or(false);
        if !self.sync_failed && is_in_place && is_whole() {
            match self.file.sync_data() {
                Ok(()) => return self.note_synced(),
                Err(_) => self.sync_failed = true,
            }
        }
        self.give_up();
    }

    fn pass_fence(&mut self, root: &Root, id: &SessionId) -> Result<(), Setback> {
        match self.check_fence(root) {
            Ok(None) => Ok(()),
            Ok(Some(evidence)) => {
                self.save(root);
                Err(Setback::Broken(Broken::Lost(evidence)))
            }
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
        let left = &self.written;
        if !named.same_file(&open) || !open.same_file(&left.file) {
            return Ok(Some(
                "its log was replaced by another file; nothing was written".to_owned(),
            ));
        }
        if open.size != left.file.size {
            return Ok(Some(format!(
                "its log has {} bytes, where this handle left {}; nothing was written",
                open.size, left.file.size
            )));
        }
        if let Some((version, _)) = Contents::of(&*root.fs, self.dir.path())?.newer {
            return Ok(Some(format!(
                "a newer harness has moved the session to log format v{version}; nothing was written"
            )));
        }
        let rewritten = !left.ending.holds(&*self.file)?;
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
            let Extent { file, end, .. } = self.written;
            cut::keep(&*root.fs, &self.dir, &*self.file, end, file.size)
                .map_err(|source| failed("keep a copy of the torn tail of", source))?;
        }
        self.file
            .truncate(self.written.end)
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
            offset = self.written.end,
            bytes = self.written.file.size.saturating_sub(self.written.end),
            copied = tail.legible,
            "cut off the tail that an interrupted append left",
        );
        self.written.file = stat;
        self.written.ending = Ending::clean(self.written.ending.record);
        self.tail = None;
        self.note_synced();
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
            let end = self.written.end;
            if self.is_last(piece, end + written) != Some(end) {
                return Err(torn(written, io::ErrorKind::WriteZero.into()));
            }
            self.file.truncate(end).map_err(|source| torn(written, source))?;
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

    /// Checks that the batch is where it belongs.
    fn confirm(&mut self, root: &Root, bytes: &[u8]) -> Result<(), Setback> {
        let before = self.written.end;
        let end = before + bytes.len() as u64;
        let stat = self.file.stat().map_err(|error| {
            if self.withdraw(bytes, end) {
                self.note_synced();
            } else {
                self.give_up();
            }
            poisoned("its log could not be looked at", &error)
        })?;
        if stat.size != end {
            let evidence = self.give_way(bytes, stat.size);
            self.save(root);
            return Err(Setback::Broken(Broken::Lost(evidence)));
        }
        let ending = Ending::clean(Seal::of_written(root.encoding, before, bytes));
        self.written = Extent { file: stat, end, ending };
        self.between.extend(bytes);
        Ok(())
    }

    /// Takes back what a failed write left, as long as nothing came after it. What was appended
    /// before is synced with that.
    fn take_back(&mut self, root: &Root, torn: &TornWrite) -> Result<(), Setback> {
        if torn.untouched {
            return Ok(());
        }
        let undone = format!("failed to roll back append to \"{}\"", self.path.display());
        let end = self.written.end;
        let stat = self.file.stat().map_err(|error| {
            self.give_up();
            poisoned(&undone, &error)
        })?;
        if stat.size != end + torn.written {
            self.save(root);
            return Err(Setback::Broken(Broken::Lost(format!(
                "someone else wrote while a batch failed half way: its log has {} bytes",
                stat.size
            ))));
        }
        self.cut_to(end).map_err(|error| {
            self.give_up();
            poisoned(&undone, &error)
        })?;
        self.note_synced();
        self.written.file = self.file.stat().map_err(|error| poisoned(&undone, &error))?;
        self.synced = self.written;
        Ok(())
    }

    /// Takes back a batch that someone else's bytes lie around, if it is last. Says what happened.
    fn give_way(&mut self, bytes: &[u8], size: u64) -> String {
        let evidence = format!(
            "someone else wrote at the same time: its log has {size} bytes, where {} were expected",
            self.written.end + bytes.len() as u64
        );
        if self.withdraw(bytes, size) {
            evidence + "; the batch was taken back"
        } else {
            evidence + "; bytes of the batch are still there"
        }
    }

    /// Takes back a batch that cannot be acknowledged, if it is last; whether that worked.
    fn withdraw(&mut self, bytes: &[u8], size: u64) -> bool {
        self.is_last(bytes, size).is_some_and(|start| self.cut_to(start).is_ok())
    }

    /// Where these bytes begin, if they are the last of the file.
    fn is_last(&self, bytes: &[u8], size: u64) -> Option<u64> {
        let start = size.checked_sub(bytes.len() as u64)?;
        let last = cut::read(&*self.file, start, size).ok()?;
        let unchanged = self.file.stat().ok()?.size == size;
        (last == bytes && unchanged).then_some(start)
    }
}

/// A log up to the end of a record.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// The file as it was then.
    file: FileStat,
    /// Where the last record ends.
    end: u64,
    /// What the file ends with.
    ending: Ending,
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
