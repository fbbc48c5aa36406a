//! What clients keep here of settled messages: a cache of theirs, on the disk of the host.
//!
//! A client that opens a session shows what it knows of it before the first page has come. Where
//! clients have no room of their own that is worth it, the host keeps that for them. It is theirs:
//! they write settled messages, remove what has gone, and say how much may stay. The host's own
//! answers never come from here.
//!
//! | module | |
//! |---|---|
//! | `path` | which file it is |
//! | `database` | the file: opened, checked, set up |
//! | `request` | what clients ask, checked |
//! | `entry` | a message to be kept, its hash and size; one that was kept, and how it is told |
//! | `rows` | what is done with the rows |
//!
//! One connection does everything, one operation at a time, away from the threads that answer
//! requests. Other processes may use the file at the same time.

mod database;
mod entry;
pub(crate) mod path;
pub(crate) mod request;
mod rows;

use std::{path::Path, sync::Arc};

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use self::{
    database::Database,
    request::{Budget, Generation, Scope},
};
pub(crate) use self::{
    database::OpenError,
    entry::{Entry, Reasoning, Record, write_scope},
    rows::{Evicted, Outcome},
};
use crate::blocking::on_a_thread;

/// How large the file may grow. Clients bound what they keep by evicting; this is for those that
/// do not.
const MOST_BYTES: u64 = 4 << 30;

/// How large the body of a request may be.
pub(crate) const MAX_BODY_BYTES: usize = 72 << 20;

/// Room for bodies is counted in units of this many bytes.
const UNIT_BYTES: usize = 64 << 10;

/// How many bytes of bodies may be in memory at a time, over all requests: two of the largest.
const ROOM_BYTES: usize = 2 * MAX_BODY_BYTES;

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct TranscriptCache {
    database: Arc<Mutex<Database>>,
    room: Arc<Semaphore>,
}

impl TranscriptCache {
    /// Opens the file that a setting names; `None`, and a warning, when that cannot be.
    pub(crate) async fn open(setting: &Path) -> Option<Self> {
        let setting = setting.to_owned();
        match on_a_thread(move || Self::open_now(&setting, MOST_BYTES)).await {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::warn!(%error, "the transcript cache is off");
                None
            }
        }
    }

    fn open_now(setting: &Path, most_bytes: u64) -> Result<Self, OpenError> {
        let database = Database::open(&path::resolve(setting)?, most_bytes)?;
        let room = Arc::new(Semaphore::new(ROOM_BYTES / UNIT_BYTES));
        Ok(Self { database: Arc::new(Mutex::new(database)), room })
    }

    /// Waits for room for a body of at most this many bytes.
    pub(crate) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = bytes.min(MAX_BODY_BYTES).div_ceil(UNIT_BYTES);
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        // It is never closed, which would be the one error.
        Arc::clone(&self.room).acquire_many_owned(units).await.ok()
    }

    pub(crate) async fn session(&self, scope: Scope) -> rusqlite::Result<Vec<Record>> {
        self.run(move |database| database.session(&scope)).await
    }

    pub(crate) async fn message(
        &self,
        scope: Scope,
        id: String,
    ) -> rusqlite::Result<Option<Record>> {
        self.run(move |database| database.message(&scope, &id)).await
    }

    pub(crate) async fn put(&self, scope: Scope, entry: Entry) -> rusqlite::Result<Outcome> {
        self.run(move |database| database.put(&scope, entry)).await
    }

    pub(crate) async fn remove_message(&self, scope: Scope, id: String) -> rusqlite::Result<()> {
        self.run(move |database| database.remove_message(&scope, &id)).await
    }

    pub(crate) async fn clear_session(&self, scope: Scope) -> rusqlite::Result<()> {
        self.run(move |database| database.clear_session(&scope)).await
    }

    pub(crate) async fn clear_generation(&self, of: Generation) -> rusqlite::Result<()> {
        self.run(move |database| database.clear_generation(&of)).await
    }

    pub(crate) async fn clear_all(&self) -> rusqlite::Result<()> {
        self.run(Database::clear_all).await
    }

    pub(crate) async fn evict(&self, budget: Budget) -> rusqlite::Result<Evicted> {
        self.run(move |database| database.evict(&budget)).await
    }

    /// Does one thing with the database. Whoever waits for it waits here, where no thread is held;
    /// what has begun ends even when nobody waits for it any more.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> rusqlite::Result<T> + Send + 'static,
    ) -> rusqlite::Result<T> {
        let mut database = Arc::clone(&self.database).lock_owned().await;
        on_a_thread(move || work(&mut database)).await
    }
}
