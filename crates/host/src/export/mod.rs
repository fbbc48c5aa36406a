//! A session, what stems from it, and the images they show, as one ZIP archive.
//!
//! | entry | |
//! |---|---|
//! | `session.jsonl` | the session's log |
//! | `subagents/<id>/session.jsonl` | when asked for: the log of each session that stems from it |
//! | `media/<id>.<png, jpg, webp or gif>` | each image that one of these logs shows |
//!
//! A log is its header's line and one event a line, exactly as every backend of the store keeps
//! them, so that it is itself a log that can be opened.
//!
//! An archive is complete, or it is no archive. [`Exporter::check`] reads everything once, in
//! batches, and opens every image before the first byte is made; what fails later breaks the
//! archive off before the directory that every ZIP ends with. How far each log goes is settled by the
//! check, log by log: what is appended meanwhile is left out, and there is no one moment at which
//! all of them were like this.

mod archive;
mod batches;
mod error;
mod images;
mod lineage;
mod names;
mod packer;

use std::{collections::HashSet, sync::Arc};

use tokio_util::sync::CancellationToken;
use turnkeep_log::SessionId;
use turnkeep_store::{
    Access, Cancel, Routed, SessionHandle, SessionStore,
    attachments::{AttachmentRef, Attachments, StoredAttachment},
    error::OpenError,
};

pub(crate) use self::names::archive_name;
pub use self::{archive::Archive, error::ExportError};
use self::{
    batches::{Batches, bytes_of},
    images::images_of,
    names::Folders,
};
use crate::blocking::off_the_workers;

/// Makes archives of the sessions in a store.
#[derive(Clone, Debug)]
pub struct Exporter {
    store: Arc<dyn SessionStore>,
    attachments: Option<Arc<Attachments>>,
}

/// What an archive will hold: all of it is there, and can be read.
#[derive(Clone, Debug)]
pub struct Plan {
    root: SessionId,
    logs: Vec<Log>,
    images: Vec<Image>,
    bytes: u64,
}

/// One log, as far as it was checked.
#[derive(Clone, Debug)]
struct Log {
    id: SessionId,
    entry: String,
    header: String,
    events: u64,
    bytes: u64,
}

/// One image, and a session that shows it.
#[derive(Clone, Debug)]
struct Image {
    session: SessionId,
    reference: AttachmentRef,
    entry: String,
}

impl Plan {
    /// How many sessions it holds.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.logs.len()
    }

    /// How many events these have.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.logs.iter().map(|log| log.events).sum()
    }

    /// How many images they show.
    #[must_use]
    pub fn images(&self) -> usize {
        self.images.len()
    }

    /// How many bytes all of it has before it is packed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Exporter {
    /// Of this store, with the images in this directory.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, attachments: Option<Attachments>) -> Self {
        Self { store, attachments: attachments.map(Arc::new) }
    }

    /// Looks whether a session can be exported, alone or with what stems from it.
    ///
    /// What waits to be stored in them is stored first. Every log is read to its end and every
    /// image opened; nothing is packed. `looked` is told how many bytes of logs were read so far.
    ///
    /// # Errors
    ///
    /// [Not found](ExportError::is_not_found), or something is missing that the archive would need.
    pub async fn check(
        &self,
        root: &SessionId,
        descendants: bool,
        mut looked: impl FnMut(u64) + Send,
    ) -> Result<Plan, ExportError> {
        let token = CancellationToken::new();
        let cancel = Cancel::from(token.clone());
        let _cancels = token.drop_guard();
        let mut plan = Plan { root: root.clone(), logs: Vec::new(), images: Vec::new(), bytes: 0 };
        let mut seen = HashSet::new();
        self.check_log(
            &mut plan,
            root,
            "session.jsonl".to_owned(),
            &mut seen,
            &mut looked,
            &cancel,
        )
        .await?;
        if descendants {
            let mut folders = Folders::default();
            for session in lineage::descendants(self.store.as_ref(), root, &cancel).await? {
                let entry = folders.entry(&session);
                self.check_log(&mut plan, &session, entry, &mut seen, &mut looked, &cancel).await?;
            }
        }
        Ok(plan)
    }

    /// The archive that was planned.
    #[must_use]
    pub fn archive(&self, plan: Plan) -> Archive {
        Archive::new(self.clone(), plan)
    }

    async fn check_log(
        &self,
        plan: &mut Plan,
        session: &SessionId,
        entry: String,
        seen: &mut HashSet<String>,
        looked: &mut (impl FnMut(u64) + Send),
        cancel: &Cancel,
    ) -> Result<(), ExportError> {
        // Without a writer in this process there is nothing that waits.
        let (Routed::ToWriter | Routed::NoWriter) =
            self.store.flush_session(session, cancel).await?;
        let handle = self.open(&plan.root, session, cancel).await?;
        let header = handle.header().to_line();
        let mut bytes = header.len() as u64 + 1;
        let before = plan.bytes;
        let mut batches = Batches::of(handle, None);
        loop {
            let events = batches.next(cancel).await?;
            if events.is_empty() {
                break;
            }
            let size = bytes_of(&events);
            bytes += size;
            let known = std::mem::take(seen);
            let searching = usize::try_from(size).unwrap_or(usize::MAX);
            let (known, new) = off_the_workers(searching, move || {
                let mut known = known;
                let mut new = Vec::new();
                for event in &events {
                    let all = images_of(event, |image| {
                        if known.insert(image.id.clone()) {
                            new.push(image);
                        }
                        Ok::<_, std::convert::Infallible>(())
                    });
                    let Ok(()) = all;
                }
                (known, new)
            })
            .await;
            *seen = known;
            for reference in new {
                let stored = self.image(session, reference.clone()).await?;
                plan.bytes += stored.length();
                let entry = format!("media/{}.{}", reference.id, reference.extension());
                plan.images.push(Image { session: session.clone(), reference, entry });
            }
            looked(before + bytes);
        }
        plan.bytes += bytes;
        let (id, events) = (session.clone(), batches.events());
        plan.logs.push(Log { id, entry, header, events, bytes });
        Ok(())
    }

    async fn open(
        &self,
        root: &SessionId,
        session: &SessionId,
        cancel: &Cancel,
    ) -> Result<Box<dyn SessionHandle>, ExportError> {
        let opened = self.store.open(session, Access::Read, cancel).await;
        opened.map_err(|source: OpenError| {
            if session == root {
                return ExportError::Open(source);
            }
            ExportError::Descendant { root: root.clone(), session: session.clone(), source }
        })
    }

    async fn image(
        &self,
        session: &SessionId,
        reference: AttachmentRef,
    ) -> Result<StoredAttachment, ExportError> {
        let Some(attachments) = self.attachments.clone() else {
            let (session, image) = (session.clone(), reference.id);
            return Err(ExportError::NoAttachments { session, image });
        };
        let opened = off_the_workers(usize::MAX, move || attachments.open(&reference)).await;
        opened.map_err(|source| ExportError::Image { session: session.clone(), source })
    }
}
