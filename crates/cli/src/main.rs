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
mod notify;
mod output;
mod progress;
mod store;
mod transcript;
mod verification;

use std::{process::ExitCode, time::Duration};

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};

use crate::{
    args::{Cli, Command},
    config::Settings,
    context::Context,
    failure::Failure,
    output::Output,
};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return refuse(&told),
    };
    let json = cli.global.json;
    match start(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(json),
    }
}

/// Answers a command line that is no command: help and version as they are, a mistake in one
/// sentence like any other failure.
fn refuse(told: &clap::Error) -> ExitCode {
    if !told.use_stderr() {
        let _ = told.print();
        return ExitCode::SUCCESS;
    }
    if told.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = told.print();
        return ExitCode::from(2);
    }
    let text = told.to_string();
    let mut lines = text.lines().map(str::trim);
    let problem = lines.next().unwrap_or_default().trim_start_matches("error: ");
    // What clap lists on lines of its own, such as the arguments that are missing, and its advice.
    let details =
        lines.take_while(|line| !line.starts_with("Usage:")).filter(|line| !line.is_empty());
    let details: Vec<_> = details.filter(|line| !line.starts_with("For more")).collect();
    let json = std::env::args_os().any(|argument| argument == "--json");
    let sentence = [&[problem], &details[..]].concat().join(" ");
    let command = asked_for(std::env::args().skip(1));
    let all = match (command.as_str(), told.kind()) {
        ("verify ", ErrorKind::MissingRequiredArgument) => "; `--all` verifies every session",
        _ => "",
    };
    Failure::usage(format!("{sentence}{all}; see `turnkeep {command}--help`")).report(json)
}

/// The subcommand that a command line is about, a space behind each of its words. Clap says it for
/// some mistakes only.
fn asked_for(mut arguments: impl Iterator<Item = String>) -> String {
    let program = Cli::command();
    let (mut command, mut words) = (&program, String::new());
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            break;
        }
        if let Some(option) = argument.strip_prefix("--") {
            let mut known = program.get_arguments().chain(command.get_arguments());
            let is_it = |known: &&clap::Arg| known.get_long() == Some(option);
            if known.find(is_it).is_some_and(|known| known.get_action().takes_values()) {
                let _ = arguments.next();
            }
        } else if !argument.starts_with('-') {
            let Some(below) = command.find_subcommand(&argument) else { break };
            command = below;
            words = format!("{words}{argument} ");
        }
    }
    words
}

fn start(cli: Cli) -> Result<ExitCode, Failure> {
    let context = Context {
        settings: Settings::load(&cli.global)?,
        config_file: config::file(&cli.global),
        json: cli.global.json,
        verbose: cli.global.verbose,
    };
    let serving = matches!(cli.command, Command::Serve(_) | Command::Demo(_));
    logging::start(&context, serving)?;
    logging::tell_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("cannot start the runtime", &error))?;
    let result = runtime.block_on(run(cli.command, &context));
    // A read of standard input that nobody waits for any more must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

async fn run(command: Command, context: &Context) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Demo(args) => commands::demo::run(args, context).await,
        Command::Serve(args) => commands::serve::run(args, context).await,
        Command::Ls(args) => commands::ls::run(args, context).await,
        Command::Show(args) => commands::show::run(args, context).await,
        Command::Events(args) => commands::events::run(args, context).await,
        Command::Export(args) => commands::export::run(args, context).await,
        Command::Append(args) => commands::append::run(args, context).await,
        Command::Resume { id } => commands::resume::run(&id, context).await,
        Command::Rm(args) => commands::rm::run(args, context).await,
        Command::Trash(args) => commands::trash::run(args, context).await,
        Command::Doctor(args) => commands::doctor::run(args, context).await,
        Command::Token(args) => commands::token::run(&args, context),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "turnkeep", &mut script);
            let mut out = Output::stdout();
            out.bytes(&script).and_then(|()| out.flush())
        }
        Command::Recover(args) => commands::recover::run(args, context).await,
        // The one that may answer in the negative.
        Command::Verify(args) => return commands::verify::run(args, context).await,
    };
    done.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::asked_for;

    #[test]
    fn help_is_that_of_the_innermost_command() {
        let command = |line: &str| asked_for(line.split(' ').map(str::to_owned));
        assert_eq!(command("token create --scope all x"), "token create ");
        assert_eq!(command("--store ls --json append --bogus"), "append ");
        assert_eq!(command("--store=ls token creat"), "token ");
        assert_eq!(command("token --config create ls -x"), "token ls ");
        assert_eq!(command("show ls"), "show ");
        assert_eq!(command("-v --bogus"), "");
        assert_eq!(command("-- ls"), "");
    }
}
