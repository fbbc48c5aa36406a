//! Resuming a session whose last turn was cut short.

use thiserror::Error;
use turnkeep_log::{Event, SessionId, repair::TurnState};

use crate::{
    error::{AppendError, CloseError, FlushError, OpenError, ReadError},
    seam::{Access, Cancel, EventRange, SessionHandle, SessionStore},
};

/// How many events are held at a time.
const CHUNK: u64 = 1 << 16;

/// Closes the turn that a session's last writer left open, durably, and gives the session back.
///
/// Returns the events that were appended: what [`repair`](turnkeep_log::repair) says closes the
/// turn, as one batch. None when no turn is open, so that resuming twice changes nothing the second
/// time. A harness that goes on with the session would mark next where its own events begin; here
/// nobody goes on, so no such mark is made.
///
/// # Errors
///
/// `not_found`; `already_owned` while someone writes the session, whose turn may be open for a good
/// reason; what opening, reading, appending and closing can meet. The session is given back in any
/// case.
pub async fn resume(
    store: &dyn SessionStore,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<Vec<Event>, ResumeError> {
    let handle = store.open(id, Access::Write, cancel).await?;
    let appended = close_turn(handle.as_ref(), cancel).await;
    let closed = handle.close().await;
    let appended = appended?;
    closed?;
    Ok(appended)
}

async fn close_turn(
    handle: &dyn SessionHandle,
    cancel: &Cancel,
) -> Result<Vec<Event>, ResumeError> {
    let mut state = TurnState::default();
    let mut offset = 0;
    loop {
        let range = EventRange { offset, length: Some(CHUNK) };
        let events = handle.read(range, cancel).await?;
        for event in &events {
            state.push(event);
        }
        let count = events.len() as u64;
        offset += count;
        if count < CHUNK {
            break;
        }
    }
    let closers = state.closers();
    if !closers.is_empty() {
        handle.append(closers.clone(), cancel).await?;
        // Not every store syncs each append.
        handle.flush(cancel).await?;
    }
    Ok(closers)
}

/// Why [`resume`] failed.
#[derive(Debug, Error)]
#[error(transparent)]
pub enum ResumeError {
    /// The session could not be opened to write.
    Open(#[from] OpenError),
    /// Its log could not be read.
    Read(#[from] ReadError),
    /// The turn could not be closed.
    Append(#[from] AppendError),
    /// The turn was closed, and nobody can say whether that is on disk.
    Flush(#[from] FlushError),
    /// The session was given back, but not cleanly.
    Close(#[from] CloseError),
}

impl ResumeError {
    /// The stable word for what went wrong.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Open(error) => error.kind(),
            Self::Read(error) => error.kind(),
            Self::Append(error) => error.kind(),
            Self::Flush(error) => error.kind(),
            Self::Close(error) => error.kind,
        }
    }
}
