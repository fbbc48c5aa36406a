//! Events as they happen, from where sessions live to everyone who watches.
//!
//! One [`reader`] follows the upstream however many clients there are, and what stored sessions do
//! is published by the host itself. Both go into the [`Hub`], which numbers every event, keeps the
//! newest for clients that come back, and wakes those who wait. A client is a place in that one
//! line of events: nothing is queued for it, and a client that falls too far behind is dropped
//! while the others go on.
//!
//! | | |
//! |---|---|
//! | [`sse`] | bytes of an event stream to blocks |
//! | [`reader`] | the upstream's stream: connected, watched, connected again |
//! | [`hub`] | the line of events, and what a page has to know of it |
//! | [`event`] | one event, and each of its forms once |
//! | [`frames`] | the forms: SSE blocks and messages of a WebSocket |
//! | [`live`] | what runs while the host serves |
//! | [`client`] | a place in the line |
//! | [`body`] | a client over SSE |

pub(crate) mod body;
pub(crate) mod client;
mod directories;
pub(crate) mod event;
pub(crate) mod frames;
mod hub;
mod id;
pub(crate) mod link;
pub(crate) mod live;
mod payload;
pub(crate) mod reader;
mod sessions;
mod sse;
mod stats;
mod timing;

pub use hub::{Hub, Moment};
pub use id::EventId;
pub use payload::{Origin, Published};
pub use stats::HubStats;
pub use timing::EventTiming;
