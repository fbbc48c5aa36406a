//! Standard output that minds who is at the other end.

use std::{
    fmt::Write as _,
    io::{self, BufWriter, IsTerminal as _, Stdout, Write as _},
    pin::pin,
};

use tokio::signal::unix::{SignalKind, signal};

use turnkeep_log::SessionId;

use crate::{failure::Failure, transcript::printable};

/// Buffered standard output.
///
/// A reader that has gone away (`turnkeep events … | head`) is no failure: the program ends
/// quietly, as other tools do.
#[derive(Debug)]
pub(crate) struct Output {
    out: BufWriter<Stdout>,
    terminal: bool,
}

impl Output {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        let out = io::stdout();
        let terminal = out.is_terminal();
        Self { out: BufWriter::with_capacity(1 << 16, out), terminal }
    }

    /// Writes one line, unless the reader has gone away.
    pub(crate) fn print_if_read(line: &str) -> Result<(), Failure> {
        match writeln!(io::stdout(), "{line}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::io("cannot write to standard output", &error))
            }
            _ => Ok(()),
        }
    }

    /// Whether a person is looking at it, and wants colours.
    pub(crate) fn colours(&self) -> bool {
        self.terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Whether a person is looking at it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.write_all(b"\n"));
        done(written)
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        done(self.out.write_all(bytes))
    }

    /// Hands over what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        done(self.out.flush())
    }
}

fn done(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|error| Failure::io("cannot write to standard output", &error)),
    }
}

/// An id in a sentence, in quotes, and unable to steer a terminal.
pub(crate) fn named(id: &SessionId) -> String {
    format!("\"{}\"", printable(id.as_str()).replace('\n', "␊"))
}

/// An id as an argument that a shell passes on as it is.
pub(crate) fn argument(id: &SessionId) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@%+=,".contains(&byte);
    let id = id.as_str();
    if id.bytes().all(plain) {
        return id.to_owned();
    }
    format!("'{}'", printable(id).replace('\n', "␊").replace('\'', r"'\''"))
}

/// This command as it was called, as far as that says which sessions are meant: `turnkeep`, with
/// the store and the configuration file that the command line named.
pub(crate) fn program() -> String {
    program_of(std::env::args().skip(1))
}

fn program_of(mut arguments: impl Iterator<Item = String>) -> String {
    let mut program = "turnkeep".to_owned();
    while let Some(argument) = arguments.next() {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        if name == "--" {
            break;
        }
        if ["--store", "--config"].contains(&name)
            && let Some(value) = value.or_else(|| arguments.next())
        {
            program = format!("{program} {name} {}", quoted(&value));
        }
    }
    program
}

/// A sentence whose commands, each after a backtick, work on the store that this one works on.
pub(crate) fn with_store(sentence: &str) -> String {
    if !sentence.contains("`turnkeep ") {
        return sentence.to_owned();
    }
    with_program(sentence, &program())
}

fn with_program(sentence: &str, program: &str) -> String {
    let mut parts = sentence.split("`turnkeep ");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Help is the same for every store, and a sentence is adapted once.
        let program =
            if part.starts_with('-') || part.starts_with("help") { "turnkeep" } else { program };
        let _ = write!(told, "`{program} {part}");
    }
    told
}

/// An argument as a shell passes it on.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_./:=@%+,".contains(char);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", printable(argument).replace('\n', "␊").replace('\'', r"'\''"))
    }
}

/// So many of something.
pub(crate) fn counted(count: u64, one: &str, more: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {more}") }
}

/// Runs `work` until it ends or the person stops it, which counts as done.
pub(crate) async fn until_interrupted(
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut work = pin!(work);
    tokio::select! {
        result = &mut work => result,
        stopped = interrupted() => stopped,
    }
}

/// Returns when the process is asked to end: Ctrl-C, SIGTERM, or the terminal is gone.
pub(crate) async fn interrupted() -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::io("cannot listen for signals", &error);
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    tokio::select! {
        _ = hangup.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{program_of, with_program};

    #[test]
    fn hints_name_the_store_that_was_named() {
        let program = |line: &[&str]| program_of(line.iter().map(|&word| word.to_owned()));
        assert_eq!(program(&["ls"]), "turnkeep");
        assert_eq!(program(&["--store", "my dir", "ls"]), "turnkeep --store 'my dir'");
        assert_eq!(program(&["ls", "--store=sqlite:a.db"]), "turnkeep --store sqlite:a.db");
        assert_eq!(program(&["rm", "--", "--store", "x"]), "turnkeep");
        let told = with_program("see `turnkeep ls`, not `turnkeep --help`", "turnkeep --store a");
        assert_eq!(told, "see `turnkeep --store a ls`, not `turnkeep --help`");
    }
}
