//! Saving what is left of a damaged log.
//!
//! The damaged log is never touched: what is saved goes into a new session, written like any
//! other. That is the session under another id, not a fork of it: it keeps the header, the lineage
//! included, and every event keeps its seq, its time and its text.
//!
//! What is saved is the events that follow each other from the first on. Where one of them cannot
//! be read, saving ends, for a log has no holes and an event never gets another seq.

mod salvage;

use turnkeep_log::{Seq, SessionHeader, SessionId};

pub use self::salvage::Salvage;
pub(crate) use self::salvage::{Feed, SalvageStart, check, start};
use crate::{
    error::{
        AppendError, CreateError, FlushError, HalfSaved, IoFailure, NoHeader, RecoverError,
        SalvageError,
    },
    seam::{Cancel, SessionHandle, SessionStore},
    verify::{Progress, Verification},
};

/// How many bytes of events are stored at once. Most logs are smaller: those are stored as a whole
/// or not at all.
const BATCH_BYTES: usize = 32 << 20;

/// Which of the writers is kept where a log forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Branch {
    /// The one whose events come first in the log.
    First,
    /// The one that joined last.
    Last,
}

/// What to make of a damaged log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoverOptions {
    /// The id of the new session.
    pub into: SessionId,
    /// Which writer to keep where the log forks. A log that does not fork needs none.
    pub branch: Option<Branch>,
    /// The directory that the session worked in, for a log whose header cannot be read. Where it
    /// can, it knows better.
    pub cwd: Option<String>,
}

/// What was kept of a damaged log, and what was left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The new session.
    pub into: SessionId,
    /// How many events it holds.
    pub kept: u64,
    /// How many of them come from behind the place where a reader stops: out of a torn frame or
    /// line, or from after something that is damaged without any event being gone.
    pub salvaged: u64,
    /// How many events can be read in the damaged log that were not kept: behind a hole, on the
    /// other branch, or in front of readers that would refuse them.
    pub left: u64,
    /// Why the events end where they do; absent when nothing was left behind.
    pub stopped: Option<String>,
    /// Whether the header was made up, since the log has none that can be read.
    pub header_lost: bool,
    /// What is wrong with the damaged log.
    pub verification: Verification,
}

/// Saves what can be saved of a session into a new one.
///
/// The new session is stored in one piece where the events take no more than 32 MiB, so that it is
/// there whole or not at all. A larger one that cannot be stored to its end is left as far as it
/// got, and the error says so.
///
/// # Errors
///
/// Those of [`SessionStore::salvage`]; `already_exists` when there is a session of the new id;
/// `corrupt` when the header cannot be read and no directory was given, or when there is nothing to
/// save; `half_saved` when storing failed half-way; else as
/// [`create`](SessionStore::create) and [`append`](SessionHandle::append).
pub async fn recover(
    store: &dyn SessionStore,
    id: &SessionId,
    options: &RecoverOptions,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Recovery, RecoverError> {
    let mut salvage = store.salvage(id, options.branch, progress, cancel).await?;
    let header_lost = salvage.header().is_none();
    let header = header_of(&salvage, id, options)?;
    let handle = store.create(header, cancel).await?;
    let stored = pour(&mut salvage, handle.as_ref(), cancel).await;
    let closed = handle.close().await;
    let outcome = stored.and_then(|kept| match closed {
        Ok(()) => Ok(kept),
        Err(error) => {
            let source = std::io::Error::other(error.message.clone());
            let context = format!("session \"{}\": cannot finish it", options.into);
            Err((kept, IoFailure { context, source }.into()))
        }
    });
    match outcome {
        Ok(kept) => Ok(salvage.finish(options.into.clone(), kept, header_lost)),
        Err((0, error)) => Err(error),
        Err((stored, error)) => {
            let (id, into) = (id.clone(), options.into.clone());
            Err(HalfSaved { id, into, stored, message: error.to_string() }.into())
        }
    }
}

/// The damaged log's header, for the new session.
fn header_of(
    salvage: &Salvage,
    id: &SessionId,
    options: &RecoverOptions,
) -> Result<SessionHeader, NoHeader> {
    let into = options.into.clone();
    if let Some(header) = salvage.header() {
        // Fewer events may be kept than were inherited.
        let seed_length = header.seed_length.map(|length| length.min(salvage.events()));
        return Ok(SessionHeader { id: into, seed_length, ..header.clone() });
    }
    let cwd = options.cwd.clone().ok_or_else(|| NoHeader { id: id.clone() })?;
    let created_at = salvage.first_time().and_then(|time| u64::try_from(time).ok());
    let header = SessionHeader::new(into, created_at.unwrap_or_default());
    Ok(SessionHeader { cwd: Some(cwd), ..header })
}

/// Stores what is salvaged. Returns how many events that is, with an error too.
async fn pour(
    salvage: &mut Salvage,
    handle: &dyn SessionHandle,
    cancel: &Cancel,
) -> Result<u64, (u64, RecoverError)> {
    let mut next = Seq(0);
    loop {
        let batch = salvage.batch(BATCH_BYTES).await.map_err(|error| (next.0, error.into()))?;
        if batch.is_empty() {
            break;
        }
        next = handle.append(batch, cancel).await.map_err(|error| (next.0, error.into()))?;
    }
    handle.flush(cancel).await.map_err(|error| (next.0, error.into()))?;
    Ok(next.0)
}

/// Lets the failures of one operation become those of saving a log.
macro_rules! become_recover_error {
    ($operation:ident { $($failure:ident),+ } $(else $rest:ident => $other:expr)?) => {
        impl From<$operation> for RecoverError {
            fn from(error: $operation) -> Self {
                match error {
                    $($operation::$failure(failure) => failure.into(),)+
                    $($rest => $other,)?
                }
            }
        }
    };
}

become_recover_error! {
    SalvageError {
        NotFound, Forked, NothingToSave, LogChanged, FormatUnsupported, Corrupt, Cancelled,
        IoFailure
    }
}

become_recover_error! {
    CreateError {
        AlreadyExists, FormatUnsupported, Corrupt, NotSerializable, Cancelled, IoFailure
    }
}

become_recover_error! {
    AppendError {
        AlreadyExists, AlreadyOwned, OwnershipLost, NotSerializable, Poisoned, FormatUnsupported,
        Corrupt, Cancelled, IoFailure
    }
    else other => unexpected(&other)
}

become_recover_error! {
    FlushError {
        AlreadyExists, AlreadyOwned, OwnershipLost, Poisoned, FormatUnsupported, Corrupt,
        Cancelled, IoFailure
    }
    else other => unexpected(&other)
}

/// What a handle of our own, which is open to write and given what comes next, does not answer.
fn unexpected(error: &dyn std::error::Error) -> RecoverError {
    let source = std::io::Error::other(error.to_string());
    IoFailure { context: "cannot store what was saved".to_owned(), source }.into()
}
