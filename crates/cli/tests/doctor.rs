//! `doctor` on real stores.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says where"
)]

mod support;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Output,
    time::{Duration, SystemTime},
};

use support::{Bench, fixture, text, turn};

/// Every path below a directory.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        paths.extend(tree(&path));
        paths.push(path);
    }
    paths.sort();
    paths
}

fn report(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The message and the advice of a finding that needs doing.
fn todo(output: &Output, check: &str) -> (String, String) {
    let report = report(output);
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|found| found["check"] == check && found["status"] == "todo");
    let found = found.unwrap_or_else(|| panic!("{check}: {report:#}"));
    (found["message"].as_str().unwrap().to_owned(), found["advice"].as_str().unwrap().to_owned())
}

#[test]
fn a_store_that_is_well_needs_nothing_and_is_left_as_it_is() {
    let bench = Bench::new();
    let root = bench.root().display().to_string();
    for store in [root.as_str(), "sqlite:private/sessions.db"] {
        let empty = bench.run(&["--store", store, "doctor"]);
        assert!(empty.status.success(), "{empty:?}");
        assert!(text(&empty.stdout).contains("it does not exist"), "{empty:?}");
        let append = ["--store", store, "append", "s", "--create"];
        bench.run_with_input(&append, turn(1, "a", "b").as_bytes());
        let before = tree(bench.root().parent().unwrap());
        let output = bench.run(&["--store", store, "doctor"]);
        assert!(output.status.success(), "{output:?}");
        let told = text(&output.stdout);
        assert!(told.contains("\nnothing needs doing, as far as first lines tell; "), "{told}");
        for said in ["with SQLite 3.", "1 ok, 0 damaged", "flock(2) keeps", "can be synced"] {
            assert!(told.contains(said), "{said}: {told}");
        }
        assert_eq!(tree(bench.root().parent().unwrap()), before);
        let json = bench.run(&["--store", store, "--json", "doctor"]);
        assert_eq!(report(&json)["ok"], true);
        assert_eq!(report(&json)["settings"]["store"], store);
        assert_eq!(report(&json)["configFile"], serde_json::Value::Null);
    }
}

#[test]
fn what_needs_doing_is_told_with_what_to_do() {
    let bench = Bench::new();
    let id = "ff1c1e99-3bd4-4ef8-a954-80d607d628ba";
    bench.plant("--work-proj--", id, &fixture("dsh/damaged/raw-future-version.jsonl"));
    bench.plant("--elsewhere--", "lost", &fixture("dsh/damaged/raw-future-version.jsonl"));
    fs::write(bench.root().join("--elsewhere--/lost/session.jsonl"), "no header\n").unwrap();
    let left = bench.root().join("--elsewhere--/lost/session.jsonl.0123456789ab.tmp");
    fs::write(&left, "begun").unwrap();
    fs::write(bench.root().join("notes.txt"), "stray").unwrap();
    // A file of now may be someone's work.
    let young = bench.run(&["--json", "doctor"]);
    assert!(!text(&young.stdout).contains("stale temporary"), "{young:?}");
    let old = SystemTime::now() - Duration::from_secs(7200);
    fs::File::options().write(true).open(&left).unwrap().set_modified(old).unwrap();

    let output = bench.run(&["--json", "doctor"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(report(&output)["ok"], false);
    let (message, advice) = todo(&output, "damaged");
    assert!(message.starts_with("\"lost\": "), "{message}");
    assert!(advice.contains("`turnkeep verify lost`"), "{advice}");
    let (message, _) = todo(&output, "files");
    assert!(message.contains("stale temporary file,") && message.contains(".tmp"), "{message}");
    let told = bench.run(&["doctor"]);
    assert!(text(&told.stdout).contains("newer harness"), "{told:?}");
    assert!(text(&told.stdout).contains("file that belongs to no session"), "{told:?}");
    assert!(text(&told.stdout).ends_with("2 things need doing\n"), "{told:?}");
    assert!(left.exists(), "nothing is mended");
}

#[test]
fn a_store_that_others_get_at_needs_doing() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "s", "--create"], turn(1, "a", "b").as_bytes());
    for (mode, hint) in [(0o755, "mode 0755"), (0o777, "mode 0777")] {
        fs::set_permissions(bench.root(), fs::Permissions::from_mode(mode)).unwrap();
        let output = bench.run(&["--json", "doctor"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let (message, advice) = todo(&output, "store");
        assert!(message.contains(hint), "{message}");
        assert!(advice.starts_with("run `chmod go-rwx "), "{advice}");
    }
    // It says so although no other command can use the store.
    let (message, _) = todo(&bench.run(&["--json", "doctor"]), "sessions");
    assert!(message.contains("others than its owner may write to it"), "{message}");
    let bad = bench.run(&["--store", "postgres://x", "--json", "doctor"]);
    assert_eq!(bad.status.code(), Some(1), "{bad:?}");
    todo(&bad, "store");
}

#[test]
fn the_upstream_is_asked() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let answers = [
            "200 OK\r\ncontent-type: application/json\r\n\r\n{\"healthy\":true,\"version\":\"9.8.7\"}",
            "401 Unauthorized\r\n\r\n",
        ];
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap();
            assert!(text(&head[..read]).starts_with("GET /global/health "));
            let answer =
                format!("HTTP/1.1 {}", answer.replacen("\r\n", "\r\nconnection: close\r\n", 1));
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let ready = bench.run(&["doctor", "--upstream", &url]);
    assert!(ready.status.success(), "{ready:?}");
    assert!(text(&ready.stdout).contains("OpenCode 9.8.7 answers at"), "{ready:?}");
    let refused = bench.run(&["--json", "doctor", "--upstream", &url]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(todo(&refused, "upstream").1.contains("OPENCODE_SERVER_PASSWORD"));
    serving.join().unwrap();
    let gone = bench.run(&["--json", "doctor", "--upstream", &url]);
    assert!(todo(&gone, "upstream").0.contains("nothing answers"));
    let bad = bench.run(&["--json", "doctor", "--upstream", "http://me:secret@x:1"]);
    assert!(todo(&bad, "upstream").0.contains("carries a login"), "{bad:?}");
    assert!(!text(&bad.stdout).contains("secret"), "{bad:?}");
}

#[test]
fn the_configuration_file_is_named() {
    let bench = Bench::new();
    let folder = bench.root().parent().unwrap().to_owned();
    fs::write(folder.join("mine.toml"), "scan_limit = 50\n").unwrap();
    let output = bench.run(&["--config", "mine.toml", "doctor"]);
    assert!(output.status.success(), "{output:?}");
    let told = text(&output.stdout);
    assert!(told.contains("mine.toml is read") && told.contains("scan_limit = 50"), "{told}");
}
