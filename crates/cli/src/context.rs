//! What every command is given besides its own arguments.

use std::path::PathBuf;

use crate::config::Settings;

/// What every command is given besides its own arguments.
#[derive(Debug)]
pub(crate) struct Context {
    /// The settings, of whichever source.
    pub(crate) settings: Settings,
    /// The configuration file that was read, if there is one.
    pub(crate) config_file: Option<PathBuf>,
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// How much to say on standard error.
    pub(crate) verbose: u8,
}
