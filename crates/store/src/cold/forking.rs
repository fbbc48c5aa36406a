//! A new session that starts with the events of another.

use turnkeep_log::{Seq, SessionHeader, SessionId, fork as pure};

use crate::{
    error::{AlreadyExists, AppendError, CreateError, FlushError, OpenError, ReadError, StatError},
    seam::{Access, Cancel, EventRange, SessionHandle, SessionStore},
    shell::now,
};

/// What to fork, and what to call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForkRequest {
    /// The session to start from. It is not changed, and may be open to write.
    pub parent: SessionId,
    /// The last event that the fork has in common with it; the last one stored when absent.
    pub boundary: Option<Seq>,
    /// The id of the fork.
    pub child: SessionId,
    /// When the fork is made, in milliseconds since the epoch; now when absent.
    pub created_at: Option<u64>,
    /// Where the fork works; where its parent does when absent.
    pub cwd: Option<String>,
    /// The agent preset of the fork; none when absent, whatever its parent has.
    pub agent_preset: Option<String>,
}

impl ForkRequest {
    /// A fork of the whole of a session, in the same directory.
    #[must_use]
    pub fn new(parent: SessionId, child: SessionId) -> Self {
        Self { parent, boundary: None, child, created_at: None, cwd: None, agent_preset: None }
    }
}

/// A fork that was made.
#[derive(Debug)]
pub struct Forked {
    /// The fork, open to write.
    pub handle: Box<dyn SessionHandle>,
    /// How many events it inherited.
    pub inherited: u64,
    /// The seq that comes next.
    pub next: Seq,
}

/// Why a session was not forked. Nothing was stored, unless the [kind](Self::kind) is `poisoned` or
/// it was the last flush that failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum ForkSessionError {
    /// The parent cannot be opened: `not_found` when there is none.
    Parent(#[from] OpenError),
    /// The parent cannot be read.
    Read(#[from] ReadError),
    /// The parent cannot be cut there: `invalid_boundary` or `open_turn`.
    Cut(#[from] turnkeep_log::ForkError),
    /// The child cannot be looked for.
    Stat(#[from] StatError),
    /// The child cannot be made: `already_exists` when there is one.
    Create(#[from] CreateError),
    /// The child cannot be stored.
    Store(#[from] AppendError),
    /// The child was stored, and nobody can say whether that is on disk.
    Flush(#[from] FlushError),
}

impl ForkSessionError {
    /// The stable word for what went wrong.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Parent(error) => error.kind(),
            Self::Read(error) => error.kind(),
            Self::Cut(error) => error.kind(),
            Self::Stat(error) => error.kind(),
            Self::Create(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::Flush(error) => error.kind(),
        }
    }
}

/// Forks a session, durably.
///
/// The child is a log of its own, complete without its parent: the parent's events up to and
/// including the boundary, seqs and times as they were, then the mark `session/end-seed` unless
/// they end with one. Its header names the parent and how many events were inherited. All of it is
/// stored in one batch: after a crash the child is there whole, or not at all.
///
/// A person who forks a session delegates nothing: the child stands under no delegation, whatever
/// its parent does, and has the preset that the request names.
///
/// The whole log of the parent is read and checked. Of one that is being written, what has been
/// stored counts.
///
/// # Errors
///
/// `not_found`, `already_exists`, `invalid_boundary` when the parent has no such event, and
/// `open_turn` when the last turn boundary up to there starts a turn; else what reading the parent
/// and storing the child can meet. Nothing is left of the child then, unless it could not be
/// confirmed that it was stored.
pub async fn fork(
    store: &dyn SessionStore,
    request: ForkRequest,
    cancel: &Cancel,
) -> Result<Forked, ForkSessionError> {
    let ForkRequest { parent, boundary, child, created_at, cwd, agent_preset } = request;
    let parent = store.open(&parent, Access::Read, cancel).await?;
    // Before a long log is read for nothing. To create it asks again.
    if store.stat(&child, cancel).await?.is_some() {
        return Err(CreateError::from(AlreadyExists { id: child }).into());
    }
    let events = parent.read(EventRange::ALL, cancel).await?;
    let created_at = created_at.unwrap_or_else(|| u64::try_from(now()).unwrap_or_default());
    let cut = pure::cut(parent.header(), &events, boundary, child, created_at)?;
    drop((parent, events));
    let inherited = cut.header.seed_length.unwrap_or_default();
    let header = SessionHeader { cwd: cwd.or(cut.header.cwd), agent_preset, ..cut.header };
    let handle = store.create(header, cancel).await?;
    // Dropping the handle of a session that is not stored erases it.
    let next = handle.append(cut.events, cancel).await?;
    // Not every store syncs each append.
    handle.flush(&Cancel::never()).await?;
    Ok(Forked { handle, inherited, next })
}
