//! `verify` and `recover` on stores of every state.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, path::Path};

use serde_json::Value;
use support::{Bench, fixture, text, turn};

const SESSION: &str = "ff1c1e99-3bd4-4ef8-a954-80d607d628ba";

fn with(log: &str) -> Bench {
    let bench = Bench::new();
    bench.plant("--work-proj--", SESSION, &fixture(&format!("dsh/damaged/{log}")));
    bench
}

fn log_of(bench: &Bench) -> Vec<u8> {
    let dir = bench.root().join("--work-proj--").join(SESSION);
    let name =
        ["session.jsonl", "session.jsonl.zstd"].into_iter().find(|name| dir.join(name).exists());
    fs::read(dir.join(name.unwrap())).unwrap()
}

#[test]
fn intact_sessions_are_told_in_one_line_each() {
    let bench = Bench::new();
    bench.plant("--work-proj--", SESSION, &fixture("dsh/golden/packed-chunks/session.jsonl.zstd"));
    bench.run_with_input(&["append", "mine", "--create"], turn(1, "Hello?", "World!").as_bytes());
    let verified = bench.run(&["verify", "--all"]);
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    let told = text(&verified.stdout);
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(told.lines().all(|line| line.contains("  intact  ")), "{told}");
    assert!(told.contains("  124 events, 3.2 kB"), "{told}");
    assert_eq!(text(&verified.stderr), "", "no bar in a pipe");
    // One that is named twice is told once.
    let verified = bench.run(&["verify", "mine", "mine"]);
    assert_eq!(text(&verified.stdout).lines().count(), 1);
}

#[test]
fn a_torn_tail_is_a_negative_answer() {
    let bench = with("zstd-torn-1byte.zstd");
    let before = log_of(&bench);
    let verified = bench.run(&["verify", SESSION]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    let told = text(&verified.stdout);
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].contains("incomplete") && lines[0].contains("123 events in order, 124 in all")
    );
    assert!(lines[1].starts_with("  torn_tail at byte 3191 (104 bytes), frame 4: "), "{told}");
    assert_eq!(lines[2], "    readable: 123 events before it, 1 event behind it");
    assert!(lines[3].contains(&format!("`turnkeep recover {SESSION} --into NEWID`")), "{told}");
    assert_eq!(log_of(&bench), before);
}

#[test]
fn every_damaged_log_has_a_verdict_and_an_exit_code() {
    let logs = fs::read_dir(fixture("dsh/damaged")).unwrap();
    let mut seen = 0;
    for log in logs {
        let name = log.unwrap().file_name().into_string().unwrap();
        let bench = with(&name);
        let verified = bench.run(&["--json", "verify", SESSION]);
        let told: Value = serde_json::from_str(text(&verified.stdout)).unwrap();
        let intact = ["raw-unknown-ignorable", "raw-extension-turn-end", "raw-open-turn"]
            .iter()
            .any(|intact| name.starts_with(intact));
        assert_eq!(verified.status.code(), Some(i32::from(!intact)), "{name} {told}");
        assert_eq!(told["verdict"] == "intact", intact, "{name} {told}");
        assert_eq!(told["findings"].as_array().unwrap().is_empty(), intact, "{name} {told}");
        for finding in told["findings"].as_array().unwrap() {
            assert!(finding["kind"].is_string() && finding["next"].is_string(), "{name}");
            assert!(finding["offset"].is_u64(), "{name} {finding}");
        }
        let events = bench.run(&["events", SESSION]);
        assert_eq!(events.status.success(), told["refused"].is_null(), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 20);
}

#[test]
fn unknown_ids_are_not_found_and_do_not_hide_the_others() {
    let bench = with("raw-torn.jsonl");
    let verified = bench.run(&["verify", "nobody", SESSION]);
    assert_eq!(verified.status.code(), Some(3));
    assert!(text(&verified.stdout).starts_with(SESSION), "{verified:?}");
    assert!(text(&verified.stderr).contains("\"nobody\" not found"), "{verified:?}");
    assert_eq!(bench.run(&["verify"]).status.code(), Some(2));
    assert_eq!(bench.run(&["verify", SESSION, "--all"]).status.code(), Some(2));
}

#[test]
fn all_means_those_too_that_cannot_be_opened() {
    let bench = with("raw-future-version.jsonl");
    let golden = fixture("dsh/golden/text-turn/session.jsonl");
    bench.plant("--work-proj--", "wrong-place", &golden);
    bench.plant("--work-proj--", "not~named", &golden);
    fs::copy(&golden, bench.root().join("--work-proj--").join("flat.jsonl")).unwrap();
    let other = fixture("dsh/golden/text-turn/session.jsonl.zstd");
    bench.plant("--work-proj--", "other-encoding", &other);
    let verified = bench.run(&["--json", "verify", "--all", "--compression", "none"]);
    assert_eq!(verified.status.code(), Some(1));
    let mut told: Vec<(String, String)> = text(&verified.stdout)
        .lines()
        .map(|line| {
            let told: Value = serde_json::from_str(line).unwrap();
            let word = |value: &Value| value.as_str().unwrap().to_owned();
            (word(&told["id"]), word(&told["findings"][0]["kind"]))
        })
        .collect();
    told.sort();
    let expected = [
        (SESSION, "newer"),
        ("flat", "obsolete"),
        ("not~named", "unreachable"),
        ("other-encoding", "other_encoding"),
        ("wrong-place", "wrong_id"),
    ];
    let expected = expected.map(|(id, kind)| (id.to_owned(), kind.to_owned()));
    assert_eq!(told.len(), expected.len(), "{told:?}");
    assert!(expected.iter().all(|pair| told.contains(pair)), "{told:?}");
    assert_eq!(bench.run(&["verify", "--all"]).status.code(), Some(1));
}

#[test]
fn a_torn_session_is_saved_and_goes_on() {
    let bench = with("zstd-torn-1byte.zstd");
    let before = log_of(&bench);
    let recovered = bench.run(&["recover", SESSION, "--into", "saved"]);
    assert_eq!(recovered.status.code(), Some(0), "{recovered:?}");
    let told = text(&recovered.stdout);
    assert!(told.starts_with(&format!("kept 124 events of {SESSION} in saved, 1 that")), "{told}");
    assert!(told.contains("left nothing behind\n") && told.contains("  torn_tail at"), "{told}");
    assert_eq!(log_of(&bench), before);
    assert_eq!(bench.run(&["verify", "saved"]).status.code(), Some(0));
    assert_eq!(text(&bench.run(&["events", "saved"]).stdout).lines().count(), 124);
    let appended = bench.run_with_input(&["append", "saved"], turn(2, "On?", "On.").as_bytes());
    assert_eq!(text(&appended.stdout), "130\n");

    let again = bench.run(&["recover", SESSION, "--into", "saved"]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert_eq!(bench.run(&["recover", "nobody", "--into", "x"]).status.code(), Some(3));
    assert_eq!(bench.run(&["recover", SESSION]).status.code(), Some(2));
}

#[test]
fn what_cannot_be_saved_is_told_by_its_exit_code() {
    let cases = [
        ("raw-future-version.jsonl", 5, "is of another"),
        ("zstd-checksum-mid.zstd", 6, "its first event is gone"),
        ("zstd-empty.zstd", 6, "its first event is gone"),
        ("raw-retired-header-field.jsonl", 6, "name it with --cwd"),
    ];
    for (log, code, fragment) in cases {
        let bench = with(log);
        let recovered = bench.run(&["recover", SESSION, "--into", "saved"]);
        assert_eq!(recovered.status.code(), Some(code), "{log} {recovered:?}");
        assert!(text(&recovered.stderr).contains(fragment), "{log} {recovered:?}");
        assert_eq!(bench.run(&["verify", "saved"]).status.code(), Some(3), "{log}");
    }
    let bench = with("raw-retired-header-field.jsonl");
    let args = ["--json", "recover", SESSION, "--into", "saved", "--cwd", "/work/proj"];
    let recovered = bench.run(&args);
    let told: Value = serde_json::from_str(text(&recovered.stdout)).unwrap();
    assert_eq!((&told["kept"], &told["headerLost"]), (&124.into(), &true.into()));
}

#[test]
fn a_fork_needs_a_choice() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "s", "--create"], turn(1, "Hello?", "World!").as_bytes());
    let log = log_path(&bench);
    let before = fs::read(&log).unwrap();
    bench.run_with_input(&["append", "s"], turn(2, "mine", "first").as_bytes());
    let first = fs::read(&log).unwrap();
    fs::write(&log, &before).unwrap();
    bench.run_with_input(&["append", "s"], turn(2, "theirs", "last").as_bytes());
    let second = fs::read(&log).unwrap();
    // As two writers leave it that take no lock.
    fs::write(&log, [&first, &second[before.len()..]].concat()).unwrap();

    let verified = bench.run(&["verify", "s"]);
    assert_eq!(verified.status.code(), Some(1));
    let told = text(&verified.stdout);
    assert!(told.contains("  fork at byte") && told.contains("--branch first"), "{told}");
    assert!(told.contains("branch 1: events 6 to 11") && told.contains("branch 2: events 6 to 11"));
    let refused = bench.run(&["recover", "s", "--into", "saved"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    for (branch, kept, left) in [("first", "mine", "theirs"), ("last", "theirs", "mine")] {
        let recovered = bench.run(&["recover", "s", "--into", branch, "--branch", branch]);
        assert_eq!(recovered.status.code(), Some(0), "{recovered:?}");
        let shown = bench.run(&["show", branch]);
        let shown = text(&shown.stdout);
        assert!(shown.contains(kept) && !shown.contains(left), "{shown}");
    }
}

fn log_path(bench: &Bench) -> std::path::PathBuf {
    let project = fs::read_dir(bench.root()).unwrap().next().unwrap().unwrap().path();
    let dir: &Path = &project.join("s");
    dir.join("session.jsonl.zstd")
}

#[test]
fn a_database_is_verified_too() {
    let bench = Bench::new();
    let store = format!("sqlite:{}", bench.root().with_file_name("sessions.db").display());
    let run = |args: &[&str], input: String| {
        bench.run_with_input(&[&["--store", store.as_str()], args].concat(), input.as_bytes())
    };
    run(&["append", "s", "--create"], turn(1, "Hi?", "Ho!"));
    let verified = run(&["verify", "--all"], String::new());
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
    assert!(text(&verified.stdout).contains("intact       6 events"), "{verified:?}");
    let recovered = run(&["recover", "s", "--into", "t"], String::new());
    assert_eq!(recovered.status.code(), Some(0));
    assert_eq!(run(&["verify", "t"], String::new()).status.code(), Some(0));
}
