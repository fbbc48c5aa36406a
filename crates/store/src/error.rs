//! What can go wrong, one enum per operation.
//!
//! Each failure is a struct of its own, so that it carries the same fields and the same text
//! wherever it occurs; each operation has an enum of those it can meet. Every enum has a `kind`,
//! a stable word that programs may match on:
//!
//! `not_found`, `already_exists`, `already_owned`, `read_only`, `handle_closed`,
//! `ownership_lost`, `format_unsupported`, `corrupt`, `not_serializable`, `seq_mismatch`,
//! `log_shrank`, `poisoned`, `cancelled`, `io`; `bad_cursor` for a listing, and `usage` for a store
//! that was set up wrongly; `source_conflict` for a cold read, and `invalid_boundary` and
//! `open_turn` for a fork.

use std::{io, path::PathBuf};

use thiserror::Error;
use turnkeep_log::{Seq, SessionId};

use crate::seam::EventRange;

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;

/// No session of this id exists.
#[derive(Debug, Error)]
#[error("session \"{id}\" not found; `turnkeep ls` lists what the store holds")]
pub struct NotFound {
    /// The id asked for.
    pub id: SessionId,
}

/// A session of this id exists, stored or pending.
#[derive(Debug, Error)]
#[error("session \"{id}\" already exists; choose another id")]
pub struct AlreadyExists {
    /// The id asked for.
    pub id: SessionId,
}

/// No session of this id is in the trash.
#[derive(Debug, Error)]
#[error("session \"{id}\" not found in the trash; `turnkeep trash` lists what is there")]
pub struct NotInTrash {
    /// The id asked for.
    pub id: SessionId,
}

/// Someone holds the session open to write.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\" is already owned by an active write handle; \
     read it, or write once its owner has closed it or ended"
)]
pub struct AlreadyOwned {
    /// The session.
    pub id: SessionId,
}

/// A write was asked of a read handle.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\": {operation} is not available on a read handle; open the session to write"
)]
pub struct ReadOnly {
    /// The session.
    pub id: SessionId,
    /// What was asked.
    pub operation: &'static str,
}

/// The handle was closed before the call.
#[derive(Debug, Error)]
#[error("session \"{id}\": {operation} on a closed handle; open the session again")]
pub struct HandleClosed {
    /// The session.
    pub id: SessionId,
    /// What was asked.
    pub operation: &'static str,
}

/// Someone else changed the log under a write handle.
#[derive(Debug, Error)]
#[error("session \"{id}\": write ownership was lost; close this handle and reopen ({evidence})")]
pub struct OwnershipLost {
    /// The session.
    pub id: SessionId,
    /// What gave it away, and what became of the batch.
    pub evidence: String,
}

/// The log is in a form that this build cannot faithfully read.
#[derive(Debug, Error)]
#[error("{message}{}", location(path.as_ref()))]
pub struct FormatUnsupported {
    /// The session.
    pub id: SessionId,
    /// What it is, and what to do.
    pub message: String,
    /// The log itself, when the session has a file of its own. Not for other people's eyes.
    pub path: Option<PathBuf>,
}

/// What is stored is not a log.
#[derive(Debug, Error)]
#[error("{message}{}", location(path.as_ref()))]
pub struct Corrupt {
    /// The session.
    pub id: SessionId,
    /// What is wrong, and where.
    pub message: String,
    /// The log itself, when the session has a file of its own. Not for other people's eyes.
    pub path: Option<PathBuf>,
}

fn location(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" (raw log: {})", path.display())).unwrap_or_default()
}

/// The data cannot be written as JSON and read back the same.
#[derive(Debug, Error)]
#[error("session \"{id}\": {what} is not losslessly JSON-serializable: {problem}")]
pub struct NotSerializable {
    /// The session.
    pub id: SessionId,
    /// Which part.
    pub what: String,
    /// Why.
    pub problem: String,
}

/// A batch does not continue the log.
#[derive(Debug, Error)]
#[error(
    "append seq mismatch for \"{id}\": expected {expected} at index {index}, got {got}; \
     nothing of this batch was stored"
)]
pub struct SeqMismatch {
    /// The session.
    pub id: SessionId,
    /// The seq that had to come.
    pub expected: Seq,
    /// Where in the batch.
    pub index: usize,
    /// The seq that came.
    pub got: Seq,
}

/// A log is shorter than a handle has shown it to be.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\": stored log shrank below a previously observed prefix \
     ({found} < {observed}); something else cut the file"
)]
pub struct LogShrank {
    /// The session.
    pub id: SessionId,
    /// How many events there are.
    pub found: u64,
    /// How many there have been.
    pub observed: u64,
}

/// A sync or a rollback failed earlier, so nobody can say what is on disk.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\": an earlier write could not be confirmed ({cause}); \
     close this handle and open the session again to see what was stored"
)]
pub struct Poisoned {
    /// The session.
    pub id: SessionId,
    /// What failed.
    pub cause: String,
}

/// The caller called the operation off before it took effect.
#[derive(Debug, Error)]
#[error("{operation} was cancelled before it took effect")]
pub struct Cancelled {
    /// What was called off.
    pub operation: &'static str,
}

/// The storage failed.
#[derive(Debug, Error)]
#[error("{context}: {source}")]
pub struct IoFailure {
    /// What was being done, to what.
    pub context: String,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// A directory cannot be the root of a store.
#[derive(Debug, Error)]
#[error("{} cannot hold sessions: {problem}", root.display())]
pub struct BadRoot {
    /// The directory.
    pub root: PathBuf,
    /// What is wrong with it, and what to do.
    pub problem: String,
}

/// Declares the error enum of one operation: which failures it can meet.
macro_rules! operation_error {
    ($(#[$doc:meta])* $name:ident { $($failure:ident => $kind:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Error)]
        #[error(transparent)]
        pub enum $name {
            $(
                #[doc = concat!("`", $kind, "`: see [`", stringify!($failure), "`].")]
                $failure(#[from] $failure),
            )+
        }

        impl $name {
            /// The words that [`kind`](Self::kind) may give.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// The stable word for what went wrong.
            #[must_use]
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$failure(_) => $kind,)+
                }
            }
        }
    };
}

operation_error! {
    /// Why a store could not be opened.
    StoreError {
        BadRoot => "usage",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`create`](crate::SessionStore::create) failed.
    CreateError {
        AlreadyExists => "already_exists",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        NotSerializable => "not_serializable",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`open`](crate::SessionStore::open) failed.
    OpenError {
        NotFound => "not_found",
        AlreadyOwned => "already_owned",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`stat`](crate::SessionStore::stat) failed.
    StatError {
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`list`](crate::SessionStore::list) failed.
    ListError {
        BadListCursor => "bad_cursor",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`read`](crate::SessionHandle::read) failed.
    ReadError {
        NotFound => "not_found",
        HandleClosed => "handle_closed",
        LogShrank => "log_shrank",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`append`](crate::SessionHandle::append) failed.
    AppendError {
        ReadOnly => "read_only",
        HandleClosed => "handle_closed",
        AlreadyExists => "already_exists",
        AlreadyOwned => "already_owned",
        OwnershipLost => "ownership_lost",
        NotSerializable => "not_serializable",
        SeqMismatch => "seq_mismatch",
        Poisoned => "poisoned",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`flush`](crate::SessionHandle::flush) failed.
    FlushError {
        ReadOnly => "read_only",
        HandleClosed => "handle_closed",
        AlreadyExists => "already_exists",
        AlreadyOwned => "already_owned",
        OwnershipLost => "ownership_lost",
        Poisoned => "poisoned",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
        NotSerializable => "not_serializable",
        SeqMismatch => "seq_mismatch",
    }
}

impl From<AppendError> for FlushError {
    /// Of storing what was published before.
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::ReadOnly(failure) => failure.into(),
            AppendError::HandleClosed(failure) => failure.into(),
            AppendError::AlreadyExists(failure) => failure.into(),
            AppendError::AlreadyOwned(failure) => failure.into(),
            AppendError::OwnershipLost(failure) => failure.into(),
            AppendError::NotSerializable(failure) => failure.into(),
            AppendError::SeqMismatch(failure) => failure.into(),
            AppendError::Poisoned(failure) => failure.into(),
            AppendError::FormatUnsupported(failure) => failure.into(),
            AppendError::Corrupt(failure) => failure.into(),
            AppendError::Cancelled(failure) => failure.into(),
            AppendError::IoFailure(failure) => failure.into(),
        }
    }
}

/// An event found no room, and what is there before it cannot be stored.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\": the event was not taken, for there is no room behind those before it, which \
     could not be stored: {source}"
)]
pub struct BufferFull {
    /// The session.
    pub id: SessionId,
    /// Why they could not be stored. They are kept, and trying again may do.
    pub source: AppendError,
}

/// Why [`publish`](crate::SessionStore::publish) did not take an event.
#[derive(Debug, Error)]
#[error(transparent)]
pub enum PublishError {
    /// `handle_closed`: see [`HandleClosed`].
    HandleClosed(#[from] HandleClosed),
    /// `ownership_lost`: see [`OwnershipLost`].
    OwnershipLost(#[from] OwnershipLost),
    /// `not_serializable`: see [`NotSerializable`].
    NotSerializable(#[from] NotSerializable),
    /// `seq_mismatch`: see [`SeqMismatch`].
    SeqMismatch(#[from] SeqMismatch),
    /// `poisoned`: see [`Poisoned`].
    Poisoned(#[from] Poisoned),
    /// The kind of the failure within: see [`BufferFull`].
    BufferFull(#[from] BufferFull),
}

impl PublishError {
    /// The words that [`kind`](Self::kind) may give.
    pub const KINDS: &'static [&'static str] = AppendError::KINDS;

    /// The stable word for what went wrong.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::HandleClosed(_) => "handle_closed",
            Self::OwnershipLost(_) => "ownership_lost",
            Self::NotSerializable(_) => "not_serializable",
            Self::SeqMismatch(_) => "seq_mismatch",
            Self::Poisoned(_) => "poisoned",
            Self::BufferFull(full) => full.source.kind(),
        }
    }
}

operation_error! {
    /// Why [`delete`](crate::SessionStore::delete) failed.
    DeleteError {
        NotFound => "not_found",
        AlreadyOwned => "already_owned",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`trash`](crate::SessionStore::trash) or
    /// [`empty_trash`](crate::SessionStore::empty_trash) failed.
    TrashError {
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`restore`](crate::SessionStore::restore) failed.
    RestoreError {
        NotInTrash => "not_found",
        AlreadyExists => "already_exists",
        AlreadyOwned => "already_owned",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

/// The cursor of a listing is not one that this store gave out.
#[derive(Debug, Error)]
#[error("the list cursor is not one of this store's; start again without it")]
pub struct BadListCursor;

/// Why [`close`](crate::SessionHandle::close) failed: what kept the last write from being stored.
#[derive(Clone, Debug, Error)]
#[error("session \"{id}\" was closed, but not cleanly: {message}")]
pub struct CloseError {
    /// The session.
    pub id: SessionId,
    /// The [kind](AppendError::kind) of the failure.
    pub kind: &'static str,
    /// What went wrong.
    pub message: String,
    /// The published events that were accepted and are not in the log now; they are gone with the
    /// handle.
    pub unstored: Option<EventRange>,
}

/// Why flushing a whole store failed: everything that did, after everything was tried.
#[derive(Debug, Error)]
#[error("session store flush failed for {} of the open sessions: {}", failures.len(), summary(failures))]
pub struct FlushStoreError {
    /// Which sessions, and why.
    pub failures: Vec<(SessionId, FlushError)>,
}

fn summary(failures: &[(SessionId, FlushError)]) -> String {
    let lines: Vec<_> = failures.iter().map(|(_, failure)| failure.to_string()).collect();
    lines.join("; ")
}

/// A session kept changing hands while it was being looked at.
#[derive(Clone, Debug, Error)]
#[error("session \"{id}\" changed while it was read: {problem}; try again")]
pub struct SourceConflict {
    /// The session.
    pub id: SessionId,
    /// What did not fit together.
    pub problem: &'static str,
}

operation_error! {
    /// Why [`observe`](crate::cold::ColdCache::observe) failed.
    ColdError {
        NotFound => "not_found",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        SourceConflict => "source_conflict",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

/// Two writers went on from the same event, and nobody said which of them is to be kept.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\" was written by two writers from event {at} on; \
     say with --branch first or --branch last which of them to keep"
)]
pub struct Forked {
    /// The session.
    pub id: SessionId,
    /// The first seq that is there twice.
    pub at: Seq,
}

/// The log has no header that could be read, and nobody said where the session worked.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\" has no header that can be read, so that its directory is not known; \
     name it with --cwd"
)]
pub struct NoHeader {
    /// The session.
    pub id: SessionId,
}

/// There is nothing in the log to be saved.
#[derive(Debug, Error)]
#[error("session \"{id}\": no event of its log can be saved ({reason}); nothing was written")]
pub struct NothingToSave {
    /// The session.
    pub id: SessionId,
    /// Why not.
    pub reason: String,
}

/// The log changed while it was being read.
#[derive(Debug, Error)]
#[error(
    "session \"{id}\": its log changed while it was being read; \
     try again once nobody writes it any more"
)]
pub struct LogChanged {
    /// The session.
    pub id: SessionId,
}

/// Saving a log stopped halfway.
#[derive(Debug, Error)]
#[error(
    "session \"{into}\" holds only the first {stored} events that were to be saved from \
     \"{id}\" ({message}); remove it, and recover into another id"
)]
pub struct HalfSaved {
    /// The session that was being saved.
    pub id: SessionId,
    /// The session that it was being saved into.
    pub into: SessionId,
    /// How many events that one holds.
    pub stored: u64,
    /// What went wrong.
    pub message: String,
}

operation_error! {
    /// Why [`verify`](crate::SessionStore::verify) could not say anything.
    VerifyError {
        NotFound => "not_found",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`salvage`](crate::SessionStore::salvage) found nothing to give out.
    SalvageError {
        NotFound => "not_found",
        Forked => "forked",
        NothingToSave => "corrupt",
        LogChanged => "io",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}

operation_error! {
    /// Why [`recover`](crate::recover::recover) failed.
    RecoverError {
        NotFound => "not_found",
        AlreadyExists => "already_exists",
        AlreadyOwned => "already_owned",
        Forked => "forked",
        NoHeader => "corrupt",
        NothingToSave => "corrupt",
        LogChanged => "io",
        HalfSaved => "half_saved",
        OwnershipLost => "ownership_lost",
        NotSerializable => "not_serializable",
        FormatUnsupported => "format_unsupported",
        Corrupt => "corrupt",
        Poisoned => "poisoned",
        Cancelled => "cancelled",
        IoFailure => "io",
    }
}
