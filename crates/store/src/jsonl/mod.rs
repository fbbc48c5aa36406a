//! Logs as files, laid out as in `docs/format.md`.

#![allow(dead_code, unused_imports, reason = "the store that is built on these parts comes next")]

mod frames;
pub mod fs;
mod layout;
mod tail;

pub use layout::Encoding;
