//! Which resource a path names.
//!
//! Clients were written against a router that ignores the case of fixed segments and one trailing
//! slash, and that decodes each segment by itself, so that an id may hold an escaped slash.

use super::percent;

/// The resource a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A file of the reader: the path below `/`, empty for the page itself.
    Asset(String),
    /// `/health`
    Health,
    /// `/api/turnkeep/sessions`
    Sessions,
    /// `/api/turnkeep/sessions/:id`
    Session(String),
    /// `/api/openchamber/sessions/:id/messages`
    TurnPage(String),
    /// `/api/openchamber/sessions/:id/messages/reconcile`
    Reconcile(String),
    /// `/api/openchamber/sessions/:id/changes`
    Changes(String),
    /// `/api/session/:id/message/:message`
    Message {
        /// The session.
        session: String,
        /// The message.
        message: String,
    },
    /// Any other path under `/api`.
    Api,
}

/// A segment of the path holds an escape that is not whole, or is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedPath;

impl Route {
    /// Reads the path of a request URL, still escaped.
    pub(crate) fn parse(path: &str) -> Result<Self, MalformedPath> {
        let below_root = path.strip_prefix('/').unwrap_or(path);
        let trimmed = below_root.strip_suffix('/').unwrap_or(below_root);
        let segments: Vec<_> = trimmed.split('/').collect();
        let names: Vec<_> = segments.iter().map(|name| name.to_ascii_lowercase()).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let id_at = |at: usize| {
            let raw = segments.get(at).copied();
            raw.and_then(percent::decode_path).ok_or(MalformedPath)
        };
        Ok(match names.as_slice() {
            ["health"] => Self::Health,
            ["api", "turnkeep", "sessions"] => Self::Sessions,
            ["api", "turnkeep", "sessions", raw] if !raw.is_empty() => Self::Session(id_at(3)?),
            ["api", "openchamber", "sessions", raw, "messages"] if !raw.is_empty() => {
                Self::TurnPage(id_at(3)?)
            }
            ["api", "openchamber", "sessions", raw, "messages", "reconcile"] if !raw.is_empty() => {
                Self::Reconcile(id_at(3)?)
            }
            ["api", "openchamber", "sessions", raw, "changes"] if !raw.is_empty() => {
                Self::Changes(id_at(3)?)
            }
            ["api", "session", session, "message", message]
                if !session.is_empty() && !message.is_empty() =>
            {
                Self::Message { session: id_at(2)?, message: id_at(4)? }
            }
            ["api", ..] => Self::Api,
            _ => Self::Asset(below_root.to_owned()),
        })
    }

    /// A fixed name for logs, which must not repeat paths.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Asset(_) => "reader",
            Self::Health => "health",
            Self::Sessions => "sessions",
            Self::Session(_) => "session",
            Self::TurnPage(_) => "turn_page",
            Self::Reconcile(_) => "reconcile",
            Self::Changes(_) => "changes",
            Self::Message { .. } => "message",
            Self::Api => "api",
        }
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
