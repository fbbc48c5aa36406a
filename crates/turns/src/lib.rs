//! What a transcript page is.
//!
//! Pure and sans-I/O: paging is a state machine that says which page of its source it wants and is
//! fed it; whoever drives it owns the network, the clock and the cancellation.

pub mod boundary;
pub mod cursor;
pub mod error;
pub mod fold;
pub mod lenient;
mod normalize;
mod object;
#[cfg(test)]
mod oracle;
pub mod page;
pub mod projection;
pub mod query;
mod row;
pub mod scan;
mod slim;
mod splice;
pub mod summary;
pub mod turn_page;

pub use boundary::is_boundary;
pub use error::TurnPageError;
pub use fold::{Fold, FoldPage};
pub use page::{Answer, PageRequest, Purpose, SourcePage};
pub use projection::{Parts, Projection};
pub use query::TurnQuery;
pub use scan::{SourceKind, TurnScan};
pub use turn_page::TurnPage;
