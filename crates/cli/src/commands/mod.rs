//! One file a command.

pub(crate) mod append;
pub(crate) mod demo;
pub(crate) mod events;
pub(crate) mod ls;
pub(crate) mod recover;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod verify;
