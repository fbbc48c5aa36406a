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
    /// `/api/session/:id/message`: the upstream's own list of messages.
    Messages(String),
    /// `/api/global/event` or `/api/event`: events over SSE.
    Events(Channel),
    /// `/api/global/event/ws` or `/api/event/ws`: the same over a WebSocket.
    EventSocket(Channel),
    /// `/api/turnkeep/sessions/:id/events`
    SessionEvents(String),
    /// `/api/turnkeep/sessions/:id/events/stream`
    SessionEventStream(String),
    /// `/api/openchamber/transcript-cache/:name`, the name in lower case.
    TranscriptCache(String),
    /// `/api/session.export`
    Export,
    /// `/auth/:name`, the name in lower case.
    Auth(String),
    /// `/metrics`
    Metrics,
    /// `/openapi.json`
    OpenApi,
    /// Any other path under `/api`.
    Api,
}

/// Which events a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Those of all directories.
    Global,
    /// Those of one directory.
    Directory,
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
            ["api", "session", session, "message"] if !session.is_empty() => {
                Self::Messages(id_at(2)?)
            }
            ["api", "global", "event"] => Self::Events(Channel::Global),
            ["api", "event"] => Self::Events(Channel::Directory),
            ["api", "global", "event", "ws"] => Self::EventSocket(Channel::Global),
            ["api", "event", "ws"] => Self::EventSocket(Channel::Directory),
            ["api", "turnkeep", "sessions", raw, "events"] if !raw.is_empty() => {
                Self::SessionEvents(id_at(3)?)
            }
            ["api", "turnkeep", "sessions", raw, "events", "stream"] if !raw.is_empty() => {
                Self::SessionEventStream(id_at(3)?)
            }
            ["api", "openchamber", "transcript-cache", name] => {
                Self::TranscriptCache((*name).to_owned())
            }
            ["api", "session.export"] => Self::Export,
            ["auth", name] => Self::Auth((*name).to_owned()),
            ["metrics"] => Self::Metrics,
            ["openapi.json"] => Self::OpenApi,
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
            Self::Messages(_) => "messages",
            Self::Events(_) => "events",
            Self::EventSocket(_) => "event_socket",
            Self::SessionEvents(_) => "session_events",
            Self::SessionEventStream(_) => "session_event_stream",
            Self::TranscriptCache(_) => "transcript_cache",
            Self::Export => "export",
            Self::Auth(_) => "auth",
            Self::Metrics => "metrics",
            Self::OpenApi => "openapi",
            Self::Api => "api",
        }
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
