//! Real logs, written by another implementation.

use std::{fs, path::PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use turnkeep_log::Event;
use turnkeep_store::jsonl::Encoding;

/// One log of the collection, with what its writer's own reader made of it.
pub struct Fixture {
    pub name: String,
    pub session: String,
    pub encoding: Encoding,
    pub bytes: Vec<u8>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Events { count: usize, sha256: String },
    Refused,
}

/// The collection: `golden` or `damaged`.
pub fn all(kind: &str) -> Vec<Fixture> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/dsh");
    let manifest = fs::read_to_string(root.join("manifest.json")).unwrap();
    let manifest: Vec<Value> = serde_json::from_str(&manifest).unwrap();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    manifest
        .iter()
        .filter(|entry| text(entry, "file").starts_with(kind))
        .map(|entry| {
            let verdict = &entry["verdict"];
            Fixture {
                name: text(entry, "file"),
                session: text(entry, "id"),
                encoding: match entry["compression"].as_str().unwrap() {
                    "zstd" => Encoding::Zstd,
                    "none" => Encoding::None,
                    other => panic!("{other}"),
                },
                bytes: fs::read(root.join(text(entry, "file"))).unwrap(),
                verdict: if verdict["ok"].as_bool().unwrap() {
                    Verdict::Events {
                        count: usize::try_from(verdict["events"].as_u64().unwrap()).unwrap(),
                        sha256: text(verdict, "logicalSha256"),
                    }
                } else {
                    Verdict::Refused
                },
            }
        })
        .collect()
}

pub fn named(kind: &str, name: &str) -> Fixture {
    all(kind).into_iter().find(|fixture| fixture.name.ends_with(name)).unwrap()
}

impl Fixture {
    /// The project directory that the log belongs into.
    pub fn project(&self) -> &'static str {
        // All but one were recorded in the same directory.
        if self.name.contains("web-goal-multi-turn") {
            "--work-proj-workspace--"
        } else {
            "--work-proj--"
        }
    }
}

/// What identifies a list of events: their texts, joined by line feeds, hashed.
pub fn sha256(events: &[Event]) -> String {
    use std::fmt::Write as _;
    let mut hash = Sha256::new();
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            hash.update(b"\n");
        }
        hash.update(event.text().as_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}
