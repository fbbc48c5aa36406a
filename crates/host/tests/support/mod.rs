//! What the tests of the host share.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

pub mod both;
pub mod contract;
pub mod described;
pub mod door;
pub mod host;
pub mod logs;
pub mod raw_upstream;
pub mod store;
pub mod upstream;
