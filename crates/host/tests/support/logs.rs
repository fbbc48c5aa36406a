//! The log as a test sees it.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex},
};

use tracing::{Dispatch, subscriber::DefaultGuard};
use tracing_subscriber::fmt::MakeWriter;

/// Collects every log line of this thread while it lives.
#[derive(Debug)]
pub struct Logs {
    lines: Lines,
    _guard: DefaultGuard,
}

#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

/// With a single subscriber alive, `tracing` has the thread that comes upon a line first decide for
/// all threads whether it is of interest, and other tests' threads are interested in none. With
/// two, every subscriber is asked.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| {
    Dispatch::new(
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(io::sink)
            .finish(),
    )
});

impl Logs {
    pub fn start() -> Self {
        LazyLock::force(&SECOND);
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
