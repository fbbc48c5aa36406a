//! DSH's own published session persistence, working on the same root.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// Where `scripts/setup` puts it, or `$TURNKEEP_DSH_PEER`.
fn packages() -> PathBuf {
    let packages = std::env::var_os("TURNKEEP_DSH_PEER").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/dsh-peer"),
        PathBuf::from,
    );
    let found = packages.join("node").exists();
    assert!(found, "no DSH at {}: run ./scripts/setup", packages.display());
    packages.canonicalize().unwrap()
}

/// One process of the peer. It has no memory of what other processes of it did.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// A session as the peer reads it.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) header: Value,
    /// As the peer spells them, one JSON text each.
    pub(crate) events: Vec<String>,
}

impl Peer {
    pub(crate) fn start(root: &Path, compression: &str) -> Self {
        let packages = packages();
        let mut child = Command::new(packages.join("node"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/dsh-peer/peer.mjs"))
            .args([packages.as_path(), root, Path::new(compression)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// What an operation gives, or what it throws.
    pub(crate) fn ask(&mut self, operation: &Value) -> Result<Value, String> {
        writeln!(self.input, "{operation}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let mut outcome: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("the peer ended at {operation}: {error}"));
        match outcome.get("error") {
            Some(error) => Err(error.as_str().unwrap().to_owned()),
            None => Ok(outcome["ok"].take()),
        }
    }

    pub(crate) fn list(&mut self) -> Vec<String> {
        strings(&self.ask(&json!({"op": "list"})).unwrap())
    }

    pub(crate) fn read(&mut self, id: &str) -> Result<Seen, String> {
        let read = self.ask(&json!({"op": "read", "id": id}))?;
        Ok(Seen { header: read["header"].clone(), events: strings(&read["events"]) })
    }

    pub(crate) fn create(&mut self, header: &Value) {
        self.ask(&json!({"op": "create", "header": header})).unwrap();
    }

    pub(crate) fn append(&mut self, id: &str, events: &[&str]) -> Result<(), String> {
        self.ask(&json!({"op": "append", "id": id, "events": events})).map(|_| ())
    }

    /// JSON texts as the peer would spell them after reading them.
    pub(crate) fn spell(&mut self, texts: &[&str]) -> Vec<String> {
        strings(&self.ask(&json!({"op": "spell", "texts": texts})).unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
