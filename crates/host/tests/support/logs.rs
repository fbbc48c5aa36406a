//! The log as a test sees it, and the watch over what it never holds.

use std::{
    io,
    sync::{Arc, Mutex, Once},
};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// In what the prompts, answers, events and passwords of the fixtures say, and in no log line.
pub const SAID: &str = "canary-0815";

/// What no log line of any test may hold: what was said, the directories of sessions, and how
/// tokens and cookies begin.
const NEVER_LOGGED: [&str; 6] =
    [SAID, "canary4711", "/work/demo", "/work/proj", "tk_", "turnkeep="];

/// Has every line that this process logs looked at, those that no test asks for included. One that
/// repeats what it must not ends the test, whichever it is.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(Watch::default)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// Looks at lines and forgets them.
#[derive(Debug, Default)]
struct Watch;

impl io::Write for Watch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        look_at(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A panic here would be the host's, which survives it.
fn look_at(line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    if let Some(found) = NEVER_LOGGED.iter().find(|never| line.contains(**never)) {
        eprintln!("a log line repeats what it must not: {}", line.replace(found, "[…]"));
        std::process::abort();
    }
}

/// Collects every log line of this thread while it lives.
#[derive(Debug)]
pub struct Logs {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Logs {
    pub fn start() -> Self {
        // With a single subscriber alive, `tracing` has the thread that comes upon a line first
        // decide for all threads whether it is of interest, and other tests' threads are interested
        // in none. With two, every subscriber is asked.
        watch();
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(lines.clone())
            .finish();
        Self { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines of requests, the newest last.
    pub fn requests(&self) -> Vec<String> {
        let text = self.text();
        let lines = text.lines().filter(|line| line.contains("turnkeep_host::http::log"));
        lines.map(str::to_owned).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        look_at(bytes);
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Lines;

    fn make_writer(&self) -> Lines {
        self.clone()
    }
}
