//! Trying what nobody would write, for a while.
//!
//! | | |
//! |---|---|
//! | [`engine`] | what tries them, and measures |
//! | [`corpus`] | what the tries start from: logs that other programs wrote, intact and damaged |
//! | [`mutants`] | what is done to them: to their bytes, their frames, their lines |
//! | [`reference`] | a reader that is too plain to be wrong, to compare with |

#![allow(dead_code, unreachable_pub, reason = "nothing of a test program can be reached")]

pub mod corpus;
pub mod engine;
pub mod mutants;
pub mod reference;

pub use engine::{Meter, Outcome, Tried, alone, fuzz, within};
