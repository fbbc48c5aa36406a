//! The turnkeep HTTP service.

mod driver;
mod failure;
mod host;
mod http;
pub mod kinds;
mod listing;
mod options;
mod serve;
mod source;
mod upstream;

pub use driver::TurnPageRequest;
pub use failure::Failure;
pub use host::Host;
pub use options::{HostError, HostOptions};
pub use upstream::{UpstreamAddressError, UpstreamOptions};
