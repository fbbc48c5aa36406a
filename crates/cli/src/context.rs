//! What every command is given besides its own arguments.

use crate::config::Settings;

/// What every command is given besides its own arguments.
#[derive(Debug)]
pub struct Context {
    /// The settings, of whichever source.
    pub settings: Settings,
    /// Whether to print JSON.
    pub json: bool,
    /// How much to say on standard error.
    pub verbose: u8,
}
