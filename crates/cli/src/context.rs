//! What every command is given besides its own arguments.

use crate::config::Settings;

/// What every command is given besides its own arguments.
#[derive(Debug)]
pub(crate) struct Context {
    /// The settings, of whichever source.
    pub(crate) settings: Settings,
    /// Whether to print JSON.
    pub(crate) json: bool,
    /// How much to say on standard error.
    pub(crate) verbose: u8,
}
