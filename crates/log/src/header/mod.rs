//! The first line of a session log.

mod parse;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

pub use parse::{HeaderError, HeaderProblem};

use crate::{
    id::SessionId,
    json::{MAX_SAFE_INTEGER, write_str},
};

/// The log format that this crate reads and writes.
pub const FORMAT_VERSION: u64 = 0;

/// What the first line of a log says about its session.
///
/// | key | value | |
/// |---|---|---|
/// | `type` | `"session"` | required |
/// | `version` | 0 | required; looked at before all else |
/// | `id` | not empty | required |
/// | `createdAt` | milliseconds since the epoch | required |
/// | `cwd`, `parentSession` | string | |
/// | `seedLength` | number of events | |
/// | `origin` | `"subagent"` | |
/// | `delegationDepth` | number | required |
/// | `agentPreset` | string | |
///
/// Numbers are non-negative integers up to 2^53 − 1. A reader accepts further keys; what it does
/// not know it cannot show, and since the header of a log is never written twice they stay where
/// they are.
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

impl SessionHeader {
    /// The header of a session that a person starts, in the format we write.
    #[must_use]
    pub fn new(id: SessionId, created_at: u64) -> Self {
        Self {
            version: FORMAT_VERSION,
            id,
            created_at,
            cwd: None,
            parent_session: None,
            seed_length: None,
            origin: None,
            delegation_depth: 0,
            agent_preset: None,
        }
    }

    /// Checks what the fields' types do not say, before a log is started with this header.
    ///
    /// # Errors
    ///
    /// A number is past 2^53 − 1, which no reader would accept.
    pub fn validate(&self) -> Result<(), HeaderError> {
        let numbers = [
            ("createdAt", Some(self.created_at)),
            ("seedLength", self.seed_length),
            ("delegationDepth", Some(self.delegation_depth)),
        ];
        for (member, number) in numbers {
            if number.is_some_and(|number| number > MAX_SAFE_INTEGER) {
                let problem = "is not a non-negative safe integer";
                return Err(HeaderProblem::Member { member, problem }.into());
            }
        }
        Ok(())
    }

    /// The header as the first line of a log, without its line feed.
    ///
    /// Members stand in the order of the table above; those that are absent are left out.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = format!("{{\"type\":\"session\",\"version\":{},\"id\":", self.version);
        write_str(&mut line, self.id.as_str());
        let _ = write!(line, ",\"createdAt\":{}", self.created_at);
        let text = |line: &mut String, key: &str, value: Option<&str>| {
            if let Some(value) = value {
                let _ = write!(line, ",\"{key}\":");
                write_str(line, value);
            }
        };
        text(&mut line, "cwd", self.cwd.as_deref());
        text(&mut line, "parentSession", self.parent_session.as_deref());
        if let Some(length) = self.seed_length {
            let _ = write!(line, ",\"seedLength\":{length}");
        }
        text(&mut line, "origin", self.origin.map(Origin::as_str));
        let _ = write!(line, ",\"delegationDepth\":{}", self.delegation_depth);
        text(&mut line, "agentPreset", self.agent_preset.as_deref());
        line.push('}');
        line
    }
}

impl Origin {
    /// The name in the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subagent => "subagent",
        }
    }
}
