//! Logs that other programs wrote.

use std::sync::OnceLock;

use turnkeep_store::jsonl::Encoding;

use super::reference::next_frame;
use crate::support::fixtures::{self, Fixture};

/// A log to start from.
#[derive(Debug)]
pub struct Log {
    pub session: String,
    pub project: &'static str,
    pub encoding: Encoding,
    /// The text of each frame, or each line of a plain log.
    pub parts: Vec<String>,
    /// What follows the last of them.
    pub tail: Vec<u8>,
}

impl Log {
    fn of(fixture: &Fixture) -> Self {
        let mut parts = Vec::new();
        let mut rest = &fixture.bytes[..];
        match fixture.encoding {
            Encoding::Zstd => {
                while let Some((text, length)) = next_frame(rest, usize::MAX) {
                    parts.push(String::from_utf8(text).unwrap());
                    rest = &rest[length..];
                }
            }
            Encoding::None => {
                while let Some(feed) = rest.iter().position(|byte| *byte == b'\n') {
                    parts.push(String::from_utf8_lossy(&rest[..=feed]).into_owned());
                    rest = &rest[feed + 1..];
                }
            }
        }
        Self {
            session: fixture.session.clone(),
            project: fixture.project(),
            encoding: fixture.encoding,
            parts,
            tail: rest.to_vec(),
        }
    }
}

/// The golden and the damaged logs. The longest one is left out: it is like the others, and would
/// take most of the time.
pub fn logs() -> &'static [Log] {
    static LOGS: OnceLock<Vec<Log>> = OnceLock::new();
    LOGS.get_or_init(|| {
        let all = fixtures::all("golden").into_iter().chain(fixtures::all("damaged"));
        all.filter(|fixture| fixture.bytes.len() < 200_000)
            .filter(|fixture| !fixture.name.contains("web-goal"))
            .map(|fixture| Log::of(&fixture))
            .filter(|log| !log.parts.is_empty())
            .collect()
    })
}

/// Every kind of line there is in them: headers, events, packed rows, damaged ones; each kind a few
/// times.
pub fn lines() -> &'static [String] {
    static LINES: OnceLock<Vec<String>> = OnceLock::new();
    LINES.get_or_init(|| {
        let mut seen = std::collections::HashMap::<String, usize>::new();
        let lines = logs().iter().flat_map(|log| &log.parts).flat_map(|part| part.lines());
        lines
            .filter(|line| line.len() < 20_000)
            .filter(|line| {
                let kind: String = line.chars().take(24).collect();
                let count = seen.entry(kind).or_default();
                *count += 1;
                *count <= 8
            })
            .map(str::to_owned)
            .collect()
    })
}
