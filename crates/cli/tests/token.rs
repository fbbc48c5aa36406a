//! `turnkeep token`, and `serve` with what it makes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Command, Output, Stdio},
    thread,
};

use serde_json::Value;
use support::{Bench, PATIENCE, text};

fn file(bench: &Bench) -> PathBuf {
    bench.root().with_file_name(".local").join("share/turnkeep/tokens.json")
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn create(bench: &Bench, args: &[&str]) -> String {
    let output = bench.run(&[&["token", "create"], args].concat());
    assert_eq!(code(&output), 0, "{output:?}");
    let token = text(&output.stdout).trim_end().to_owned();
    assert!(token.starts_with("tk_") && !token.contains(char::is_whitespace), "{output:?}");
    let said = text(&output.stderr);
    assert!(!said.contains(&token), "{output:?}");
    assert!(said.contains(file(bench).to_str().unwrap()), "{output:?}");
    token
}

fn list(bench: &Bench) -> Vec<Value> {
    let output = bench.run(&["--json", "token", "ls"]);
    assert_eq!(code(&output), 0, "{output:?}");
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The status of a GET with a token.
fn status(address: &str, path: &str, token: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Serves, and hands over the address that it says it serves at.
fn serving(mut command: Command, then: impl FnOnce(&str)) {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let address = loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended");
        if let Some((_, address)) = line.trim_end().split_once("serving at http://") {
            break address.to_owned();
        }
    };
    then(&address);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_token_is_made_listed_and_revoked() {
    let bench = Bench::new();
    let token = create(&bench, &["--scope", "write", "--days", "30", "ci"]);
    let shown = bench.run(&["token", "ls"]);
    let line = text(&shown.stdout);
    for part in ["ci", "write", "live"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!line.contains("tk_") && !line.contains(&token[3..]), "{line}");

    let stored = fs::read_to_string(file(&bench)).unwrap();
    assert!(!stored.contains(&token[3..]), "{stored}");
    let mode = fs::metadata(file(&bench)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let listed = list(&bench);
    let [one] = &listed[..] else { panic!("{listed:?}") };
    let days = (one["expiresAt"].as_i64().unwrap() - one["createdAt"].as_i64().unwrap()) / 1000;
    assert!((30 * 86_400 - 5..=30 * 86_400).contains(&days), "{one}");

    assert_eq!(code(&bench.run(&["token", "revoke", "ci"])), 0);
    assert_eq!(list(&bench)[0]["state"], "revoked");
}

#[test]
fn json_has_the_token_once() {
    let bench = Bench::new();
    let output = bench.run(&["--json", "token", "create", "ci"]);
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(made["file"], file(&bench).to_str().unwrap());
    assert_eq!((&made["name"], &made["scope"]), (&"ci".into(), &"read".into()));
    assert!(made["token"].as_str().unwrap().starts_with("tk_"));
    assert_eq!(made["expiresAt"], Value::Null);
    let listed = list(&bench);
    assert!(!listed[0].to_string().contains("tk_"), "{listed:?}");
}

#[test]
fn what_cannot_be_done_has_an_exit_code_and_a_sentence() {
    let bench = Bench::new();
    create(&bench, &["ci"]);
    for (args, expected, said) in [
        (&["token", "create", "ci"][..], 2, "there is a token `ci`"),
        (&["token", "create", ""], 2, "1 to 64 characters"),
        (&["token", "create", "--scope", "root", "x"], 2, "root"),
        (&["token", "create", "--days", "0", "x"], 2, "0"),
        (&["token", "revoke", "nobody"], 3, "there is no token `nobody`"),
        (&["token"], 2, ""),
    ] {
        let output = bench.run(args);
        assert_eq!(code(&output), expected, "{output:?}");
        assert!(text(&output.stderr).contains(said), "{output:?}");
    }
    fs::set_permissions(file(&bench), fs::Permissions::from_mode(0o666)).unwrap();
    let output = bench.run(&["--json", "token", "ls"]);
    assert_eq!(code(&output), 2, "{output:?}");
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("chmod 600"), "{error}");
}

#[test]
fn two_commands_at_a_time_lose_no_token() {
    let bench = Bench::new();
    thread::scope(|scope| {
        for writer in 0..6 {
            let bench = &bench;
            scope.spawn(move || create(bench, &[&format!("w{writer}")]));
        }
    });
    assert_eq!(list(&bench).len(), 6);
}

#[test]
fn a_running_host_notices_what_is_made_and_revoked() {
    let bench = Bench::new();
    let path = file(&bench);
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("TURNKEEP_TOKEN_FILE", &path);
    serving(command, |address| {
        let sessions = "/api/turnkeep/sessions";
        assert_eq!(status(address, sessions, "tk_none"), 401);
        let output = bench
            .command(&["token", "create", "late"])
            .env("TURNKEEP_TOKEN_FILE", &path)
            .output()
            .unwrap();
        let token = text(&output.stdout).trim_end();
        assert_eq!(status(address, sessions, token), 200);
        assert_eq!(code(&bench.run(&["token", "revoke", "late"])), 0);
        assert_eq!(status(address, sessions, token), 401);
    });
}

#[test]
fn an_address_that_others_reach_takes_a_token_or_a_password() {
    let bench = Bench::new();
    let serve = ["serve", "--listen", "0.0.0.0:0"];
    let refused = bench.run(&serve);
    assert_eq!(code(&refused), 2, "{refused:?}");
    for advice in ["--password-file", "turnkeep token create"] {
        assert!(text(&refused.stderr).contains(advice), "{refused:?}");
    }
    let token = create(&bench, &["ci"]);
    serving(bench.command(&serve), |address| {
        let port = address.rsplit(':').next().unwrap();
        let address = format!("127.0.0.1:{port}");
        assert_eq!(status(&address, "/api/turnkeep/sessions", &token), 200);
        assert_eq!(status(&address, "/api/turnkeep/sessions", "tk_x"), 401);
    });
    let password = bench.root().with_file_name("password");
    fs::write(&password, "hunter2").unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o644)).unwrap();
    let named = ["--password-file", password.to_str().unwrap()];
    let refused = bench.run(&[&serve[..], &named].concat());
    assert_eq!(code(&refused), 2, "{refused:?}");
    assert!(text(&refused.stderr).contains("chmod 600"), "{refused:?}");
    assert!(!text(&refused.stderr).contains("hunter2"), "{refused:?}");
}
