//! Runs the built command on a store of its own.

#![allow(dead_code, reason = "each test file uses its own part of this")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[allow(dead_code, clippy::indexing_slicing, reason = "only the tests against it use it")]
pub(crate) mod peer;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long to wait for what must happen at once before calling it a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with a store in it, gone at the end of the test.
pub(crate) struct Bench {
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// The root of the store.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("sessions")
    }

    /// The command, with this store and no settings of the person who runs the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnkeep"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TURNKEEP_")) {
            command.env_remove(name);
        }
        command
            .env("HOME", self.folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env("TZ", "UTC")
            .env("TURNKEEP_STORE", self.root())
            .current_dir(self.folder.path())
            .args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        quiet(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self.spawn(args);
        child.stdin.take().unwrap().write_all(input).unwrap();
        quiet(child.wait_with_output().unwrap())
    }

    /// Starts the command with all its streams piped.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Puts a log into the store as some other program left it.
    pub(crate) fn plant(&self, project: &str, id: &str, log: &Path) {
        let session = self.root().join(project).join(id);
        fs::create_dir_all(&session).unwrap();
        let name = if log.extension().is_some_and(|extension| extension == "zstd") {
            "session.jsonl.zstd"
        } else {
            "session.jsonl"
        };
        fs::copy(log, session.join(name)).unwrap();
        private(&self.root());
    }
}

/// Takes from others what they may not have in a store.
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            private(&entry.unwrap().path());
        }
    }
}

/// A file of the shared fixtures.
pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(path)
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// One turn of a conversation, as lines of input.
///
/// It says more than is shown of it: a word that must not be told of anywhere else.
pub(crate) fn turn(number: u32, asked: &str, answered: &str) -> String {
    let user = serde_json::json!({"type": "user/message", "surfaceOp": "append", "data": {
        "id": format!("u{number}"), "role": "user", "source": {"kind": "user"}, "note": CANARY,
        "content": [{"type": "text", "text": asked}],
    }});
    let assistant = serde_json::json!({"type": "assistant/message", "surfaceOp": "append", "data": {
        "turn": number, "step": 1, "message": {
            "id": format!("a{number}"), "role": "assistant", "note": CANARY,
            "source": {"kind": "model", "provider": "p", "model": "m"},
            "content": [{"type": "text", "text": answered}],
        },
    }});
    format!(
        "{{\"type\":\"turn/start\",\"data\":{{\"turn\":{number}}}}}\n\
         {user}\n\
         {{\"type\":\"step/start\",\"data\":{{\"turn\":{number},\"step\":1}}}}\n\
         {assistant}\n\
         {{\"type\":\"step/end\",\"data\":{{\"turn\":{number},\"step\":1}}}}\n\
         {{\"type\":\"turn/end\",\"data\":{{\"turn\":{number},\"reason\":{{\"kind\":\"completed\"}}}}}}\n"
    )
}

/// Waits until `done`, or fails the test.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The lines that a child prints, read as they come.
pub(crate) struct Lines(BufReader<ChildStdout>);

impl Lines {
    pub(crate) fn of(child: &mut Child) -> Self {
        Self(BufReader::new(child.stdout.take().unwrap()))
    }

    pub(crate) fn next(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

/// In every message that tests make, and in no sentence on standard error, be it a log line or a
/// failure.
const CANARY: &str = "canary-of-a-message";

/// Makes sure that a command said nothing on standard error of what is in messages.
fn quiet(output: Output) -> Output {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains(CANARY), "content of a message was told of");
    output
}

/// Sends a signal to a child.
pub(crate) fn signal(child: &Child, name: &str) {
    // The shell's own `kill`: the program of that name is not on every machine.
    let kill = format!("kill {name} {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(sent.success());
}

/// A GET over HTTP/1.1: status, headers in lower case, body.
pub(crate) fn get(address: &str, path: &str) -> (u16, String, String) {
    ask(address, "GET", path)
}

/// Asks with a method; the status, the head in lower case, and the body.
pub(crate) fn ask(address: &str, method: &str, path: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_owned())
}
