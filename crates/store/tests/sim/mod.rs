//! A disk that loses power, and a store that has to live with it.
//!
//! | | |
//! |---|---|
//! | [`random`] | every decision, from one seed |
//! | [`bytes`] | what a crash makes of one file, and of one directory |
//! | [`disk`] | what is where, what fails when |
//! | [`fs`] | the file system as a process has it |
//! | [`tally`] | how often what happened |
//! | [`oracle`] | what a log may hold |
//! | [`run`], [`foreign`], [`events`] | the life of a session: what its program and others do |
//! | [`index`] | what is left of its index |

#![allow(unreachable_pub, reason = "nothing of a test program can be reached")]

pub mod bytes;
pub mod disk;
mod events;
mod foreign;
pub mod fs;
mod index;
pub mod oracle;
pub mod random;
pub mod run;
pub mod tally;
