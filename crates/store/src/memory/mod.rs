//! Sessions in memory.
//!
//! For tests and demonstrations, and as the shortest backend there is. It keeps every promise of
//! the seam except the one about crashes: what it stores ends with its [`Disk`].
//!
//! ```
//! use turnkeep_store::{
//!     Cancel, SessionStore,
//!     memory::{Disk, MemoryStore},
//! };
//! # use turnkeep_log::{SessionHeader, SessionId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let id = SessionId::new("session-1").ok_or("an id is not empty")?;
//! # let header = SessionHeader::new(id.clone(), 1_700_000_000_000);
//! let disk = Disk::new();
//! let never = Cancel::never();
//!
//! let writer = MemoryStore::new(&disk).create(header, &never).await?;
//! writer.flush(&never).await?;
//!
//! // Another store on the same disk, as another process would have it.
//! let stat = MemoryStore::new(&disk).stat(&id, &never).await?;
//! assert_eq!(stat.and_then(|stat| stat.event_count), Some(0));
//! # Ok(())
//! # }
//! ```

mod disk;
mod inspect;
mod log;
mod store;

pub use self::{disk::Disk, store::MemoryStore};
