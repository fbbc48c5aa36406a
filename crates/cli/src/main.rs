//! The `turnkeep` command.
//!
//! It reads the command line and the settings, runs one command, and turns the outcome into an
//! exit code. What the commands do is in [`commands`]; what they share is beside it.

mod args;
mod commands;
mod config;
mod context;
mod demo;
mod failure;
mod logging;
mod output;
mod store;
mod transcript;

use std::{process::ExitCode, time::Duration};

use clap::{CommandFactory as _, Parser as _};

use crate::{
    args::{Cli, Command},
    config::Settings,
    context::Context,
    failure::Failure,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.global.json;
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

fn start(cli: Cli) -> Result<(), Failure> {
    let context = Context {
        settings: Settings::load(&cli.global)?,
        json: cli.global.json,
        verbose: cli.global.verbose,
    };
    let serving = matches!(cli.command, Command::Serve(_) | Command::Demo(_));
    logging::start(&context, serving)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start the runtime", &error))?;
    let result = runtime.block_on(run(cli.command, &context));
    // A read of standard input that nobody waits for any more must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

async fn run(command: Command, context: &Context) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Serve(args) => commands::serve::run(args, context).await,
        Command::Ls(args) => commands::ls::run(args, context).await,
        Command::Show(args) => commands::show::run(args, context).await,
        Command::Events(args) => commands::events::run(args, context).await,
        Command::Append(args) => commands::append::run(args, context).await,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "turnkeep", &mut std::io::stdout());
            Ok(())
        }
    }
}
