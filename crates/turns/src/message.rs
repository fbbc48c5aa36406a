//! One exact message.
//!
//! A turn page shows most parts by reference; a client that wants one whole asks for its message.
//! The message leaves as its source sent it, except that diffs in its summary are reduced as they
//! are everywhere, and that reasoning can be left out.
//!
//! A source may have a message that it cannot send by itself. [`MessageScan`] looks for that one on
//! the pages of its session.

mod scan;

pub use self::scan::MessageScan;

use turnkeep_log::json::{Json, Kind};

use crate::{
    error::MessageError,
    events::LiveText,
    projection::{Parts, Projection},
    query::{MAX_ID_UNITS, Param},
    reader::placeholder,
    summary,
};

/// Checks the session id of a path: not empty, at most [`MAX_ID_UNITS`] long.
///
/// # Errors
///
/// [`MessageError::BadSession`].
pub fn check_session(id: &str) -> Result<(), MessageError> {
    if is_id(id) { Ok(()) } else { Err(MessageError::BadSession) }
}

/// Reads a message id, of a path or a query: one string, not empty, at most [`MAX_ID_UNITS`] long.
///
/// # Errors
///
/// [`MessageError::BadMessage`].
pub fn parse_message(param: Param<'_>) -> Result<&str, MessageError> {
    match param {
        Param::One(id) if is_id(id) => Ok(id),
        Param::Absent | Param::One(_) | Param::Repeated => Err(MessageError::BadMessage),
    }
}

fn is_id(text: &str) -> bool {
    (1..=MAX_ID_UNITS).contains(&text.encode_utf16().count())
}

/// Whether this is the id under which a page shows the message of `session` that nobody can read
/// and of which not even the id is known. No source has a message of that id; [`MessageScan`] finds
/// it.
#[must_use]
pub fn is_placeholder(session: &str, id: &str) -> bool {
    id == placeholder(session)
}

/// The body of the answer, made of the body that the source sent: `{info, parts}`, or what would be
/// its `info` alone.
///
/// Parts that were open at `live`, which has to have been taken before the source was asked, are as
/// they were then. What else is not taken out stays byte for byte, as [`Projection::write`] has it.
///
/// # Errors
///
/// [`MessageError::Upstream`] when the body is no JSON object. An empty one, with which a server may
/// say that all is well, is no message either.
pub fn exact(body: &str, reasoning: bool, live: &LiveText) -> Result<String, MessageError> {
    let message = Json::parse(body).map_err(|_| MessageError::Upstream)?;
    if message.kind() != Kind::Object {
        return Err(MessageError::Upstream);
    }
    let mut overlaid = String::new();
    let message = if live.write(message, &mut overlaid) {
        Json::parse(&overlaid).map_err(|_| MessageError::Internal)?
    } else {
        message
    };
    let mut out = String::with_capacity(message.text().len());
    let projection = Projection { parts: Parts::Full, reasoning };
    let mut reduced = String::new();
    let has_info = message.get("info").is_some_and(|info| info.kind() == Kind::Object);
    if !has_info && summary::reduce(message, &mut reduced) {
        let message = Json::parse(&reduced).map_err(|_| MessageError::Internal)?;
        projection.write(message, &mut out);
    } else {
        projection.write(message, &mut out);
    }
    Ok(out)
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
