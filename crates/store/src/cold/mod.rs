//! Looking at sessions that nobody writes.
//!
//! Most of what a store holds is *cold*: no write handle of this store has it open. Programs look
//! at such sessions again and again, and nothing about them changes in between. What is here works
//! through the seam alone, over any backend:
//!
//! | | |
//! |---|---|
//! | [`ColdCache`] | reads a session once, and keeps what was read while its revision stands |
//! | [`Lease`], [`ColdSession`] | what was read: the header, the events, and what would close an open turn |
//! | [`BlankProbe`] | what a list says of each session, at the cost of reading only the small ones |
//! | [`fork`] | a new session that starts with the events of another |
//!
//! ## When what is kept counts
//!
//! Every look takes the session's revision first. What is kept answers if it came from the same
//! store and its revision, taken *before* it was read, is the same; equal revisions mean that the
//! log has not changed. A log that grew while it was read is kept under the revision from before,
//! which no later look asks for: it is read again, and never taken for what it is not.
//!
//! A session that a write handle of the same store owns is not cold. It is read anew each time and
//! not kept, and its open turn is not closed, since it may well be going on. A session can be
//! opened to write at any moment, so this is asked again after every step that waits.
//!
//! ## What is let go
//!
//! A lease pins what it stands for: it stays as it is, whatever is written, evicted or kept since.
//! What no lease pins goes by disuse once there is more of it than [`ColdOptions`] allows.
//!
//! ```
//! use std::sync::Arc;
//!
//! use turnkeep_store::{
//!     Cancel, SessionStore,
//!     cold::ColdCache,
//!     memory::{Disk, MemoryStore},
//! };
//! # use turnkeep_log::{EventDraft, Seq, SessionHeader, SessionId, json::JsonText};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let never = Cancel::never();
//! # let id = SessionId::new("session-1").ok_or("an id is not empty")?;
//! let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new(&Disk::new()));
//! # let writer = store.create(SessionHeader::new(id.clone(), 5), &never).await?;
//! # let data = JsonText::parse(&r#"{"turn":1}"#.into())?;
//! # writer.append(vec![EventDraft::new("turn/start", &data).complete(Seq(0), 5)?], &never).await?;
//! # writer.close().await?;
//!
//! // The writer died in the middle of a turn.
//! let cache = ColdCache::default();
//! let seen = cache.observe(&store, &id, &never).await?;
//! assert_eq!(seen.events().len(), 1, "the log as it is");
//! let closed = seen.balanced().last().map(|event| event.event_type().to_owned());
//! assert_eq!(closed.as_deref(), Some("turn/end"), "as a resume would find it");
//! # Ok(())
//! # }
//! ```

mod blank;
mod cache;
mod flight;
mod forking;
mod kept;
mod session;
mod several;

pub use self::{
    blank::{BlankGates, BlankProbe, Glance},
    cache::{ColdCache, ColdOptions},
    forking::{ForkRequest, ForkSessionError, Forked, fork},
    session::{ColdSession, Lease, WINDOW_SIDE},
};
pub use crate::error::ColdError;
