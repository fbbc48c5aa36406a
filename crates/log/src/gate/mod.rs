//! Whether a log whose records are in order can also be understood.
//!
//! Two things are asked of each event before anyone gets to see it, and nothing else: that its
//! type is known or may be skipped, and, for the three types that become messages of the model,
//! that there is a message. Payloads of other types, extension reasons, unknown kinds of block
//! and of source pass as they are.
//!
//! A store asks this when it reads. Appending is more permissive, so that an embedder may store
//! what only a later build understands; one that wants no such event in its logs asks
//! [`check_event`] before it appends.

mod message;

#[cfg(test)]
mod tests;

use crate::{
    event::Event,
    id::{Seq, SessionId},
    vocabulary::Vocabulary,
};

/// Why events cannot be read by this build, or by any.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// An event is of a type that this build does not know, and is not marked `ignorable`.
    #[error(
        "session \"{session}\" contains event type \"{event_type}\" (seq {seq}) {}",
        unsupported(event_type)
    )]
    Unsupported {
        /// The session.
        session: SessionId,
        /// The type.
        event_type: String,
        /// Where in the log.
        seq: Seq,
    },
    /// An event is not what its type promises.
    #[error("stored session \"{session}\" failed validation: session event at seq {seq} {problem}")]
    Corrupt {
        /// The session.
        session: SessionId,
        /// Where in the log.
        seq: Seq,
        /// What is wrong with it.
        problem: &'static str,
    },
}

fn unsupported(event_type: &str) -> &'static str {
    if Vocabulary::is_retired(event_type) {
        "that only early builds of the harness wrote; this build ships no upgrade path for it"
    } else {
        "unknown to this harness and not marked ignorable; refusing to interpret the log — \
         it was likely written by a newer harness; upgrade to open it"
    }
}

impl GateError {
    /// The stable word for this failure: `format_unsupported` or `corrupt`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "format_unsupported",
            Self::Corrupt { .. } => "corrupt",
        }
    }
}

/// Checks the events of a log, or the next of them.
///
/// # Errors
///
/// An event of unknown type, the first one in the slice, goes before any that is corrupt: in
/// a log written by a newer build nobody can say what is.
pub fn check(
    session: &SessionId,
    events: &[Event],
    vocabulary: &Vocabulary,
) -> Result<(), GateError> {
    events.iter().try_for_each(|event| check_type(session, event, vocabulary))?;
    events.iter().try_for_each(|event| check_shape(session, event))
}

/// Checks one event, such as one about to be appended.
///
/// # Errors
///
/// As [`check`].
pub fn check_event(
    session: &SessionId,
    event: &Event,
    vocabulary: &Vocabulary,
) -> Result<(), GateError> {
    check_type(session, event, vocabulary)?;
    check_shape(session, event)
}

fn check_type(
    session: &SessionId,
    event: &Event,
    vocabulary: &Vocabulary,
) -> Result<(), GateError> {
    if event.ignorable() || vocabulary.knows(event.event_type()) {
        return Ok(());
    }
    Err(GateError::Unsupported {
        session: session.clone(),
        event_type: event.event_type().to_owned(),
        seq: event.seq(),
    })
}

fn check_shape(session: &SessionId, event: &Event) -> Result<(), GateError> {
    message::check(event).map_err(|problem| GateError::Corrupt {
        session: session.clone(),
        seq: event.seq(),
        problem,
    })
}
