//! The turnkeep HTTP service.

pub mod kinds;
