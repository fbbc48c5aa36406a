//! What all backends have in common: the asynchronous shell around a synchronous core.
//!
//! A backend says how one log is read ([`ReadLog`]) and written ([`WriteLog`]) and how sessions
//! are found ([`Core`]), as plain blocking code. The rest is here, once: one write handle a
//! session, its mutations in the order of the calls, what closing and dropping mean, pending
//! sessions, the order of a listing, and which errors come of it.
//!
//! | module | what it does |
//! |---|---|
//! | `registry` | who writes what within a store |
//! | `queue`, `mutations`, `writer` | one mutation after the other; what a failed one means |
//! | `live` | events that are published by the session's id, and stored a moment later together |
//! | `writing`, `handle`, `closed` | a session held open, and how that ended |
//! | `store`, `route` | the operations of a store; those that reach a handle by its session's id |
//! | `surface` | what a store is to its users |
//! | `trash` | deleting sessions and undoing that |
//! | `rounds` | syncs that are due, of many sessions at once |
//! | `handle` | a session held open |
//! | `store` | the operations of a store |
//! | `inspect` | verifying, and saving what can be saved |
//! | `intake`, `listing`, `failure` | from records to events; a page of entries; what went wrong |

mod closed;
pub(crate) mod failure;
mod handle;
pub(crate) mod inspect;
pub(crate) mod intake;
pub(crate) mod listing;
mod live;
mod mutations;
mod queue;
mod registry;
mod rounds;
mod route;
mod store;
mod surface;
mod trash;
mod writer;
mod writing;

use std::{io, time::SystemTime};

pub use self::live::LiveOptions;
#[cfg(feature = "sim")]
pub(crate) use self::{
    handle::Reading,
    mutations::Owned,
    store::{own, reserve},
};
pub(crate) use self::{
    handle::{ReadLog, Slice},
    inspect::{Inspect, salvage, verify, verify_storage},
    registry::{Registry, locked},
    route::{dispose, flush, flush_session, publish},
    store::{Core, TakenUp, check, create, list, open, stat},
    surface::session_store,
    trash::{Trash, delete, deletion_time, empty_trash, restore, trash},
    writer::{Broken, Setback, WriteLog},
};
use crate::error::IoFailure;

/// Runs blocking work on the blocking pool, to its end even if nobody waits for it any more.
async fn on_pool<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, IoFailure> {
    let failed = |source| IoFailure { context: format!("cannot {doing}"), source };
    let runtime =
        tokio::runtime::Handle::try_current().map_err(io::Error::other).map_err(failed)?;
    runtime.spawn_blocking(work).await.map_err(io::Error::other).map_err(failed)
}

/// The time, in milliseconds since the epoch; 0 where the clock is before it.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
