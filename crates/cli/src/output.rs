//! Standard output that minds who is at the other end.

use std::{
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
