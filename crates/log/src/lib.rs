//! What a session log says.
//!
//! A coding agent's conversation is an append-only log of events: a header line, then one JSON
//! object a line. This crate knows that format and nothing else: it does no I/O, has no clock, and
//! decides nothing about where logs live.

pub mod event;
pub mod header;
pub mod id;
pub mod json;
pub mod text;

pub use event::{Event, EventError};
pub use header::{FORMAT_VERSION, Origin, SessionHeader};
pub use id::{Seq, SessionId};
pub use text::Text;
