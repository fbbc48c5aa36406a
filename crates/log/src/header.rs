//! The first line of a session log.

use crate::id::SessionId;

/// The log format that this crate reads and writes.
pub const FORMAT_VERSION: u64 = 0;

/// What the first line of a log says about its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionHeader {
    /// The log format; [`FORMAT_VERSION`] for what we write.
    pub version: u64,
    /// The session's name.
    pub id: SessionId,
    /// When the session was made, in milliseconds since the epoch.
    pub created_at: u64,
    /// The absolute directory the session works in.
    pub cwd: Option<String>,
    /// The session this one was forked from.
    pub parent_session: Option<String>,
    /// How many events at the start of the log were inherited; absent when the session was not
    /// seeded at all, which 0 does not say.
    pub seed_length: Option<u64>,
    /// Whether a subagent made the session.
    pub origin: Option<Origin>,
    /// How many delegations stand above this session.
    pub delegation_depth: u64,
    /// The agent preset the session was made with.
    pub agent_preset: Option<String>,
}

/// Who made a session, where it was not a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A subagent.
    Subagent,
}
