//! What the commands advise: it must fit what is there, and work when it is followed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use support::{Bench, fixture, text, turn};

fn told(output: &Output) -> &str {
    text(&output.stderr)
}

fn said(output: &Output) -> &str {
    text(&output.stdout)
}

fn folder(bench: &Bench) -> PathBuf {
    bench.root().parent().unwrap().to_owned()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn with_session(bench: &Bench, id: &str) {
    let appended = bench.run_with_input(&["append", id, "--create"], turn(1, "a", "b").as_bytes());
    assert!(appended.status.success(), "{appended:?}");
}

#[test]
fn doctor_has_no_say_in_places_without_sessions() {
    let bench = Bench::new();
    let file = folder(&bench).join("file");
    fs::write(&file, "a line\n").unwrap();
    mode(&file, 0o644);
    let other = folder(&bench).join("other");
    fs::create_dir_all(other.join("a/b")).unwrap();
    fs::write(other.join("a/b/c"), "").unwrap();
    mode(&other, 0o755);
    for (place, what) in [(&file, "is not a directory"), (&other, "no sessions")] {
        let output = bench.run(&["--store", place.to_str().unwrap(), "doctor"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(said(&output).contains(what), "{output:?}");
        assert!(!said(&output).contains("chmod"), "{output:?}");
        assert!(!said(&output).contains("move them out"), "{output:?}");
    }
    let empty = folder(&bench).join("empty");
    fs::create_dir(&empty).unwrap();
    mode(&empty, 0o755);
    let output = bench.run(&["--store", empty.to_str().unwrap(), "doctor"]);
    assert!(said(&output).contains("chmod go-rwx"), "{output:?}");
}

#[test]
fn a_shared_directory_is_left_as_it_is() {
    let bench = Bench::new();
    let shared = folder(&bench).join("shared");
    fs::create_dir(&shared).unwrap();
    mode(&shared, 0o1777);
    let store = format!("sqlite:{}/s.db", shared.display());
    let refused = bench.run_with_input(&["--store", &store, "append", "s", "--create"], b"");
    assert!(!refused.status.success(), "{refused:?}");
    let doctor = bench.run(&["--store", &store, "doctor"]);
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    for words in [told(&refused), said(&doctor)] {
        assert!(words.contains("a directory of your own"), "{words}");
        assert!(!words.contains("chmod"), "{words}");
    }
}

#[test]
fn of_a_damaged_session_every_command_says_how_to_find_out_more() {
    let bench = Bench::new();
    with_session(&bench, "s");
    let mut log = None;
    for project in fs::read_dir(bench.root()).unwrap() {
        let found = project.unwrap().path().join("s/session.jsonl.zstd");
        log = log.or(found.exists().then_some(found));
    }
    let log = log.unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.len() / 2;
    bytes.iter_mut().skip(at).take(20).for_each(|byte| *byte = 0x55);
    bytes.extend(fs::read(&log).unwrap());
    fs::write(&log, bytes).unwrap();
    let hint = "`turnkeep verify s` says what is lost";
    for args in [["show", "s"], ["events", "s"], ["resume", "s"], ["append", "s"]] {
        let output = bench.run(&args);
        assert!(!output.status.success(), "{output:?}");
        assert!(told(&output).contains(hint), "{output:?}");
        assert_eq!(told(&output).matches("`turnkeep ").count(), 1, "{output:?}");
    }
    let store = bench.root().display().to_string();
    let output = bench.run(&["--store", &store, "events", "s"]);
    assert!(told(&output).contains(&format!("`turnkeep --store {store} verify s`")), "{output:?}");
    let output = bench.run(&["verify", "s", "--store", &store]);
    assert!(said(&output).contains(&format!("turnkeep --store {store} recover s ")), "{output:?}");
    // It works.
    let recovered = bench.run(&["recover", "s", "--into", "t"]);
    assert!(recovered.status.success(), "{recovered:?}");
}

#[test]
fn nothing_is_advised_that_cannot_work() {
    let bench = Bench::new();
    bench.plant("--p--", "s", &fixture("dsh/damaged/raw-torn.jsonl"));
    let log = bench.root().join("--p--/s/session.jsonl");
    fs::write(&log, "no header\n").unwrap();
    let output = bench.run(&["verify", "s"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said(&output).contains("nothing in it can be saved"), "{output:?}");
    assert!(said(&output).contains("turnkeep rm s"), "{output:?}");
    assert!(!said(&output).contains("recover"), "{output:?}");
    let recovered = bench.run(&["recover", "s", "--into", "t", "--cwd", "/p"]);
    assert!(!recovered.status.success(), "{recovered:?}");
}

#[test]
fn nothing_is_saved_behind_a_lost_beginning() {
    let bench = Bench::new();
    bench.plant("--p--", "s", &fixture("dsh/damaged/raw-torn.jsonl"));
    let log = bench.root().join("--p--/s/session.jsonl");
    let whole = fs::read_to_string(&log).unwrap();
    let mut lines: Vec<_> = whole.lines().collect();
    lines.pop();
    lines.remove(1);
    fs::write(&log, format!("{}\n", lines.join("\n"))).unwrap();
    let output = bench.run(&["verify", "s"]);
    let recovered = bench.run(&["recover", "s", "--into", "t"]);
    assert!(!recovered.status.success(), "{recovered:?} {output:?}");
    assert!(!said(&output).contains("recover "), "{output:?}");
    assert!(said(&output).contains("the first event is gone"), "{output:?}");
}

#[test]
fn a_damaged_database_is_told_of_once_and_its_good_sessions_are_too() {
    let bench = Bench::new();
    let database = folder(&bench).join("s.db");
    let store = format!("sqlite:{}", database.display());
    for id in ["one", "two", "three"] {
        for at in 0..10 {
            let mut events = String::new();
            for event in 0..30_u64 {
                let text = format!("{id}{:x}", (at * 31 + event) * 0x9e37_79b9);
                let line = serde_json::json!({"type": "todo/write", "data": {"todos": [text]}});
                events += &line.to_string();
                events.push('\n');
            }
            let args = ["--store", &store, "append", id, "--create"];
            assert!(bench.run_with_input(&args, events.as_bytes()).status.success());
        }
    }
    let good = fs::read(&database).unwrap();
    let mut some_were_intact = false;
    for page in 1..good.len() / 4096 {
        let mut bytes = good.clone();
        bytes[page * 4096..][..1000].fill(0xa5);
        fs::write(&database, bytes).unwrap();
        let output = bench.run(&["--store", &store, "verify", "--all"]);
        let words = said(&output);
        assert!(matches!(output.status.code(), Some(1)), "page {page}: {output:?}");
        assert!(words.contains("the store") && words.contains("bad_database"), "{words}");
        let storage: Vec<_> = words.lines().take_while(|line| !line.contains(" events")).collect();
        let told = |line: &&&str| line.contains("bad_database: ");
        let mut once: Vec<_> = storage.iter().filter(told).collect();
        let all = once.len();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), all, "{words}");
        some_were_intact |= words.contains("intact ");
    }
    assert!(some_were_intact);
    fs::write(&database, &good[..good.len() / 2]).unwrap();
    let output = bench.run(&["--store", &store, "verify", "--all"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn completions_may_go_unread() {
    let bench = Bench::new();
    let mut child = bench.spawn(&["completions", "bash"]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(told(&output), "");
    let whole = bench.run(&["completions", "bash"]);
    assert!(said(&whole).contains("_turnkeep()"), "{whole:?}");
}

#[test]
fn only_what_is_set_is_shown_as_set() {
    let bench = Bench::new();
    let mut command = bench.command(&["doctor"]);
    command.env("TURNKEEP_RECONCILE_PAGE_RECORDS", "50");
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(said(&output).contains("reconcile.page_records = 50"), "{output:?}");
    assert!(!said(&output).contains("null"), "{output:?}");
    assert!(said(&output).contains("`turnkeep verify --all` reads everything"), "{output:?}");
    with_session(&bench, "s");
    assert!(said(&bench.run(&["doctor"])).contains("1 session: 1 ok"));
}

#[test]
fn sessions_of_a_directory_are_found_however_it_is_named() {
    let bench = Bench::new();
    let none = bench.run(&["ls", "--cwd", "."]);
    assert!(told(&none).contains("no sessions in "), "{none:?}");
    with_session(&bench, "s");
    let here = folder(&bench).display().to_string();
    for cwd in [here.as_str(), ".", "./", &format!("{here}/")] {
        let output = bench.run(&["ls", "--cwd", cwd]);
        assert!(said(&output).starts_with("s "), "{cwd}: {output:?}");
        assert_eq!(told(&output), "");
    }
    for args in [["--cwd", "elsewhere"], ["--state", "damaged"]] {
        let output = bench.run(&[&["ls"], &args[..]].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(told(&output).contains("no sessions match"), "{output:?}");
    }
}

#[test]
fn values_out_of_range_are_refused_by_every_command() {
    let bench = Bench::new();
    let file = folder(&bench).join("mine.toml");
    let cases = [
        ("scan_limit", "5"),
        ("max_frame_bytes", "0"),
        ("reconcile.total_pages", "0"),
        ("durability", "'never'"),
        ("compression", "'gzip'"),
    ];
    for (key, value) in cases {
        fs::write(&file, format!("{key} = {value}\n")).unwrap();
        for command in ["ls", "doctor", "trash"] {
            let output = bench.run(&["--config", "mine.toml", command]);
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(told(&output).contains(&format!("mine.toml: {key} is ")), "{output:?}");
        }
        let name = format!("TURNKEEP_{}", key.replace('.', "_").to_uppercase());
        let set = bench.command(&["ls"]).env(&name, value.trim_matches('\'')).output().unwrap();
        assert_eq!(set.status.code(), Some(2), "{set:?}");
        assert!(told(&set).contains(&format!("{name}: {key} is ")), "{set:?}");
    }
}

#[test]
fn a_store_is_where_its_file_says() {
    let bench = Bench::new();
    with_session(&bench, "s");
    let below = folder(&bench).join("below");
    fs::create_dir(&below).unwrap();
    let list = |store: &str| {
        fs::write(below.join("t.toml"), format!("store = \"{store}\"\n")).unwrap();
        let mut command = bench.command(&["--config", "below/t.toml", "ls"]);
        command.env_remove("TURNKEEP_STORE").output().unwrap()
    };
    for store in ["../sessions", "~/sessions"] {
        let output = list(store);
        assert!(said(&output).starts_with("s "), "{store}: {output:?}");
    }
    for (store, hint) in [("memory", "`memory:`"), ("sqlit:a.db", "`sqlite:FILE`")] {
        for output in [list(store), bench.run(&["--store", store, "ls"])] {
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(told(&output).contains(hint), "{output:?}");
            assert!(told(&output).contains(&format!("`./{store}`")), "{output:?}");
        }
    }
}

#[test]
fn a_session_in_the_way_of_a_restored_one_is_moved_first() {
    let bench = Bench::new();
    with_session(&bench, "s");
    let store = bench.root().display().to_string();
    let removed = bench.run(&["rm", "s", "--store", &store]);
    let undo = format!("turnkeep --store {store} trash --restore s");
    assert!(said(&removed).contains(&undo), "{removed:?}");
    with_session(&bench, "s");
    let refused = bench.run(&["trash", "--restore", "s"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(told(&refused).contains("`turnkeep rm s` first"), "{refused:?}");
}

#[test]
fn mistakes_are_answered_with_what_was_meant() {
    let bench = Bench::new();
    let output = bench.run(&["append", "--bogus"]);
    assert!(told(&output).contains("see `turnkeep append --help`"), "{output:?}");
    let output = bench.run(&["token", "create", "--scope", "all", "x"]);
    assert!(told(&output).ends_with("; see `turnkeep token create --help`\n"), "{output:?}");
    let output = bench.run(&["verify"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(told(&output).contains("`--all`"), "{output:?}");
    let output = bench.command(&["ls"]).env("TURNKEEP_STROE", "x").output().unwrap();
    assert!(told(&output).contains("did you mean TURNKEEP_STORE?"), "{output:?}");
    fs::write(folder(&bench).join("t.toml"), "reconcil = 1\n").unwrap();
    let output = bench.run(&["--config", "t.toml", "ls"]);
    assert!(told(&output).contains("did you mean `reconcile`?"), "{output:?}");
}

#[test]
fn a_session_that_opencode_may_have_is_looked_for_there() {
    let bench = Bench::new();
    with_session(&bench, "s");
    for (args, is_told) in [
        (&["show", "ses_1"][..], true),
        (&["export", "ses_1", "-o", "x.zip"], true),
        (&["show", "t"], false),
    ] {
        let output = bench.run(args);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let hint = "are read through `turnkeep serve --upstream URL`";
        assert_eq!(told(&output).contains(hint), is_told, "{output:?}");
    }
    let output = bench.run(&["recover", "s", "--into", "s"]);
    let taken = "turnkeep: session \"s\" already exists; choose another id\n";
    assert_eq!(told(&output), taken);
}

#[test]
fn a_session_without_messages_is_told_from_silence() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "s", "--create"], b"{\"type\":\"todo/write\",\"data\":{}}\n");
    let output = bench.run(&["show", "s"]);
    assert!(output.status.success(), "{output:?}");
    assert!(told(&output).contains("has no messages yet"), "{output:?}");
    let recovered = bench.run(&["recover", "s", "--into", "t"]);
    assert!(said(&recovered).contains("kept 1 event of s in t\n"), "{recovered:?}");
}
