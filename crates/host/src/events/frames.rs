//! What goes over the wire: blocks of an SSE stream, and messages of a WebSocket.

use std::fmt::Write as _;

use bytes::Bytes;
use turnkeep_log::json::write_str;

use super::id::EventId;

/// What a client is sent to keep its connection alive, which is no event for it.
const COMMENT: &str = ":heartbeat\n\n";

/// The directory that messages of a WebSocket name when an event has none.
const NO_DIRECTORY: &str = "global";

/// Which events a client gets, as far as their form depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Those of all directories.
    Global,
    /// Those of one directory.
    Directory,
}

/// Why a client must not trust what it has: events happened that it does not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetReason {
    /// The event it asked to go on from is none of this epoch.
    UnknownEpoch,
    /// The event it asked to go on from is too long ago.
    TooOld,
    /// The upstream's stream was lost, and is back.
    UpstreamReconnected,
    /// It did not take its events fast enough.
    Slow,
}

impl ResetReason {
    fn word(self) -> &'static str {
        match self {
            Self::UnknownEpoch => "unknown_epoch",
            Self::TooOld => "too_old",
            Self::UpstreamReconnected => "upstream_reconnected",
            Self::Slow => "slow",
        }
    }

    /// The event that says so.
    pub(crate) fn payload(self) -> String {
        format!(r#"{{"type":"turnkeep.reset","properties":{{"reason":"{}"}}}}"#, self.word())
    }
}

/// The event that a stream begins with, and begins anew with.
pub(crate) const CONNECTED: &str = r#"{"type":"server.connected","properties":{}}"#;

/// The event that shows that a stream is alive to clients that do not see comments.
const HEARTBEAT: &str = r#"{"type":"server.heartbeat","properties":{}}"#;

/// A block that carries an event. An event without an id leaves the client's place as it is.
pub(crate) fn block(
    channel: Channel,
    id: Option<EventId>,
    directory: Option<&str>,
    project: Option<&str>,
    payload: &str,
) -> Bytes {
    let mut out = String::with_capacity(payload.len() + 128);
    if let Some(id) = id {
        let _ = writeln!(out, "id: {id}");
    }
    out.push_str("data: ");
    match channel {
        Channel::Directory => out.push_str(payload),
        Channel::Global => {
            out.push('{');
            for (key, value) in [("directory", directory), ("project", project)] {
                if let Some(value) = value {
                    let _ = write!(out, r#""{key}":"#);
                    write_str(&mut out, value);
                    out.push(',');
                }
            }
            let _ = write!(out, r#""payload":{payload}}}"#);
        }
    }
    out.push_str("\n\n");
    Bytes::from(out)
}

/// What a client over SSE is sent from time to time: a comment, for what is between us, and an
/// event, for clients that take a stream without events for dead.
pub(crate) fn heartbeat(channel: Channel) -> Bytes {
    let event = block(channel, None, None, None, HEARTBEAT);
    Bytes::from([COMMENT.as_bytes(), &event].concat())
}

/// A message that carries an event.
pub(crate) fn message(id: Option<EventId>, directory: Option<&str>, payload: &str) -> Bytes {
    let mut out = String::with_capacity(payload.len() + 128);
    let _ = write!(out, r#"{{"type":"event","payload":{payload}"#);
    if let Some(id) = id {
        let _ = write!(out, r#","eventId":"{id}""#);
    }
    out.push_str(r#","directory":"#);
    write_str(&mut out, directory.filter(|name| !name.is_empty()).unwrap_or(NO_DIRECTORY));
    out.push('}');
    Bytes::from(out)
}

/// The message that says that what was missed has been sent, and that all that follows is new.
pub(crate) fn ready(channel: Channel) -> &'static str {
    match channel {
        Channel::Global => r#"{"type":"ready","scope":"global"}"#,
        Channel::Directory => r#"{"type":"ready","scope":"directory"}"#,
    }
}

/// The message that says why the connection is about to be closed.
pub(crate) fn error(text: &str) -> String {
    let mut out = String::from(r#"{"type":"error","message":"#);
    write_str(&mut out, text);
    out.push('}');
    out
}

/// The message that warns a client of what happens when it goes on as it does.
pub(crate) fn backpressure(buffered_bytes: u64, max_bytes: u64) -> String {
    format!(r#"{{"type":"backpressure","bufferedBytes":{buffered_bytes},"maxBytes":{max_bytes}}}"#)
}

/// The message that a client over a WebSocket is sent from time to time.
pub(crate) fn socket_heartbeat(timestamp_ms: u64) -> Bytes {
    let payload = format!(r#"{{"type":"openchamber:heartbeat","timestamp":{timestamp_ms}}}"#);
    message(None, None, &payload)
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
