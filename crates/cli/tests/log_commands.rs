//! `append`, `events`, `ls` and `show` on real stores, one process a command.

mod support;

use std::io::Write as _;

use support::{Bench, Lines, eventually, fixture, signal, text, turn};

#[test]
fn append_then_show_on_a_new_session() {
    let bench = Bench::new();
    let appended = bench
        .run_with_input(&["append", "new", "--create"], turn(1, "Hello?", "World!").as_bytes());
    assert!(appended.status.success(), "{appended:?}");
    assert_eq!(text(&appended.stdout), "6\n");
    let again = bench.run_with_input(&["append", "new"], turn(2, "More?", "No.").as_bytes());
    assert_eq!(text(&again.stdout), "12\n");

    let shown = bench.run(&["show", "new", "--turns", "1"]);
    assert!(shown.status.success(), "{shown:?}");
    let shown = text(&shown.stdout);
    assert!(shown.contains("older turns: turnkeep show new --turns 1 --before oc1."), "{shown}");
    assert!(shown.contains("  More?\n") && shown.contains("  No.\n"), "{shown}");
    assert!(!shown.contains("Hello?"), "{shown}");

    let cursor = shown.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    let older = bench.run(&["show", "new", "--before", &cursor]);
    let older = text(&older.stdout);
    assert!(older.contains("Hello?") && older.contains("World!") && !older.contains("More?"));
}

#[test]
fn what_was_appended_is_printed_as_it_was_written() {
    let bench = Bench::new();
    let odd = r#"{"type":"todo/write","seq":0,"time":7,"data":{"b":1.50,"a":"\ud83d","a":1e999}}"#;
    let appended =
        bench.run_with_input(&["append", "odd", "--create"], format!("{odd}\r\n\n").as_bytes());
    assert_eq!(text(&appended.stdout), "1\n", "{appended:?}");
    assert_eq!(text(&bench.run(&["events", "odd"]).stdout), format!("{odd}\n"));
    assert_eq!(text(&bench.run(&["events", "odd", "--offset", "1"]).stdout), "");
}

#[test]
fn a_session_is_not_made_for_a_line_that_is_refused() {
    let bench = Bench::new();
    let refused =
        bench.run_with_input(&["append", "new", "--create"], b"{\"type\":\"nope\",\"data\":{}}\n");
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    assert_eq!(bench.run(&["events", "new"]).status.code(), Some(3));
    let made = bench.run_with_input(&["append", "new", "--create"], b"");
    assert_eq!(text(&made.stdout), "0\n");
    assert_eq!(bench.run(&["events", "new"]).status.code(), Some(0));
}

#[test]
fn a_second_writer_is_refused_until_the_first_is_gone() {
    let bench = Bench::new();
    let mut first = bench.spawn(&["append", "shared", "--create"]);
    let mut input = first.stdin.take().unwrap();
    input.write_all(turn(1, "mine", "yes").as_bytes()).unwrap();
    input.flush().unwrap();
    eventually("the first writer's batch is stored", || {
        text(&bench.run(&["events", "shared"]).stdout).lines().count() == 6
    });

    let refused = bench.run_with_input(&["append", "shared"], turn(2, "mine!", "no").as_bytes());
    assert_eq!(refused.status.code(), Some(4));
    let told = text(&refused.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("\"shared\" is already owned by an active write handle"), "{told}");
    assert_eq!(text(&bench.run(&["show", "shared"]).stdout).matches("mine").count(), 1);

    signal(&first, "-KILL");
    first.wait().unwrap();
    let admitted = bench.run_with_input(&["append", "shared"], turn(2, "now me", "ok").as_bytes());
    assert_eq!(text(&admitted.stdout), "12\n", "{admitted:?}");
}

#[test]
fn an_append_that_is_told_to_stop_stores_what_it_read() {
    let bench = Bench::new();
    let mut child = bench.spawn(&["append", "stopped", "--create", "--batch", "1000"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(turn(1, "kept?", "kept").as_bytes()).unwrap();
    input.flush().unwrap();
    // A batch of a thousand is never full here, so only the end of the command stores it.
    std::thread::sleep(std::time::Duration::from_millis(700));
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), "6\n");
    assert_eq!(text(&bench.run(&["events", "stopped"]).stdout).lines().count(), 6);
}

#[test]
fn a_bad_line_stops_the_append_and_loses_nothing_before_it() {
    let bench = Bench::new();
    let cases: [(&[u8], i32, &str); 6] = [
        (b"{\"type\":\"todo/write\"}\n", 2, "line 7"),
        (b"not json\n", 2, "line 7"),
        (b"{\"type\":\"todo/write\",\"data\":\"\xff\"}\n", 2, "line 7"),
        (b"{\"type\":\"todo/write\",\"seq\":3,\"data\":1}\n", 7, "line 7"),
        (b"{\"type\":\"acme/telemetry\",\"data\":1}\n", 5, "`acme/telemetry` is unknown; mark it"),
        (b"{\"type\":\"user/message\",\"data\":{},\"surfaceOp\":\"append\"}\n", 2, "line 7"),
    ];
    for (number, (line, code, hint)) in cases.into_iter().enumerate() {
        let id = format!("bad-{number}");
        let mut input = turn(1, "a", "b").into_bytes();
        input.extend_from_slice(line);
        input.extend_from_slice(turn(2, "c", "d").as_bytes());
        let output = bench.run_with_input(&["append", &id, "--create"], &input);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(text(&output.stdout), "6\n", "{output:?}");
        assert!(text(&output.stderr).contains(hint), "{output:?}");
        assert_eq!(text(&bench.run(&["events", &id]).stdout).lines().count(), 6);
    }
}

#[test]
fn what_no_read_would_take_is_not_appended_unless_unknown_types_are_allowed() {
    let bench = Bench::new();
    let unknown = b"{\"type\":\"acme/telemetry\",\"data\":1}\n";
    let retired = b"{\"type\":\"steering/message\",\"data\":1}\n";
    let fallback = b"{\"type\":\"request/header\",\"data\":{\"reason\":\"fallback\"}}\n";
    let nameless = b"{\"type\":\"user/message\",\"data\":{},\"surfaceOp\":\"append\"}\n";
    bench.run_with_input(&["append", "s", "--create"], turn(1, "a", "b").as_bytes());
    let before = bench.run(&["events", "s"]).stdout;
    let refused: [(&[u8], i32); 4] = [(unknown, 5), (retired, 5), (fallback, 2), (nameless, 2)];
    for (line, code) in refused {
        let output = bench.run_with_input(&["append", "s"], line);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stderr).contains("line 1 was not stored"), "{output:?}");
        assert_eq!(bench.run(&["events", "s"]).stdout, before);
    }
    let allowed = bench.run_with_input(&["append", "new", "--create", "--allow-unknown"], unknown);
    assert_eq!(text(&allowed.stdout), "1\n");
    assert_eq!(bench.run(&["events", "new"]).status.code(), Some(5));
    // It lifts the check of types, and no other.
    for line in [&fallback[..], nameless] {
        let output = bench.run_with_input(&["append", "s", "--allow-unknown"], line);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(bench.run(&["events", "s"]).stdout, before);
    }
}

#[test]
fn a_range_of_negative_or_fractional_numbers_is_refused() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "s", "--create"], turn(1, "a", "b").as_bytes());
    for number in ["-1", "1.5", "1e3", "", "x", "99999999999999999999"] {
        for option in ["--offset", "--length"] {
            let output = bench.run(&["events", "s", &format!("{option}={number}")]);
            assert_eq!(output.status.code(), Some(2), "{option}={number}: {output:?}");
            assert!(output.stdout.is_empty());
        }
    }
    let all = bench.run(&["events", "s", "--offset=0", "--length=18446744073709551615"]);
    assert_eq!(text(&all.stdout).lines().count(), 6, "{all:?}");
}

#[test]
fn what_is_missing_or_wrong_has_its_exit_code_and_one_sentence() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "here", "--create"], turn(1, "a", "b").as_bytes());
    let cases: [(&[&str], i32, &str); 12] = [
        (&["show", "nowhere"], 3, "session \"nowhere\" not found"),
        (&["events", "nowhere"], 3, "session \"nowhere\" not found"),
        (&["append", "nowhere"], 3, "--create makes it"),
        (&["show", "here", "--turns", "11"], 2, "`turns` must be a whole number from 1 to 10"),
        (
            &["show", "here", "--before", "oc1.garbage"],
            2,
            "session \"here\": the cursor is malformed or out of date",
        ),
        (&["ls", "--state", "lost"], 2, "[possible values: ok, damaged, newer, foreign]"),
        (&["--store", "postgres://x", "ls"], 2, "postgres:"),
        (&["--compression", "gzip", "ls"], 2, "gzip"),
        (&["--config", "absent.toml", "ls"], 2, "absent.toml"),
        (&["shw", "here"], 2, "unrecognized subcommand 'shw'"),
        (&["events", "here", "--ofset", "3"], 2, "unexpected argument '--ofset' found"),
        (&["events"], 2, "<ID>"),
    ];
    for (args, code, hint) in cases {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(hint), "{args:?}: {output:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
    }
    let json = bench.run(&["--json", "events"]);
    let error: serde_json::Value = serde_json::from_slice(&json.stderr).unwrap();
    assert_eq!((&error["error"]["kind"], json.status.code()), (&"usage".into(), Some(2)));
    let json = bench.run(&["--json", "events", "nowhere"]);
    let error: serde_json::Value = serde_json::from_slice(&json.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    assert_eq!(error["error"]["session"], "nowhere");
}

#[test]
fn logs_that_cannot_be_read_say_why() {
    let bench = Bench::new();
    let id = "ff1c1e99-3bd4-4ef8-a954-80d607d628ba";
    let damaged = [
        ("raw-future-version.jsonl", 5, "newer harness"),
        ("raw-unknown-type.jsonl", 5, "acme/telemetry"),
        ("raw-gap-committed.jsonl", 6, "seq gap in committed region at line 36"),
        ("raw-blank-line.jsonl", 6, "unparsable committed event at line 3"),
    ];
    for (log, code, hint) in damaged {
        let bench = Bench::new();
        bench.plant("--work-proj--", id, &fixture("dsh/damaged").join(log));
        let output = bench.run(&["events", id]);
        assert_eq!(output.status.code(), Some(code), "{log}: {output:?}");
        assert!(text(&output.stderr).contains(hint), "{log}: {output:?}");
        let listed = bench.run(&["ls"]);
        assert!(listed.status.success(), "{log}: {listed:?}");
        assert!(text(&listed.stdout).contains(id), "{log}: {listed:?}");
        assert!(!text(&listed.stdout).contains("  ok  "), "{log}: {listed:?}");
        // The state that is printed is the state that is asked for.
        assert_eq!(text(&bench.run(&["ls", "--state", "ok"]).stdout), "", "{log}");
        let state = if code == 5 { "newer" } else { "damaged" };
        let asked = bench.run(&["ls", "--state", state, "--limit", "1"]);
        assert_eq!(asked.stdout, listed.stdout, "{log}: {asked:?}");
    }
    bench.plant("--work-proj--", id, &fixture("dsh/damaged/raw-torn.jsonl"));
    assert_eq!(text(&bench.run(&["events", id]).stdout).lines().count(), 124);
}

#[test]
fn ls_tells_events_and_title_of_logs_written_by_others() {
    let bench = Bench::new();
    let golden = "dsh/golden/tool-outcome-unknown/session.jsonl.zstd";
    bench.plant("--work-proj--", "fixture-tool-outcome-unknown", &fixture(golden));
    let listed = bench.run(&["ls"]);
    let line = text(&listed.stdout);
    assert!(line.starts_with("fixture-tool-outcome-unknown "), "{listed:?}");
    assert!(line.contains("  24  "), "{line}");
    assert!(line.contains("  ok "), "{line}");
    assert!(line.contains("Perform one side-effecting remote mutati"), "{line}");
    let json = bench.run(&["--json", "ls"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["eventCount"], 24);
    assert_eq!(json["cwd"], "/work/proj");
    assert_eq!(json["updatedAtEstimated"], false);
    assert_eq!(json["updatedAt"], 1_785_974_400_161_u64, "the time of the last event");
    assert_eq!((&json["blank"], json["lastPromptAt"].is_u64()), (&false.into(), true), "{json}");
    let nothing = bench.run(&["--store", "nowhere", "ls"]);
    assert!(nothing.status.success() && nothing.stdout.is_empty());
    assert!(text(&nothing.stderr).contains("nowhere, which does not exist"), "{nothing:?}");
}

#[test]
fn ls_knows_a_session_by_the_index_beside_its_log() {
    let bench = Bench::new();
    let title = r#"{"type":"session/title","data":{"title":"By the index","messageSeqs":[]}}"#;
    let turn = turn(1, "one", "eins") + title + "\n";
    bench.run_with_input(&["append", "s", "--create"], turn.as_bytes());
    let output = bench.run(&["ls"]);
    let listed = text(&output.stdout);
    assert!(listed.contains("  7  ") && listed.contains("By the index"), "{listed}");
    // And just the same without it.
    let project = std::fs::read_dir(bench.root()).unwrap().next().unwrap().unwrap();
    std::fs::remove_file(project.path().join("s/turnkeep.idx")).unwrap();
    assert_eq!(text(&bench.run(&["ls"]).stdout), listed);
}

#[test]
fn a_followed_session_shows_what_another_process_appends() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "live", "--create"], turn(1, "one", "eins").as_bytes());
    let mut events = bench.spawn(&["events", "live", "--offset", "5", "--follow"]);
    let mut transcript = bench.spawn(&["show", "live", "--follow"]);
    let mut event_lines = Lines::of(&mut events);
    let mut transcript_lines = Lines::of(&mut transcript);
    assert!(event_lines.next().contains("\"turn/end\""));
    while transcript_lines.next() != "  eins" {}

    bench.run_with_input(&["append", "live"], turn(2, "two", "zwei").as_bytes());
    assert!(event_lines.next().contains("\"seq\":6"));
    let mut drawn = Vec::new();
    while drawn.last().is_none_or(|line| line != "  zwei") {
        drawn.push(transcript_lines.next());
    }
    assert!(drawn.contains(&"  two".to_owned()), "{drawn:?}");
    assert!(!drawn.contains(&"  one".to_owned()), "{drawn:?}");
    for mut child in [events, transcript] {
        signal(&child, "-TERM");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn an_append_whose_output_nobody_reads_still_tells_what_failed() {
    let bench = Bench::new();
    let mut child = bench.spawn(&["append", "unread", "--create"]);
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    input.write_all(turn(1, "a", "b").as_bytes()).unwrap();
    input.write_all(b"not json\n").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("line 7 was not stored"), "{output:?}");
}

#[test]
fn what_a_session_says_cannot_steer_the_terminal() {
    let bench = Bench::new();
    let title = r#"{"type":"session/title","data":{"title":"a\u001b]0;x\u0007\u001b[2J\u202eb"}}"#;
    bench.run_with_input(&["append", "es\u{1b}c\nape", "--create"], title.as_bytes());
    for output in [bench.run(&["ls"]), bench.run(&["events", "no\u{1b}where\n"])] {
        let said = [output.stdout, output.stderr].concat();
        let steers = |char: char| char.is_control() && char != '\n' || char == '\u{202e}';
        assert!(!text(&said).contains(steers), "{:?}", text(&said));
        assert_eq!(text(&said).lines().count(), 1, "{:?}", text(&said));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let bench = Bench::new();
    let turns: String = (0..2000).map(|number| turn(number, "much", "more")).collect();
    bench.run_with_input(&["append", "long", "--create"], turns.as_bytes());
    let mut child = bench.spawn(&["events", "long"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "");
}
