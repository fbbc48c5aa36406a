//! What the tests of a store are written with.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of this")]

pub mod database;
pub mod disk;
pub mod faulty;
pub mod fixtures;
pub mod stopped;
pub mod watched;

#[allow(unused_imports, reason = "each test program uses its own part of this")]
pub use turnkeep_store::contract::steps::*;
