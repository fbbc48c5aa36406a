//! What a session log says.
//!
//! A coding agent's conversation is an append-only log of events: a header line, then one JSON
//! object a line. This crate knows that format and nothing else: it does no I/O, has no clock, and
//! decides nothing about where logs live.
//!
//! | reading | |
//! |---|---|
//! | [`SessionHeader`] | the first line: which session this is, and of which format |
//! | [`RecordScan`] | from text to [`Event`]s, and where a damaged log still holds |
//! | [`gate`] | whether this build may read what it found: types it knows, messages that are some |
//! | [`validate`] | whether a session can be taken up from it, and what its model sees |
//! | [`Blank`] | what a list of sessions shows of one |
//! | **writing** | |
//! | [`EventDraft`] | an event before its place in the log is known |
//! | [`packed`] | the lines of an append batch, streamed deltas folded into rows |
//! | [`repair`] | what closes a turn that was cut short |
//! | [`fork`] | a log that starts with the events of another |
//! | [`seed`] | the mark after what a session was taken up with |
//! | **underneath** | |
//! | [`json`] | JSON as spans of text: what is not asked for is never decoded |
//! | [`Text`] | slices of one shared text |
//!
//! ```
//! use turnkeep_log::{RecordScan, Seq, SessionHeader, Text, Vocabulary, gate};
//!
//! let log = concat!(
//!     r#"{"type":"session","version":0,"id":"s1","createdAt":1,"delegationDepth":0}"#, "\n",
//!     r#"{"type":"turn/start","seq":0,"time":5,"data":{"turn":1}}"#, "\n",
//!     r#"{"type":"turn/end","seq":1,"time":9,"data":{"turn":1,"reason":{"kind":"completed"}}}"#, "\n",
//! );
//! let (first, rest) = log.split_once('\n').unwrap_or_default();
//! let header = SessionHeader::parse(first, None)?;
//!
//! let mut scan = RecordScan::new(Seq(0));
//! scan.feed(&Text::from(rest));
//! scan.committed().map_err(Clone::clone)?;
//! let events = scan.take_events();
//!
//! gate::check(&header.id, &events, &Vocabulary::v0())?;
//! assert_eq!(events[1].event_type(), "turn/end");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod blank;
mod envelope;
pub mod event;
pub mod fork;
pub mod gate;
pub mod header;
pub mod id;
pub mod json;
pub mod packed;
mod provenance;
pub mod records;
pub mod repair;
pub mod seed;
pub mod text;
pub mod validate;
pub mod vocabulary;

pub use blank::Blank;
pub use event::{CompleteError, Event, EventDraft, EventError};
pub use fork::{Fork, ForkError};
pub use gate::GateError;
pub use header::{FORMAT_VERSION, HeaderError, HeaderProblem, Origin, SessionHeader};
pub use id::{Seq, SessionId};
pub use records::RecordScan;
pub use repair::TurnState;
pub use text::Text;
pub use validate::{RestoreError, RestoreProblem};
pub use vocabulary::Vocabulary;
