//! Events on their way to a client.
//!
//! A server tells what changes as a stream of events `{id?, type, properties}` (`data` in place of
//! `properties` in newer ones). Between it and a client stand three things, all of them here and
//! all of them without I/O:
//!
//! - [`reduce`] takes patches out of the summaries that events carry, as pages have them taken out;
//! - [`ReasoningFilter`] keeps reasoning from a client that did not ask for it;
//! - [`LiveParts`] remembers the text of parts that are still being written. A server lists such a
//!   part without its text, so a page that is read meanwhile is given it by [`LiveText`].
//!
//! OpenCode's global stream has every durable event twice: plain, and inside an event of type
//! `sync` under its versioned name (`message.updated.1`), as
//! `{"type":"sync","syncEvent":{"type":…,"data":…}}`. What is taken from the one has to be taken
//! from the other.
//!
//! An event here is the JSON text of the object with the `type`, taken out of any wrapper. What is
//! no such object passes as it is: a newer server may say things that nobody here knows.

mod envelope;
mod live;
mod overlay;
mod reasoning;
mod reduce;

#[cfg(test)]
mod tests;

pub(crate) use self::live::OpenParts;
pub use self::{
    live::{LiveParts, LiveText},
    reasoning::{DEFAULT_KNOWN_PARTS, Passed, ReasoningFilter},
    reduce::reduce,
};
