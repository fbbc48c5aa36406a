//! Starting a session from the beginning of another.
//!
//! A fork shares nothing with its parent: it is a log of its own that starts with the same events,
//! seqs and times included. Its header names the parent and how many events were inherited, and a
//! [mark](crate::seed) follows them. A log can be cut after any event that no turn is open at, so
//! that what the fork starts with is a conversation a model takes.

#[cfg(test)]
mod tests;

use crate::{
    event::Event,
    header::SessionHeader,
    id::{Seq, SessionId},
    seed,
};

/// The log a fork starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// Its header: the parent's working directory, the parent's id, the number of events inherited.
    /// Nothing else is inherited; whoever makes the session fills in the rest.
    pub header: SessionHeader,
    /// The inherited events, and the mark where they do not end with one.
    pub events: Vec<Event>,
}

/// Why a log cannot be cut at an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// The log has no such event; one without events cannot be forked at all.
    #[error(
        "session \"{session}\" has no event {boundary} to be forked at; {}",
        range(*events)
    )]
    InvalidBoundary {
        /// The session to fork.
        session: SessionId,
        /// The event asked for.
        boundary: Seq,
        /// How many events the log has.
        events: usize,
    },
    /// At that event a turn is open.
    #[error(
        "session \"{session}\" has a turn open at event {boundary} that began at event {start}; \
         fork it before that event, or at or after the turn's end"
    )]
    OpenTurn {
        /// The session to fork.
        session: SessionId,
        /// The event asked for.
        boundary: Seq,
        /// The `turn/start` of the open turn.
        start: Seq,
    },
}

fn range(events: usize) -> String {
    match events.checked_sub(1) {
        Some(last) => format!("choose one from 0 to {last}"),
        None => "it has no events yet".to_owned(),
    }
}

impl ForkError {
    /// The stable word for this failure: `invalid_boundary` or `open_turn`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidBoundary { .. } => "invalid_boundary",
            Self::OpenTurn { .. } => "open_turn",
        }
    }
}

/// Cuts the log of `parent`, all of whose events are `events`, after the event `boundary`, after
/// the last one when none is named, and makes it the log of a session `child` that begins at
/// `now`, milliseconds since the epoch.
///
/// # Errors
///
/// There is no such event, or a turn is open at it.
pub fn cut(
    parent: &SessionHeader,
    events: &[Event],
    boundary: Option<Seq>,
    child: SessionId,
    now: u64,
) -> Result<Fork, ForkError> {
    let boundary = boundary.unwrap_or(Seq((events.len() as u64).saturating_sub(1)));
    let length = usize::try_from(boundary.0).ok().and_then(|last| last.checked_add(1));
    let Some(inherited) = length.and_then(|length| events.get(..length)) else {
        let (session, events) = (parent.id.clone(), events.len());
        return Err(ForkError::InvalidBoundary { session, boundary, events });
    };
    if let Some(start) = open_turn(inherited) {
        return Err(ForkError::OpenTurn { session: parent.id.clone(), boundary, start });
    }
    let header = SessionHeader {
        cwd: parent.cwd.clone(),
        parent_session: Some(parent.id.as_str().to_owned()),
        seed_length: Some(inherited.len() as u64),
        ..SessionHeader::new(child, now)
    };
    let mark = seed::mark_after(inherited.last(), i64::try_from(now).unwrap_or(i64::MAX));
    Ok(Fork { header, events: inherited.iter().cloned().chain(mark).collect() })
}

/// Where the turn that is open after these events began.
fn open_turn(events: &[Event]) -> Option<Seq> {
    let bound = |event: &&Event| matches!(event.event_type(), "turn/start" | "turn/end");
    let last = events.iter().rev().find(bound)?;
    (last.event_type() == "turn/start").then(|| last.seq())
}
