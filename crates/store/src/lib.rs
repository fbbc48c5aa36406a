//! Where session logs live.
//!
//! [`SessionStore`] and [`SessionHandle`] are the seam that programs are written against.

pub mod error;
mod seam;

pub use seam::{
    Access, Cancel, EventRange, ListQuery, Revision, SessionEntry, SessionHandle, SessionList,
    SessionStat, SessionState, SessionStore,
};
