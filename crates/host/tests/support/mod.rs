//! What the tests of the host share.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod both;
pub mod contract;
pub mod door;
pub mod events;
pub mod host;
pub mod logs;
pub mod store;
pub mod upstream;
