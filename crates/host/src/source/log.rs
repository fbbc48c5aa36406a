//! Sessions of our own store.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use prometheus_client::registry::Unit;
use thiserror::Error;
use turnkeep_log::{
    Event, Seq, SessionId, Text,
    json::{Json, Kind},
};
use turnkeep_store::{
    Access, Cancel, EventRange, SessionEntry, SessionHandle, SessionStat, SessionStore,
    error::{OpenError, ReadError, StatError},
};
use turnkeep_turns::{
    Answer, MessageError, PageRequest, SourceKind, SourcePage, TurnPageError,
    cursor::{decode_seq, encode_seq},
};

use super::{
    Fetched, Source, Whole,
    folds::{Entry, FoldLimits, Folds, Glimpse, SharedFold},
};
use crate::{
    blocking::off_the_workers,
    metrics::{Reading, Value, bytes_of},
};

/// How many small sessions are read at a time for a listing.
const GLIMPSES_AT_A_TIME: usize = 16;

/// The store, read as records.
#[derive(Debug)]
pub(crate) struct LogSource {
    store: Arc<dyn SessionStore>,
    folds: Folds,
    limits: FoldLimits,
}

/// Why a session of the store cannot be read as records.
#[derive(Debug, Error)]
pub(crate) enum LogError {
    #[error(transparent)]
    Stat(#[from] StatError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl LogError {
    /// The stable word for what went wrong.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Stat(error) => error.kind(),
            Self::Open(error) => error.kind(),
            Self::Read(error) => error.kind(),
        }
    }
}

impl LogSource {
    /// Reads sessions of this store.
    pub(crate) fn new(store: Arc<dyn SessionStore>, limits: FoldLimits) -> Self {
        Self { store, folds: Folds::new(limits.cache_bytes), limits }
    }

    /// What is kept of the store at the moment.
    pub(crate) fn readings(&self) -> [Reading; 2] {
        let (sessions, bytes) = self.folds.size();
        let state = |number| Value::State(u32::try_from(number).map_or(f64::MAX, f64::from));
        [
            Reading {
                name: "store_open_sessions",
                help: "Sessions of the store that are kept open and folded, each with a handle",
                unit: None,
                value: state(sessions),
            },
            Reading {
                name: "fold_cache",
                help: "What is kept of folded sessions",
                unit: Some(Unit::Bytes),
                value: Value::State(bytes_of(bytes)),
            },
        ]
    }

    /// The store itself.
    pub(crate) fn store(&self) -> &dyn SessionStore {
        &*self.store
    }

    /// What the store knows of a session without reading it; `None` when it holds no such one.
    pub(crate) async fn stat(&self, id: &SessionId) -> Result<Option<SessionStat>, LogError> {
        Ok(self.store.stat(id, &Cancel::never()).await?)
    }

    /// Why a session of this id cannot be read that [`stat`](Self::stat) knows nothing of; `None`
    /// when there is nothing that is amiss. A log whose first line is not whole has no header, and
    /// is told from no log at all by opening it.
    pub(crate) async fn hidden_trouble(&self, id: &SessionId) -> Option<LogError> {
        let trouble = self.open(id).await.err()?;
        (trouble.kind() != "not_found").then_some(trouble)
    }

    /// The session as of `stat` or later.
    ///
    /// What is cached of it is taken; the events that came since are read and folded in.
    pub(crate) async fn session(&self, stat: &SessionStat) -> Result<LogSession, LogError> {
        let id = &stat.header.id;
        let shared = self.folds.shared(id);
        let mut slot = Arc::clone(&shared).lock_owned().await;
        let current = slot.as_ref().is_some_and(|entry| entry.is_at(stat));
        if !current {
            let known = slot.as_ref().filter(|entry| entry.continues_to(stat));
            let on = match known {
                Some(entry) => read_on(entry).await?,
                None => None,
            };
            let anew = on.is_none();
            let (handle, events) = if let Some(on) = on {
                on
            } else {
                let handle = self.open(id).await?;
                let events = handle.read(EventRange::ALL, &Cancel::never()).await?;
                (handle, events)
            };
            let stat = stat.clone();
            // From here on nothing is waited for in between: what was folded is never lost to a
            // request that is called off.
            let folding = tokio::task::spawn_blocking(move || {
                let known = slot.take().filter(|_| !anew);
                let mut entry = known.unwrap_or_else(|| Entry::new(&stat, handle));
                entry.extend(&events, stat.revision);
                *slot = Some(entry);
                slot
            });
            match folding.await {
                Ok(folded) => slot = folded,
                Err(failed) => std::panic::resume_unwind(failed.into_panic()),
            }
        }
        if let Some(entry) = slot.as_ref() {
            self.folds.used(id, &shared, entry.bytes());
        }
        Ok(LogSession { fold: shared })
    }

    /// Opens a session to read it.
    pub(crate) async fn open(&self, id: &SessionId) -> Result<Arc<dyn SessionHandle>, LogError> {
        Ok(Arc::from(self.store.open(id, Access::Read, &Cancel::never()).await?))
    }

    /// What is known of a session at the cost of a look: from the cache, or from reading it when it
    /// is small enough to be read for a listing.
    pub(crate) async fn glimpse(&self, stat: &SessionStat) -> Option<Glimpse> {
        if let Some(known) = self.folds.glimpse(stat) {
            return Some(known);
        }
        if !self.limits.listing.let_in(stat) {
            return None;
        }
        self.session(stat).await.ok()?.glimpse().await
    }

    /// What is known of several sessions at that cost, in their order. So many are read at a time
    /// that a slow disk does not make a page of small sessions slow.
    pub(crate) async fn glimpses(&self, entries: &[SessionEntry]) -> Vec<Option<Glimpse>> {
        let stats: Vec<_> = entries.iter().map(|entry| entry.stat.clone()).collect();
        let looks = stats.into_iter().map(|stat| async move { self.glimpse(stat.as_ref()?).await });
        stream::iter(looks).buffered(GLIMPSES_AT_A_TIME).collect().await
    }
}

/// What came since; `None` when it is not the same log any more.
///
/// A log may have been replaced by another one with the same header. The newest event that is
/// known is read again, since that one will not be in its place.
async fn read_on(entry: &Entry) -> Result<Option<(Arc<dyn SessionHandle>, Vec<Event>)>, ReadError> {
    let handle = Arc::clone(entry.handle());
    let first = entry.newest().map_or(Seq(0), Event::seq);
    match handle.read(EventRange::from(first), &Cancel::never()).await {
        Ok(events) => {
            let same = entry.newest().is_none_or(|newest| events.first() == Some(newest));
            Ok(same.then_some((handle, events)))
        }
        Err(ReadError::LogShrank(_) | ReadError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Some of a session's records.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordPage {
    /// Oldest first.
    pub(crate) records: Vec<Text>,
    /// The cursor of older ones, when there are any.
    pub(crate) next: Option<String>,
}

/// One session of the store.
#[derive(Debug)]
pub(crate) struct LogSession {
    fold: SharedFold,
}

impl LogSession {
    /// What a listing says of it.
    pub(crate) async fn glimpse(&self) -> Option<Glimpse> {
        self.fold.lock().await.as_ref().map(Entry::glimpse)
    }

    /// The newest records before this event, oldest first, and where older ones start.
    pub(crate) async fn records(&self, before: Option<Seq>, limit: usize) -> RecordPage {
        let slot = self.fold.lock().await;
        let Some(entry) = slot.as_ref() else { return RecordPage::default() };
        let page = entry.fold().page(before, limit);
        let oldest = page.rows.first().map(|(seq, _)| encode_seq(*seq));
        let records = page.rows.into_iter().map(|(_, record)| record.text().clone()).collect();
        RecordPage { records, next: oldest.filter(|_| page.more) }
    }

    async fn record(&self, id: &str) -> Result<Text, MessageError> {
        let slot = self.fold.lock().await;
        let entry = slot.as_ref().ok_or(MessageError::Upstream)?;
        let record = entry.fold().record(id).ok_or(MessageError::NotFound)?;
        Ok(record.text().clone())
    }
}

#[async_trait]
impl Source for LogSession {
    fn kind(&self) -> SourceKind {
        SourceKind::Log
    }

    async fn page(&self, request: &PageRequest) -> Result<Fetched, TurnPageError> {
        let before = match request.before.as_deref().map(decode_seq) {
            Some(None) => return Ok(Answer::BadCursor.into()),
            Some(seq) => seq,
            None => None,
        };
        let page = {
            let slot = self.fold.lock().await;
            let Some(entry) = slot.as_ref() else { return Ok(Answer::Failed.into()) };
            entry.fold().page(before, request.limit)
        };
        let oldest = page.rows.first().map(|(seq, _)| encode_seq(*seq));
        let next = oldest.filter(|_| page.more);
        let bytes = page.rows.iter().map(|(_, record)| record.text().len()).sum();
        let page = off_the_workers(bytes, || SourcePage::from_log(page.rows, next)).await?;
        Ok(Fetched { answer: Answer::Page(page), bytes, room: None })
    }

    async fn message(&self, id: &str) -> Result<Option<Whole>, MessageError> {
        let text = self.record(id).await?;
        Ok(Some(Whole { text, room: None }))
    }

    async fn diffs(&self, message: &str) -> Result<Whole, MessageError> {
        let none = || Whole { text: Text::from("[]"), room: None };
        let message = match self.record(message).await {
            Err(MessageError::NotFound) => return Ok(none()),
            message => message?,
        };
        let record = Json::parse(&message).map_err(|_| MessageError::Internal)?;
        let diffs = record.path(&["info", "summary", "diffs"]);
        let diffs = diffs.filter(|diffs| diffs.kind() == Kind::Array);
        let text = diffs.map(|diffs| message.slice_of(diffs.text()));
        Ok(text.map_or_else(none, |text| Whole { text, room: None }))
    }
}
