//! What the fuzz targets of this crate try.
//!
//! | | |
//! |---|---|
//! | [`corpus`] | what a real server sent |
//! | [`mutants`] | what is done to it |
//! | [`reference`] | what a page is, over values |

#![allow(unreachable_pub, reason = "nothing of a test program can be reached")]

pub mod corpus;
pub mod mutants;
pub mod reference;
