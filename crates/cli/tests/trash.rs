//! `rm`, `trash` and `resume` on real stores, one process a command.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod support;

use std::{fs, io::Write as _, path::PathBuf};

use support::{Bench, eventually, fixture, text, turn};

/// Both kinds of store that outlive a command.
fn stores(bench: &Bench) -> [String; 2] {
    [bench.root().display().to_string(), "sqlite:sessions.db".to_owned()]
}

/// The one session directory of the store, wherever the command ran.
fn session_dir(bench: &Bench, id: &str) -> PathBuf {
    let projects = fs::read_dir(bench.root()).unwrap().map(|entry| entry.unwrap().path());
    projects.map(|project| project.join(id)).find(|dir| dir.exists()).unwrap()
}

#[test]
fn what_was_removed_can_be_put_back_or_made_anew() {
    let bench = Bench::new();
    for store in stores(&bench) {
        let run = |args: &[&str]| bench.run(&[&["--store", &store], args].concat());
        let append = |id: &str, input: &str| {
            let args = ["--store", &store, "append", id, "--create"];
            let output = bench.run_with_input(&args, input.as_bytes());
            assert!(output.status.success(), "{output:?}");
        };
        append("one", &turn(1, "Hello?", "World!"));
        append("it's two", &turn(1, "a", "b"));
        let removed = run(&["rm", "one", "it's two"]);
        assert!(removed.status.success(), "{removed:?}");
        let told = text(&removed.stdout);
        assert!(
            told.starts_with(&format!(
                "moved session \"one\" to the trash; to undo it: \
                 turnkeep --store {store} trash --restore one\n"
            )),
            "{told}"
        );
        assert!(told.ends_with(" trash --restore 'it'\\''s two'\n"), "{told}");
        assert_eq!(text(&run(&["ls"]).stdout), "");
        assert_eq!(run(&["show", "one"]).status.code(), Some(3));
        let listed = run(&["trash"]);
        assert_eq!(text(&listed.stdout).lines().count(), 2, "{listed:?}");
        let listed = run(&["--json", "trash"]);
        let last: serde_json::Value =
            serde_json::from_str(text(&listed.stdout).lines().last().unwrap()).unwrap();
        assert_eq!(last["id"], "one");
        assert!(last["cwd"].is_string() && last["sizeBytes"].as_u64().unwrap() > 100);

        // The id is free meanwhile, and what has it is not replaced.
        append("one", &turn(1, "Another?", "Yes."));
        let refused = run(&["--json", "trash", "--restore", "one"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains("\"already_exists\""), "{refused:?}");
        assert!(text(&run(&["show", "one"]).stdout).contains("Another?"));
        assert!(run(&["rm", "one"]).status.success());
        let deleted_at = last["deletedAt"].to_string();
        let restored = run(&["trash", "--restore", "one", "--deleted-at", &deleted_at]);
        assert!(restored.status.success(), "{restored:?}");
        assert!(text(&restored.stdout).starts_with("put session \"one\" back"), "{restored:?}");
        assert!(text(&run(&["show", "one"]).stdout).contains("World!"));

        let nothing = run(&["trash", "--empty", "--older-than", "1"]);
        assert_eq!(text(&nothing.stdout), "nothing was removed from the trash\n");
        let emptied = run(&["--json", "trash", "--empty"]);
        let emptied: serde_json::Value = serde_json::from_slice(&emptied.stdout).unwrap();
        assert_eq!(emptied["removed"].as_array().unwrap().len(), 2);
        assert_eq!(run(&["trash", "--restore", "it's two"]).status.code(), Some(3));
        assert_eq!(text(&run(&["trash"]).stdout), "");
        assert!(text(&run(&["trash"]).stderr).contains("nothing in the trash of"));
        assert_eq!(text(&run(&["ls"]).stdout).lines().count(), 1);
    }
}

#[test]
fn one_that_cannot_be_removed_does_not_keep_the_others() {
    let bench = Bench::new();
    for id in ["a", "b"] {
        bench.run_with_input(&["append", id, "--create"], turn(1, "a", "b").as_bytes());
    }
    let output = bench.run(&["--json", "rm", "a", "nowhere", "b"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["id"], &lines[1]["id"]), (&"a".into(), &"b".into()));
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    assert_eq!(error["error"]["session"], "nowhere");
    let wrong: [&[&str]; 4] = [
        &["rm"],
        &["trash", "--older-than", "3"],
        &["trash", "--empty", "--restore", "a"],
        &["trash", "--deleted-at", "3"],
    ];
    for args in wrong {
        assert_eq!(bench.run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_session_that_is_being_written_stays() {
    let bench = Bench::new();
    for store in stores(&bench) {
        let mut writer =
            bench.spawn(&["--store", &store, "append", "s", "--create", "--batch", "6"]);
        let mut input = writer.stdin.take().unwrap();
        input.write_all(turn(1, "mine", "yes").as_bytes()).unwrap();
        input.flush().unwrap();
        let events = || {
            let output = bench.run(&["--store", &store, "events", "s"]);
            text(&output.stdout).lines().count()
        };
        eventually("the batch is stored", || events() == 6);
        for command in ["rm", "resume"] {
            let refused = bench.run(&["--store", &store, command, "s"]);
            assert_eq!(refused.status.code(), Some(4), "{refused:?}");
            let told = text(&refused.stderr);
            assert!(told.contains("\"s\" is already owned by an active write handle"), "{told}");
            assert!(refused.stdout.is_empty(), "{refused:?}");
        }
        assert_eq!(events(), 6);
        assert_eq!(text(&bench.run(&["--store", &store, "trash"]).stdout), "");
        input.write_all(turn(2, "still", "mine").as_bytes()).unwrap();
        drop(input);
        let output = writer.wait_with_output().unwrap();
        assert_eq!(text(&output.stdout), "12\n", "{output:?}");
        assert!(bench.run(&["--store", &store, "rm", "s"]).status.success());
    }
}

#[test]
fn a_writer_whose_session_was_moved_away_writes_nothing_more() {
    let bench = Bench::new();
    let mut writer = bench.spawn(&["append", "s", "--create", "--batch", "6"]);
    let mut input = writer.stdin.take().unwrap();
    input.write_all(turn(1, "mine", "yes").as_bytes()).unwrap();
    input.flush().unwrap();
    eventually("the batch is stored", || {
        text(&bench.run(&["events", "s"]).stdout).lines().count() == 6
    });
    // Whoever removes the lock file lets others in.
    fs::remove_file(session_dir(&bench, "s").join("session.lock")).unwrap();
    assert!(bench.run(&["rm", "s"]).status.success());
    bench.run_with_input(&["append", "s", "--create"], turn(1, "anew", "yes").as_bytes());
    input.write_all(turn(2, "lost", "lost").as_bytes()).unwrap();
    drop(input);
    let output = writer.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stderr).contains("write ownership was lost"), "{output:?}");
    let shown = bench.run(&["show", "s"]);
    assert!(text(&shown.stdout).contains("anew") && !text(&shown.stdout).contains("lost"));
    assert!(bench.run(&["rm", "s"]).status.success());
    let listed = bench.run(&["--json", "trash"]);
    let first: serde_json::Value =
        serde_json::from_str(text(&listed.stdout).lines().last().unwrap()).unwrap();
    let deleted_at = first["deletedAt"].to_string();
    bench.run(&["trash", "--restore", "s", "--deleted-at", &deleted_at]);
    let shown = bench.run(&["show", "s"]);
    assert!(text(&shown.stdout).contains("mine") && !text(&shown.stdout).contains("lost"));
}

#[test]
fn what_cannot_be_read_can_be_removed() {
    let bench = Bench::new();
    let id = "ff1c1e99-3bd4-4ef8-a954-80d607d628ba";
    for log in ["raw-gap-committed.jsonl", "raw-future-version.jsonl"] {
        bench.plant("--work-proj--", id, &fixture("dsh/damaged").join(log));
        assert!(!bench.run(&["events", id]).status.success());
        let removed = bench.run(&["rm", id]);
        assert!(removed.status.success(), "{removed:?}");
        assert_eq!(bench.run(&["events", id]).status.code(), Some(3));
    }
    assert_eq!(text(&bench.run(&["--json", "trash"]).stdout).matches(id).count(), 2);
}

#[test]
fn resume_closes_a_turn_once() {
    let bench = Bench::new();
    let whole = turn(1, "Hello?", "World!");
    let cut: String = whole.split_inclusive('\n').take(4).collect();
    for store in stores(&bench) {
        let append = ["--store", &store, "append", "s", "--create"];
        assert_eq!(text(&bench.run_with_input(&append, cut.as_bytes()).stdout), "4\n");
        let resume = ["--store", &store, "resume", "s"];
        let resumed = bench.run(&resume);
        assert!(resumed.status.success(), "{resumed:?}");
        let appended = text(&resumed.stdout).to_owned();
        let types: Vec<_> = appended
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|event| format!("{} {}", event["seq"], event["type"].as_str().unwrap()))
            .collect();
        assert_eq!(types, ["4 step/end", "5 turn/end"]);
        assert!(text(&resumed.stderr).contains("appended 2 events (4 to 5)"), "{resumed:?}");
        let events = bench.run(&["--store", &store, "events", "s"]);
        assert!(text(&events.stdout).ends_with(&appended), "{events:?}");
        let again = bench.run(&resume);
        assert!(again.status.success() && again.stdout.is_empty(), "{again:?}");
        assert!(text(&again.stderr).contains("has no open turn"), "{again:?}");
        let again = bench.run(&[&["--json"], &resume[..]].concat());
        assert!(again.status.success() && again.stderr.is_empty(), "{again:?}");
        assert_eq!(events.stdout, bench.run(&["--store", &store, "events", "s"]).stdout);
        assert_eq!(bench.run(&["--store", &store, "resume", "none"]).status.code(), Some(3));
    }
}

#[test]
fn resume_closes_what_another_harness_left_open() {
    let bench = Bench::new();
    let id = "fixture-tool-outcome-unknown";
    let golden = "dsh/golden/tool-outcome-unknown/session.jsonl.zstd";
    bench.plant("--work-proj--", id, &fixture(golden));
    let before = bench.run(&["events", id]).stdout;
    let resumed = bench.run(&["resume", id]);
    assert!(resumed.status.success(), "{resumed:?}");
    let after = bench.run(&["events", id]).stdout;
    assert_eq!(after, [before, resumed.stdout].concat());
    assert!(bench.run(&["resume", id]).stdout.is_empty());
}
