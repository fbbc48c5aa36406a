//! What a transcript page is.
//!
//! A session is a list of records `{info, parts}`: what a person wrote, what the agent answered,
//! what its tools did. Clients want the last few turns of it; sources hand out rows by the hundred.
//! This crate is everything between the two that is neither network nor file: where a turn starts
//! ([`boundary`]), where a page goes on ([`cursor`]), how pages of rows become one page of turns
//! ([`scan`]) or what happened since ([`reconcile`]), what of a record a client is sent ([`projection`]), one message of it or what that
//! changed ([`message`], [`changes`]), what the records of a log are ([`fold`]), and what of the events
//! that tell of changes a client is sent, and what they add to a page ([`events`]).
//!
//! It is sans-I/O: paging is a state machine that says which page of its source it wants and is fed
//! it; whoever drives it owns the network, the clock and the cancellation.
//!
//! ```
//! use turnkeep_log::Text;
//! use turnkeep_turns::{
//!     Answer, PageRequest, Parts, Projection, SourceKind, SourcePage, TurnPageError, TurnQuery,
//!     TurnScan,
//! };
//!
//! /// Stands in for a request to a server: its newest page, which has no older one.
//! fn ask(_: &PageRequest) -> Result<Answer, TurnPageError> {
//!     let body = Text::from(
//!         r#"[{"info":{"id":"msg_1","role":"user","time":{"created":1}},"parts":[]},
//!             {"info":{"id":"msg_2","role":"assistant","time":{"created":2}},"parts":[]},
//!             {"info":{"id":"msg_3","role":"user","time":{"created":3}},"parts":[]}]"#,
//!     );
//!     SourcePage::from_opencode(&body, None).map(Answer::Page)
//! }
//!
//! let query = TurnQuery { turns: 1, width: 100, before: None };
//! let projection = Projection { parts: Parts::Slim, reasoning: true };
//! let mut scan = TurnScan::new("ses_1", &query, SourceKind::OpenCode, projection)?;
//! while let Some(request) = scan.want() {
//!     let answer = ask(request)?;
//!     scan.feed(answer)?;
//! }
//! let page = scan.finish()?;
//! assert_eq!((page.records.len(), page.turn_count, page.complete), (1, 1, false));
//!
//! // The cursor asks for what is older than `msg_3`.
//! let older = TurnQuery { before: page.cursor, ..query };
//! assert!(TurnScan::new("ses_1", &older, SourceKind::OpenCode, projection).is_ok());
//! # Ok::<(), TurnPageError>(())
//! ```

pub mod boundary;
pub mod canonical;
pub mod changes;
pub mod cursor;
pub mod error;
pub mod events;
pub mod fold;
pub mod lenient;
pub mod message;
mod normalize;
mod object;
#[cfg(test)]
mod oracle;
#[cfg(test)]
#[path = "oracle/tests.rs"]
mod oracle_tests;
pub mod page;
mod pieces;
pub mod projection;
pub mod query;
mod reader;
pub mod reconcile;
mod row;
pub mod scan;
mod slim;
mod splice;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod turn_page;

pub use boundary::is_boundary;
pub use error::{ChangesError, MessageError, ReconcileError, TurnPageError};
pub use fold::{Fold, FoldPage};
pub use page::{Answer, PageRequest, Purpose, SourceKind, SourcePage};
pub use projection::{Parts, Projection};
pub use query::TurnQuery;
pub use reconcile::{ReconcilePage, ReconcileScan};
pub use scan::TurnScan;
pub use turn_page::TurnPage;
