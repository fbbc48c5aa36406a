//! Sessions as files below one directory, in the format of DSH.
//!
//! `docs/format.md` describes the bytes: what lies where, what a torn tail is, how a log is made
//! and appended to, and why that survives a crash. The code is built in layers:
//!
//! | layer | what it does |
//! |---|---|
//! | [`fs`] | every file operation, so that a test can put a failing disk underneath |
//! | `layout` | names and paths |
//! | `frames`, `tail`, `bytes` | finding, judging, packing and unpacking frames; the ends of damaged logs |
//! | `root`, `discover`, `head`, `snapshot`, `list` | finding sessions; headers and states of files |
//! | `reader`, `memo` | from a file to events; what was read last |
//! | `reader` | from a file to events |
//! | `index` | what is remembered of a log beside it, so that its end can be read alone |
//! | `inspect` | telling all that is wrong with a log, and reading out what is not |
//! | `lock`, `seal`, `materialize`, `cut`, `open_log`, `writer` | owning a session, making its log, appending to it |
//! | `trash` | deleting sessions and undoing that |
//! | `store` | what it takes to be a store |
//!
//! All of it is plain synchronous code; the asynchronous shell is the one that every backend has.
//! The feature `sim` adds `blocking`, which runs it without the shell.

#[cfg(feature = "sim")]
pub mod blocking;
mod bytes;
mod cut;
mod discover;
mod failure;
pub(crate) mod frames;
pub mod fs;
mod head;
mod index;
mod inspect;
mod layout;
mod list;
pub(crate) mod lock;
mod materialize;
mod memo;
mod open_log;
mod options;
mod reader;
mod root;
mod seal;
mod snapshot;
mod store;
mod tail;
mod trash;
mod writer;

pub use layout::Encoding;
pub use options::{Compression, JsonlOptions};
pub use store::JsonlStore;
