//! Whether a session can be taken up again from its log.
//!
//! A log that a reader [takes](crate::gate) is not yet one that a session can go on from. That asks
//! more of it: no member in an event that the format has no place for, requests that name their
//! model, and above all that the *surface* can be built, the list of messages the model sees.
//!
//! Three types of event are on it: `user/message`, `assistant/message` and `tool/result`. Each says
//! in `surfaceOp` how it joins: `"append"` puts it at the end; `{"op":"replace","start","end"}`
//! puts it in the place of the nodes from the event `start` to the event `end`, which is how
//! history is compacted and how tool output is pruned. A node's `sourceEventSeqs` name the earlier
//! events it was made of, and those of a replacement name at least what it replaces, so that
//! nothing leaves the model's view without a trace.
//!
//! Reading, listing and exporting never ask this. Whoever resumes a session or forks it asks first.

mod envelope;
mod request;
mod same;
mod surface;

#[cfg(test)]
mod tests;

use crate::{
    event::Event,
    id::{Seq, SessionId},
};
use surface::Surface;

/// Why a session cannot be taken up from its log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "session \"{session}\" cannot be resumed: event {at} {problem}; it can still be read and \
     exported, and forked before that event"
)]
pub struct RestoreError {
    /// The session.
    pub session: SessionId,
    /// The event's index in the log.
    pub at: Seq,
    /// What is wrong with it.
    pub problem: RestoreProblem,
}

/// What is wrong with an event of a log that cannot be taken up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreProblem {
    /// It says that its place in the log is another.
    #[error("carries seq {0}")]
    Seq(Seq),
    /// It has a member that no event has.
    #[error("has an unknown member `{0}`")]
    Member(String),
    /// It breaks a rule that looks at this event alone.
    #[error("{0}")]
    Rule(&'static str),
    /// It cannot replace what it says it replaces.
    #[error("replaces event {seq}, {problem}")]
    Replaced {
        /// One of the events to replace.
        seq: Seq,
        /// Why that cannot be.
        problem: &'static str,
    },
}

impl RestoreError {
    /// The stable word for this failure: `corrupt`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        "corrupt"
    }
}

/// Checks a whole log and says which events the model sees at its end, in its order.
///
/// # Errors
///
/// The first event that a session could not be taken up with.
pub fn surface(session: &SessionId, events: &[Event]) -> Result<Vec<Seq>, RestoreError> {
    let mut surface = Surface::default();
    for (at, event) in events.iter().enumerate() {
        let at = Seq(at as u64);
        check(at, event, events, &mut surface).map_err(|problem| RestoreError {
            session: session.clone(),
            at,
            problem,
        })?;
    }
    Ok(surface.seqs())
}

fn check(
    at: Seq,
    event: &Event,
    events: &[Event],
    surface: &mut Surface,
) -> Result<(), RestoreProblem> {
    if event.seq() != at {
        return Err(RestoreProblem::Seq(event.seq()));
    }
    envelope::check(event)?;
    request::check(event).map_err(RestoreProblem::Rule)?;
    match envelope::join(event).map_err(RestoreProblem::Rule)? {
        Some(join) => surface.take(event, &join, events),
        None => Ok(()),
    }
}
