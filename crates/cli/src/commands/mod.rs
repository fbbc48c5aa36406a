//! One file a command.

pub(crate) mod append;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod ls;
pub(crate) mod recover;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod token;
pub(crate) mod trash;
pub(crate) mod verify;
