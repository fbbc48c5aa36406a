//! Packed rows: a run of streamed deltas as one line.
//!
//! A model's answer arrives as thousands of `assistant/chunk` events that differ in a few bytes.
//! Writers fold a run of three or more of them into one row:
//!
//! ```text
//! {"type":"text-chunks","seq0":…,"time0":…,"data":{"turn":…,"step":…,"index":…,"dt":[…],"texts":[…]}}
//! {"type":"reasoning-chunks", as above}
//! {"type":"tool-call-chunks","seq0":…,"time0":…,"data":{"turn":…,"step":…,"index":…,"dt":[…],"id":…,"name":…,"args":[…]}}
//! ```
//!
//! Member `k` has seq `seq0 + k` and time `time0` plus the first `k` entries of `dt`; `name` may be
//! absent. Unpacked it is
//!
//! ```text
//! {"type":"assistant/chunk","seq":…,"time":…,"data":{"turn":…,"step":…,"chunk":{"type":"text-delta","index":…,"text":…}}}
//! {… "chunk":{"type":"reasoning-delta","index":…,"text":…}}}
//! {… "chunk":{"type":"tool-call-delta","index":…,"id":…,"name":…,"argumentsDelta":…}}}
//! ```
//!
//! No event may be called like a row, so the two are never confused. [`unpack`] copies literals
//! as they are spelled. [`pack_batch`] packs only what every reader of the format, one that
//! re-encodes values included, unpacks to the bytes it was given.

mod pack;
mod row;

#[cfg(test)]
mod tests;

pub use pack::{lines, pack_batch};

pub(crate) use row::{Row, Tag};

use crate::{
    envelope::{Members, Named},
    event::Event,
    records::{MAX_UNPACKED_BYTES, RecordError},
    text::Text,
};

/// The events that one packed row stands for.
///
/// # Errors
///
/// The text is no packed row, or a malformed one, or stands for more than
/// [`MAX_UNPACKED_BYTES`].
///
/// ```
/// use turnkeep_log::packed::unpack;
///
/// let row = r#"{"type":"text-chunks","seq0":4,"time0":50,"data":{"turn":1,"step":1,"index":0,"dt":[2],"texts":["He","y"]}}"#;
/// let events = unpack(&row.into())?;
/// assert_eq!(
///     events[1].text().as_str(),
///     r#"{"type":"assistant/chunk","seq":5,"time":52,"data":{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"y"}}}"#
/// );
/// # Ok::<(), turnkeep_log::records::RecordError>(())
/// ```
pub fn unpack(row: &Text) -> Result<Vec<Event>, RecordError> {
    let (_, members) = Members::find(row)?;
    let Named::Row(tag) = members.named()? else {
        return Err(RecordError::Row { problem: "is an event" });
    };
    let mut events = Vec::new();
    let mut room = MAX_UNPACKED_BYTES;
    Row::read(tag, &members)?.unpack(&mut room, &mut events)?;
    Ok(events)
}
