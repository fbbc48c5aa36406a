//! Requests that are made up from the description of the routes, to a real process.
//!
//! `schemathesis` reads `/openapi.json` and asks for everything that is described there, with what
//! the description allows and with what it does not. An answer that is not described, in its
//! status, its media type or its body, fails the test, and so does a failure of the server.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says where")]

mod support;

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use support::{Bench, signal, text, turn};

/// Answers that have no end, or are no answers: a generator would wait for it for ever. Tests of
/// their own read them.
const ENDLESS: [&str; 5] = [
    "events",
    "events_of_directory",
    "event_socket",
    "event_socket_of_directory",
    "session_event_stream",
];

/// What is checked of each answer. That what is not described is refused is left out: parameters
/// are read as leniently as the clients' other host reads them.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

/// Where `scripts/setup` puts it, or `$TURNKEEP_SCHEMATHESIS`.
fn program() -> PathBuf {
    let folder = std::env::var_os("TURNKEEP_SCHEMATHESIS")
        .map_or_else(|| repository().join(".tools/schemathesis"), PathBuf::from);
    let program = folder.join("bin/schemathesis");
    assert!(program.exists(), "no schemathesis at {}: run ./scripts/setup", program.display());
    program
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Serves a session of three turns, with the transcript cache on.
fn serve(bench: &Bench) -> (Child, String) {
    let turns: String = (1..=3).map(|number| turn(number, "What is it?", "A test.")).collect();
    let appended = bench.run_with_input(&["append", "ses_kept", "--create"], turns.as_bytes());
    assert!(appended.status.success(), "{}", text(&appended.stderr));
    let cache = bench.root().with_file_name("cache.sqlite");
    let mut child = bench
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .env("TURNKEEP_TRANSCRIPT_CACHE_PATH", cache)
        .env("TURNKEEP_LOG_LEVEL", "error")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = loop {
        let line = lines.next().expect("it says where it serves").unwrap();
        if let Some((_, address)) = line.split_once("turnkeep: serving at http://") {
            break address.to_owned();
        }
    };
    // Whatever else it says is of interest only when something fails.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
    (child, address)
}

fn hold_to_the_description(config: Option<&str>) {
    let bench = Bench::new();
    let (mut child, address) = serve(&bench);
    let mut command = Command::new(program());
    if let Some(config) = config {
        command.arg("--config-file").arg(repository().join("tests/schemathesis").join(config));
    }
    command
        .current_dir(bench.root().parent().unwrap())
        .env("NO_COLOR", "1")
        .args(["run", &format!("http://{address}/openapi.json")])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", "15", "--seed", "7420", "--no-shrink", "--continue-on-failure"])
        .args(["--suppress-health-check", "all", "--generation-database", "none"])
        .args(["--request-timeout", "10", "--warnings", "off"]);
    for operation in ENDLESS {
        command.args(["--exclude-operation-id", operation]);
    }
    let output = command.output().unwrap();
    signal(&child, "-TERM");
    assert!(child.wait().unwrap().success(), "the host ends well");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    let counts = said.lines().find_map(|line| line.split_once(" generated"));
    let (generated, _) = counts.unwrap_or_else(|| panic!("{said}"));
    let generated: u32 = generated.trim().parse().unwrap();
    assert!(generated > 300, "{said}");
}

#[test]
fn what_is_made_up_is_answered_as_described() {
    hold_to_the_description(None);
}

#[test]
fn what_is_there_is_answered_as_described() {
    hold_to_the_description(Some("known.toml"));
}
