//! What the program says of itself, on standard error.

use std::{backtrace::Backtrace, io::IsTerminal as _};

use tracing_subscriber::{EnvFilter, fmt};

use crate::{context::Context, failure::Failure};

/// Lets a panic tell where it happened, and not what it says, which may repeat what a session
/// holds.
pub(crate) fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let stack = Backtrace::force_capture();
        tracing::error!(place, %stack, "a bug, please report this");
    }));
}

/// Starts logging: at the level that is set, else at `info` when serving and `error` otherwise,
/// where the command says itself what went wrong; raised by `-v`.
pub(crate) fn start(context: &Context, serving: bool) -> Result<(), Failure> {
    let level = match (context.settings.log_level.as_deref(), context.verbose) {
        (Some(level @ ("error" | "warn" | "info" | "debug" | "trace")), 0) => level,
        (Some("error" | "warn" | "info" | "debug" | "trace") | None, 2..) => "debug",
        (Some("error" | "warn" | "info" | "debug" | "trace") | None, 1) => "info",
        (None, 0) if serving => "info",
        (None, 0) => "error",
        (Some(other), _) => {
            return Err(Failure::usage(format!(
                "log_level is error, warn, info, debug or trace, not `{other}`"
            )));
        }
    };
    let filter = EnvFilter::new(format!(
        "warn,turnkeep={level},turnkeep_host={level},turnkeep_store={level}"
    ));
    let builder = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    match context.settings.log_format.as_deref() {
        None | Some("text") => builder.init(),
        Some("json") => builder.json().init(),
        Some(other) => {
            return Err(Failure::usage(format!("log_format is text or json, not `{other}`")));
        }
    }
    Ok(())
}
