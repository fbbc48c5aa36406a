//! No process of a server outlives whoever started it, not even after `kill -9`.
#![cfg(target_os = "linux")] // processes are found by what /proc says of them
#![expect(
    clippy::unwrap_used,
    reason = "clippy knows test functions, not the functions they share"
)]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The command lines of the processes that have `data` in their environment.
fn processes_of(data: &Path) -> Vec<String> {
    let needle = data.to_str().unwrap().as_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        // A process that went away meanwhile reads as empty.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(needle.len()).any(|window| window == needle) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

fn wait_until(what: &str, data: &Path, done: impl Fn(&[String]) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let processes = processes_of(data);
        if done(&processes) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}, not after 30 s: {processes:#?}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test]
async fn nothing_outlives_a_killed_owner() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().canonicalize().unwrap().join("opencode");
    let mut owner = Command::new(env!("CARGO_BIN_EXE_turnkeep-test-opencode"))
        .arg("--data")
        .arg(&data)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(owner.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
    let url = url.trim();

    let http = reqwest::Client::new();
    let post = |path: String, body: &'static str| {
        http.post(format!("{url}{path}"))
            .header("content-type", "application/json")
            .body(body)
            .send()
    };
    let session = post("/session".to_owned(), "{}").await.unwrap().text().await.unwrap();
    let session: serde_json::Value = serde_json::from_str(&session).unwrap();
    let session = session.get("id").unwrap().as_str().unwrap();
    let prompt = r#"{"parts":[{"type":"text","text":"Wait. #steps=1 #tools=bash #sleep=4711"}]}"#;
    post(format!("/session/{session}/prompt_async"), prompt).await.unwrap();

    // The model, the server, its keeper, and a tool that would run for an hour.
    let runs = |processes: &[String], word: &str| processes.iter().any(|line| line.contains(word));
    wait_until("all run", &data, |processes| {
        ["model.mjs", "opencode serve", "sleep 4711"].iter().all(|word| runs(processes, word))
    });
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until("all are gone", &data, <[String]>::is_empty);
}
