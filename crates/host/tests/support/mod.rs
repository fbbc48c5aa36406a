//! What the tests of the host share.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests may panic; clippy only knows test functions"
)]

pub mod contract;
pub mod host;
pub mod logs;
pub mod upstream;
