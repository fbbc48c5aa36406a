//! What a transcript page is.
//!
//! Pure and sans-I/O: paging is a state machine that says which page of its source it wants and is
//! fed it; whoever drives it owns the network, the clock and the cancellation.

pub mod fold;
mod normalize;
mod object;
#[cfg(test)]
mod oracle;
pub mod projection;
mod slim;
mod splice;
pub mod summary;

pub use fold::{Fold, FoldPage};
pub use projection::{Parts, Projection};
