//! An archive, piece by piece.

use bytes::Bytes;
use tokio_util::sync::{CancellationToken, DropGuard};
use turnkeep_log::Event;
use turnkeep_store::{Cancel, attachments::StoredAttachment};

use super::{
    ExportError, Exporter, Image, Log, Plan,
    batches::{Batches, bytes_of},
    packer::{Content, Packer},
};
use crate::blocking::off_the_workers;

/// How many bytes a piece has at most.
const PIECE: usize = 64 << 10;

/// How much of an image is read before it is packed.
const IMAGE_STEP: usize = 256 << 10;

/// An archive that is made while it is taken: nothing happens between two calls of
/// [`next`](Self::next), and at any time one batch of events or a part of one image is in memory.
///
/// Whoever wants no more drops it; what is under way ends then.
#[derive(Debug)]
pub struct Archive {
    exporter: Exporter,
    plan: Plan,
    at: Place,
    /// Not there while somebody works with it, nor after a failure.
    packer: Option<Packer>,
    /// Packed and not yet taken.
    ready: Bytes,
    done: u64,
    cancel: Cancel,
    _cancels: DropGuard,
}

/// What comes next in the archive.
#[derive(Debug)]
enum Place {
    /// The log of this number, from its beginning.
    Log(usize),
    /// More of this log.
    Events(usize, Batches),
    /// The image of this number, from its beginning.
    Image(usize),
    /// More of this image.
    Bytes(usize, StoredAttachment),
    /// Nothing.
    End,
}

impl Archive {
    pub(super) fn new(exporter: Exporter, plan: Plan) -> Self {
        let token = CancellationToken::new();
        Self {
            exporter,
            plan,
            at: Place::Log(0),
            packer: Some(Packer::new()),
            ready: Bytes::new(),
            done: 0,
            cancel: token.clone().into(),
            _cancels: token.drop_guard(),
        }
    }

    /// What it is made of.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many of the plan's bytes are packed.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done
    }

    /// The piece that comes next; `None` when the archive is complete, and only then.
    ///
    /// A call that is dropped before it answers ends the archive: the next one fails.
    ///
    /// # Errors
    ///
    /// Something went wrong since the [check](Exporter::check), or an image is not what its id
    /// says. What was taken so far is no archive, and there will not be more of it.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ExportError> {
        while self.ready.is_empty() {
            let gone = || std::io::Error::other("the archive was given up");
            let packer = self.packer.take().ok_or_else(gone)?;
            if matches!(self.at, Place::End) {
                self.packer = Some(packer);
                return Ok(None);
            }
            let (mut packer, at) = self.step(packer).await?;
            self.ready = packer.take().into();
            self.packer = Some(packer);
            self.at = at;
        }
        Ok(Some(self.ready.split_to(self.ready.len().min(PIECE))))
    }

    /// Packs a part, and says what comes after it.
    async fn step(&mut self, packer: Packer) -> Result<(Packer, Place), ExportError> {
        match std::mem::replace(&mut self.at, Place::End) {
            Place::Log(number) => self.begin_log(packer, number).await,
            Place::Events(number, batches) => self.events(packer, number, batches).await,
            Place::Image(number) => self.begin_image(packer, number).await,
            Place::Bytes(number, image) => self.bytes(packer, number, image).await,
            Place::End => Ok((packer, Place::End)),
        }
    }

    async fn begin_log(
        &mut self,
        mut packer: Packer,
        number: usize,
    ) -> Result<(Packer, Place), ExportError> {
        let Some(log) = self.plan.logs.get(number) else {
            return Ok((packer, Place::Image(0)));
        };
        let handle = self.exporter.open(&self.plan.root, &log.id, &self.cancel).await?;
        let line = handle.header().to_line();
        if line != log.header {
            return Err(ExportError::Changed { session: log.id.clone() });
        }
        packer.begin(&log.entry, Content::Text, log.bytes)?;
        packer.write(line.as_bytes())?;
        packer.write(b"\n")?;
        self.done += line.len() as u64 + 1;
        Ok((packer, Place::Events(number, Batches::of(handle, Some(log.events)))))
    }

    async fn events(
        &mut self,
        packer: Packer,
        number: usize,
        mut batches: Batches,
    ) -> Result<(Packer, Place), ExportError> {
        let events = batches.next(&self.cancel).await?;
        if events.is_empty() {
            let log = self.plan.logs.get(number);
            if let Some(Log { id, .. }) = log.filter(|log| log.events != batches.events()) {
                return Err(ExportError::Changed { session: id.clone() });
            }
            return Ok((packer, Place::Log(number + 1)));
        }
        let bytes = bytes_of(&events);
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let packer = off_the_workers(size, move || pack(packer, &events)).await?;
        self.done += bytes;
        Ok((packer, Place::Events(number, batches)))
    }

    async fn begin_image(
        &mut self,
        mut packer: Packer,
        number: usize,
    ) -> Result<(Packer, Place), ExportError> {
        let Some(image) = self.plan.images.get(number) else {
            packer.finish()?;
            return Ok((packer, Place::End));
        };
        let stored = self.exporter.image(&image.session, image.reference.clone()).await?;
        let Image { entry, .. } = image;
        packer.begin(entry, Content::Image, stored.length())?;
        Ok((packer, Place::Bytes(number, stored)))
    }

    async fn bytes(
        &mut self,
        mut packer: Packer,
        number: usize,
        mut stored: StoredAttachment,
    ) -> Result<(Packer, Place), ExportError> {
        let packed = off_the_workers(usize::MAX, move || {
            let mut buffer = vec![0; IMAGE_STEP];
            let read = stored.read(&mut buffer)?;
            let packed = packer.write(buffer.get(..read).unwrap_or_default());
            Ok((packed.map(|()| packer), stored, read))
        });
        let (packer, stored, read) = packed.await.map_err(|source| {
            let image = self.plan.images.get(number);
            let session =
                image.map_or_else(|| self.plan.root.clone(), |image| image.session.clone());
            ExportError::Image { session, source }
        })?;
        self.done += read as u64;
        let next = if read == 0 { Place::Image(number + 1) } else { Place::Bytes(number, stored) };
        Ok((packer?, next))
    }
}

fn pack(mut packer: Packer, events: &[Event]) -> std::io::Result<Packer> {
    for event in events {
        packer.write(event.text().as_bytes())?;
        packer.write(b"\n")?;
    }
    Ok(packer)
}
