//! Writing a log: the part that runs on one thread at a time.

use std::{io, path::PathBuf, sync::Arc};

use turnkeep_log::{Event, SessionHeader, SessionId, packed};

use super::{
    cut,
    failure::{WriteFailure, io_failure},
    frames::encode_frame,
    fs::{File, FileStat},
    layout::{Encoding, SessionDir},
    lock::Lock,
    materialize::{Made, materialize},
    reader::Progress,
    root::Root,
    tail::Tail,
};
use crate::{
    error::NotSerializable,
    shell::{Broken, Setback, WriteLog},
};

/// Who writes what within a store.
pub(crate) type Registry = crate::shell::Registry<JsonlLog>;

/// What is stored of a log for certain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// The file's state after the last acknowledged write.
    pub(crate) file: FileStat,
    /// Where the last acknowledged record ends.
    pub(crate) end: u64,
}

/// One session's log, owned.
#[derive(Debug)]
pub(crate) struct JsonlLog {
    root: Arc<Root>,
    id: SessionId,
    state: State,
}

#[derive(Debug)]
enum State {
    Pending { header: Box<SessionHeader>, lock: Option<Lock> },
    Stored { log: OpenLog, _lock: Lock },
}

impl JsonlLog {
    /// For a session that is not stored yet.
    pub(crate) fn pending(root: Arc<Root>, header: SessionHeader) -> Self {
        let id = header.id.clone();
        Self { root, id, state: State::Pending { header: Box::new(header), lock: None } }
    }

    /// For a log that was read to its end, and that is locked.
    pub(crate) fn stored(root: Arc<Root>, id: SessionId, log: OpenLog, lock: Lock) -> Self {
        Self { root, id, state: State::Stored { log, _lock: lock } }
    }
}

impl WriteLog for JsonlLog {
    type Acknowledged = Acknowledged;
    type Batch = String;

    fn encode(&self, events: &[Event]) -> Result<String, NotSerializable> {
        let records =
            if self.root.pack_chunks { packed::pack_batch(events) } else { packed::lines(events) };
        let limit = self.root.max_frame_bytes;
        if self.root.encoding == Encoding::Zstd && records.len() as u64 > limit {
            return Err(NotSerializable {
                id: self.id.clone(),
                what: "the batch".to_owned(),
                problem: format!(
                    "it has {} bytes, and readers take {limit} at once; split it, or raise \
                     `max_frame_bytes`",
                    records.len()
                ),
            });
        }
        Ok(records)
    }

    fn store(&mut self, records: Option<String>) -> Result<(), Setback> {
        let (header, lock) = match &mut self.state {
            State::Pending { header, lock } => (header, lock),
            State::Stored { log, .. } => {
                return match records {
                    Some(records) => log.append(&self.root, &self.id, &records),
                    None => Ok(()),
                };
            }
        };
        match materialize(&self.root, header, records.as_deref(), lock) {
            Ok(made) => {
                if let Some(lock) = lock.take() {
                    let log = OpenLog::made(&self.root, made);
                    self.state = State::Stored { log, _lock: lock };
                }
                Ok(())
            }
            Err(WriteFailure::Poisoned(poisoned)) => {
                Err(Setback::Broken(Broken::Poisoned(poisoned.cause)))
            }
            Err(failure) => Err(Setback::Failed(failure)),
        }
    }

    fn acknowledged(&self) -> Option<Acknowledged> {
        match &self.state {
            State::Pending { .. } => None,
            State::Stored { log, .. } => Some(Acknowledged { file: log.left, end: log.end }),
        }
    }
}

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
    /// What lies behind it, to be cut off before anything is appended.
    tail: Option<Tail>,
}

impl OpenLog {
    /// A log that was just made.
    fn made(root: &Root, made: Made) -> Self {
        let Made { dir, file, stat } = made;
        Self { path: dir.log(root.encoding), dir, file, left: stat, end: stat.size, tail: None }
    }

    /// A log that was read to its end.
    pub(crate) fn read(
        root: &Root,
        dir: SessionDir,
        file: Box<dyn File>,
        progress: &Progress,
        tail: Option<Tail>,
    ) -> Self {
        let path = dir.log(root.encoding);
        Self { path, dir, file, left: progress.file, end: progress.end, tail }
    }

    fn append(&mut self, root: &Root, id: &SessionId, records: &str) -> Result<(), Setback> {
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
        self.check_fence(root)
            .map_err(|source| failed("look at", &self.path, source))?
            .map_or(Ok(()), |evidence| Err(Setback::Broken(Broken::Lost(evidence))))?;
        self.cut_tail(root, id)?;
        match write_all(&*self.file, bytes) {
            Ok(()) => self.confirm(bytes),
            Err(torn) => {
                self.take_back(&torn)?;
                Err(failed("append to", &self.path, torn.source))
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
        Ok((open.size != self.left.size).then(|| {
            format!(
                "its log has {} bytes, where this handle left {}; nothing was written",
                open.size, self.left.size
            )
        }))
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
        self.tail = None;
    }

    /// Checks that the batch is where it belongs, and syncs it.
    fn confirm(&mut self, bytes: &[u8]) -> Result<(), Setback> {
        let looked = self.file.stat();
        let stat = looked.map_err(|error| poisoned("its log could not be looked at", &error))?;
        if stat.size != self.end + bytes.len() as u64 {
            let evidence = self.withdraw(bytes, stat.size);
            return Err(Setback::Broken(Broken::Lost(evidence)));
        }
        let synced = self.file.sync_data();
        synced.map_err(|error| poisoned("a batch could not be synced", &error))?;
        self.left = stat;
        self.end = stat.size;
        Ok(())
    }

    /// Takes back what a failed write left, as long as nothing came after it.
    fn take_back(&mut self, torn: &TornWrite) -> Result<(), Setback> {
        if torn.written == 0 {
            return Ok(());
        }
        let undone = "what a failed write left could not be taken back";
        let stat = self.file.stat().map_err(|error| poisoned(undone, &error))?;
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
        self.left = stat.map_err(|error| poisoned(undone, &error))?;
        Ok(())
    }

    /// Takes back a batch that someone else's bytes lie around, if it is last. Says what happened.
    fn withdraw(&self, bytes: &[u8], size: u64) -> String {
        let evidence = format!(
            "someone else wrote at the same time: its log has {size} bytes, where {} were expected",
            self.end + bytes.len() as u64
        );
        let withdrawn = self
            .is_last(bytes, size)
            .and_then(|start| self.file.truncate(start).and_then(|()| self.file.sync_all()).ok());
        match withdrawn {
            Some(()) => evidence + "; the batch was taken back",
            None => evidence + "; bytes of the batch are still there",
        }
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
    pub(crate) written: u64,
    pub(crate) source: io::Error,
}

/// Writes all of some bytes to the end of a file.
pub(crate) fn write_all(file: &dyn File, bytes: &[u8]) -> Result<(), TornWrite> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = file.append(rest).and_then(|count| match rest.get(count..) {
            Some(after) if count > 0 => Ok(after),
            _ => Err(io::ErrorKind::WriteZero.into()),
        });
        rest = written
            .map_err(|source| TornWrite { written: (bytes.len() - rest.len()) as u64, source })?;
    }
    Ok(())
}
