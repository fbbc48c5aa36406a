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
//! | `reader` | from a file to events |
//! | `lock`, `materialize`, `cut`, `writer` | owning a session, making its log, appending to it |
//! | `registry`, `queue`, `mutations` | who writes what within a store; one mutation after the other |
//! | `handle`, `store` | the asynchronous shell |
//!
//! All but the last two rows are plain synchronous code.

mod bytes;
mod cut;
mod discover;
mod failure;
mod frames;
pub mod fs;
mod handle;
mod head;
mod layout;
mod list;
mod lock;
mod materialize;
mod mutations;
mod options;
mod queue;
mod reader;
mod registry;
mod root;
mod snapshot;
mod store;
mod tail;
mod writer;

pub use layout::Encoding;
pub use options::{Compression, JsonlOptions};
pub use store::JsonlStore;
