//! One file a command.

pub mod append;
pub mod demo;
pub mod events;
pub mod ls;
pub mod serve;
pub mod show;
