//! The operations of a store that reach write handles by the ids of their sessions.

use std::sync::Arc;

use turnkeep_log::{Event, SessionId};

use super::{
    closed::{Ended, warn},
    handle::not_run,
    queue::{NotRun, Submitted},
    store::{Core, check},
    writer::WriteLog,
    writing::Writing,
};
use crate::{
    error::{CloseError, FlushError, FlushStoreError, HandleClosed, PublishError},
    seam::{Cancel, Routed},
};

/// [`SessionStore::publish`](crate::SessionStore::publish).
pub(crate) async fn publish<C: Core>(
    core: &Arc<C>,
    id: &SessionId,
    event: Event,
) -> Result<Routed, PublishError> {
    // Not the writing side itself: that is the handle's to let go of.
    let live = core.registry().writing(id).map(|writing| Arc::clone(writing.live()));
    match live {
        Some(live) => live.publish(event).await.map(|()| Routed::ToWriter),
        None => Ok(Routed::NoWriter),
    }
}

/// [`SessionStore::flush_session`](crate::SessionStore::flush_session).
pub(crate) async fn flush_session<C: Core>(
    core: &Arc<C>,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<Routed, FlushError> {
    check(cancel, "flush")?;
    let Some(flush) = core.registry().writing(id).map(|writing| ask(&writing)) else {
        return Ok(Routed::NoWriter);
    };
    match flush.outcome(id, cancel).await? {
        // Whoever closes the handle hears what went wrong, and knows of no flush.
        Flushed::ByClosing(Err(_)) => {
            Err(HandleClosed { id: id.clone(), operation: "flush" }.into())
        }
        _ => Ok(Routed::ToWriter),
    }
}

/// [`SessionStore::dispose`](crate::SessionStore::dispose).
pub(crate) async fn dispose<C: Core>(core: &Arc<C>, id: &SessionId) -> Result<Routed, CloseError> {
    let Some(closing) = core.registry().writing(id).map(|writing| writing.close()) else {
        return Ok(Routed::NoWriter);
    };
    let closed = closing.outcome().await;
    if let Err(error) = &closed {
        warn(error, "a session was disposed of, but its last events could not be stored");
    }
    closed.map(|()| Routed::ToWriter)
}

/// [`SessionStore::flush`](crate::SessionStore::flush).
pub(crate) async fn flush<C: Core>(core: &Arc<C>, cancel: &Cancel) -> Result<(), FlushStoreError> {
    // All are asked before any is waited for. A handle that is still being opened has accepted
    // nothing.
    let owners = core.registry().owners().into_iter();
    let asked = owners.filter_map(|(id, owner)| {
        let flush = match owner.writing() {
            Some(writing) => ask(&writing),
            None => Flush::Closing(owner.closed()?.wait()),
        };
        Some((id, flush))
    });
    let asked: Vec<_> = asked.collect();
    let mut failures = Vec::new();
    for (id, flush) in asked {
        match flush.outcome(&id, cancel).await {
            Ok(Flushed::ByFlushing | Flushed::ByClosing(Ok(()))) => {}
            Ok(Flushed::ByClosing(Err(error))) => {
                warn(&error, "a session that was closed while its store was flushed has failed");
            }
            Err(failure) => failures.push((id, failure)),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(FlushStoreError { failures }) }
}

/// A handle that was asked to flush.
enum Flush {
    Asked(Submitted<Result<(), FlushError>>),
    /// It was being closed already.
    Closing(Ended),
    /// Something broke off in it.
    Lost,
}

/// How a flush came about.
enum Flushed {
    ByFlushing,
    ByClosing(Result<(), CloseError>),
}

impl Flush {
    async fn outcome(self, id: &SessionId, cancel: &Cancel) -> Result<Flushed, FlushError> {
        match self {
            Self::Asked(submitted) => match submitted.outcome(cancel).await {
                Ok(outcome) => outcome.map(|()| Flushed::ByFlushing),
                Err(why) => Err(not_run(why, id.clone(), "flush")),
            },
            Self::Lost => Err(not_run(NotRun::Lost, id.clone(), "flush")),
            Self::Closing(closed) => tokio::select! {
                biased;
                closed = closed.outcome() => Ok(Flushed::ByClosing(closed)),
                () = cancel.cancelled() => {
                    Err(not_run(NotRun::Cancelled, id.clone(), "flush"))
                }
            },
        }
    }
}

/// Asks a handle to flush.
fn ask<L: WriteLog>(writing: &Writing<L>) -> Flush {
    match writing.flush() {
        Ok(submitted) => Flush::Asked(submitted),
        Err(_) if writing.live().is_closed() => Flush::Closing(writing.closed().wait()),
        Err(_) => Flush::Lost,
    }
}
