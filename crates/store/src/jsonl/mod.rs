//! Logs as files, laid out as in `docs/format.md`.

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
