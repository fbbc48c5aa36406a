//! Where session logs live.
//!
//! A session is an append-only log of events. A store keeps many of them, by id, through crashes,
//! and lets any number of readers follow a session that one writer appends to.
//!
//! | | |
//! |---|---|
//! | [`SessionStore`], [`SessionHandle`] | the seam that programs are written against |
//! | [`jsonl`] | sessions as files below one directory, in the format of DSH |
//! | `sqlite` | with the feature of this name: sessions in one SQLite database |
//! | [`memory`] | sessions that end with the process, for tests and demonstrations |
//! | [`resume`] | closes the turn that a session's last writer left open |
//! | [`cold`] | looking at sessions that nobody writes, and forking them |
//! | [`attachments`] | the images that logs refer to |
//! | [`verify`], [`recover`] | whether a log is intact, and saving what is left of one that is not |
//! | [`error`] | what can go wrong, one enum per operation |
//! | `contract` | with the feature of this name: the tests that every backend passes |
//!
//! ```
//! use turnkeep_log::{EventDraft, Seq, SessionHeader, SessionId, json::JsonText};
//! use turnkeep_store::{
//!     Access, Cancel, EventRange, SessionStore,
//!     jsonl::{JsonlOptions, JsonlStore},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! # let root = root.path();
//! let store = JsonlStore::open(JsonlOptions::new(root))?;
//! let never = Cancel::never();
//!
//! // A new session: owned by this handle, stored with its first batch.
//! let id = SessionId::new("session-1").ok_or("an id is not empty")?;
//! let writer = store.create(SessionHeader::new(id.clone(), 1_700_000_000_000), &never).await?;
//! let data = JsonText::parse(&r#"{"turn":1}"#.into())?;
//! let event = EventDraft::new("turn/start", &data).complete(Seq(0), 1_700_000_000_000)?;
//! let next = writer.append(vec![event], &never).await?;
//! assert_eq!(next, Seq(1), "on disk, and the next event carries this seq");
//!
//! // Anyone may read it meanwhile.
//! let reader = store.open(&id, Access::Read, &never).await?;
//! let events = reader.read(EventRange::ALL, &never).await?;
//! assert_eq!(events[0].event_type(), "turn/start");
//!
//! writer.close().await?;
//! # Ok(())
//! # }
//! ```

/// The examples of the project's README, which must compile and hold.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub mod attachments;
mod batches;
pub mod cold;
#[cfg(feature = "contract")]
pub mod contract;
mod durability;
pub mod error;
pub mod jsonl;
pub mod memory;
mod outline;
pub mod recover;
mod resume;
mod seam;
mod segment;
mod shell;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod trash;
pub mod verify;

pub use batches::EventBatches;
pub use durability::Durability;
pub use resume::{ResumeError, resume};
pub use seam::{
    Access, Cancel, EventRange, ListQuery, Revision, Routed, SessionEntry, SessionHandle,
    SessionHints, SessionList, SessionStat, SessionState, SessionStore,
};
pub use shell::LiveOptions;
pub use trash::{Deleted, Emptied, Emptying, Trashed};
