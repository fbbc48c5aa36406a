//! One root, two implementations: DSH's published session persistence reads what turnkeep wrote,
//! turnkeep reads what it wrote, and no command leaves anything that it stumbles over.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Output, Stdio},
};

use serde_json::json;
use support::{Bench, eventually, fixture, get, peer::Peer, signal, text, turn};

/// Both ways a root may be encoded.
const ENCODINGS: [&str; 2] = ["zstd", "none"];

/// Events that are easily changed on the way.
const ODD: [&str; 5] = [
    r#"{"type":"todo/write","seq":0,"time":1700000000000,"data":{"b":1.50,"a":"\ud83d","10":[],"2":{}}}"#,
    r#"{"type":"feedback/record","seq":1,"time":1600000000000,"data":{"text":"back in time \u0000 / \\ 😀 é é"}}"#,
    r#"{"type":"x-plugin/thing","seq":2,"time":1700000000001,"data":[1e21,1e-7,9007199254740991,null],"ignorable":true}"#,
    r#"{"type":"session/title","seq":3,"time":1700000000002,"data":{"title":"","messageSeqs":[],"source":{"kind":"user"}}}"#,
    r#"{"type":"todo/write","seq":4,"time":1700000000003,"data":{"__proto__":{"x":1},"constructor":2}}"#,
];

fn ok(output: Output) -> Output {
    assert!(output.status.success(), "{output:?}");
    output
}

/// The events of a session, one line each, as turnkeep prints them.
fn events(bench: &Bench, id: &str) -> Vec<String> {
    text(&ok(bench.run(&["events", id])).stdout).lines().map(str::to_owned).collect()
}

/// Where a session's log is.
fn log_of(bench: &Bench, id: &str) -> PathBuf {
    let projects = fs::read_dir(bench.root()).unwrap();
    let mut sessions = projects.map(|project| project.unwrap().path().join(id));
    let session = sessions.find(|session| session.exists()).unwrap();
    let mut logs =
        ["session.jsonl.zstd", "session.jsonl"].map(|name| session.join(name)).into_iter();
    logs.find(|log| log.exists()).unwrap()
}

/// The golden logs: name, directory, events. All of them were written by the peer once.
fn golden() -> Vec<(String, String, Vec<String>)> {
    let bench = Bench::new();
    let mut logs = Vec::new();
    for folder in fs::read_dir(fixture("dsh/golden")).unwrap() {
        let folder = folder.unwrap().path();
        let log = folder.join("session.jsonl");
        let header = fs::read_to_string(&log).unwrap().lines().next().unwrap().to_owned();
        let header: serde_json::Value = serde_json::from_str(&header).unwrap();
        let (id, cwd) = (header["id"].as_str().unwrap(), header["cwd"].as_str().unwrap());
        let project = format!("--{}--", cwd.trim_start_matches('/').replace('/', "-"));
        bench.plant(&project, id, &log);
        logs.push((
            folder.file_name().unwrap().to_str().unwrap().to_owned(),
            cwd.to_owned(),
            id.to_owned(),
        ));
    }
    assert!(logs.len() >= 10, "{logs:?}");
    logs.into_iter().map(|(name, cwd, id)| (name, cwd, events(&bench, &id))).collect()
}

#[test]
fn the_peer_reads_what_turnkeep_writes() {
    let golden = golden();
    for encoding in ENCODINGS {
        let bench = Bench::new();
        for (batch, (name, cwd, lines)) in golden.iter().enumerate() {
            let batch = (batch * 3 + 1).to_string();
            let args = [
                "--compression",
                encoding,
                "append",
                name,
                "--create",
                "--cwd",
                cwd,
                "--batch",
                &batch,
            ];
            ok(bench.run_with_input(&args, (lines.join("\n") + "\n").as_bytes()));
        }
        let args = ["--compression", encoding, "append", "odd ~ ids/..", "--create"];
        ok(bench.run_with_input(&args, ODD.join("\n").as_bytes()));

        let mut peer = Peer::start(&bench.root(), encoding);
        let mut names: Vec<_> = golden.iter().map(|(name, ..)| name.clone()).collect();
        names.push("odd ~ ids/..".to_owned());
        names.sort();
        assert_eq!(peer.list(), names);
        for (name, cwd, lines) in &golden {
            let lines: Vec<_> = lines.iter().map(String::as_str).collect();
            let seen = peer.read(name).unwrap();
            assert_eq!(seen.events, peer.spell(&lines), "{name} in {encoding}");
            assert_eq!(seen.header["cwd"], cwd.as_str(), "{name} in {encoding}");
            assert_eq!(seen.header["delegationDepth"], 0);
        }
        assert_eq!(peer.read("odd ~ ids/..").unwrap().events, peer.spell(&ODD));
    }
}

/// With `durability = "flush"` a frame says when it was written behind unsynced ones, in a form that
/// must mean nothing to others.
#[test]
fn the_peer_reads_what_turnkeep_writes_before_it_syncs() {
    for encoding in ENCODINGS {
        let bench = Bench::new();
        let lines = (1..20).map(|number| turn(number, "quick", "yes")).collect::<String>();
        let args = ["--compression", encoding, "append", "quick", "--create", "--batch", "1"];
        let mut command = bench.command(&args);
        command.env("TURNKEEP_DURABILITY", "flush").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        ok(child.wait_with_output().unwrap());
        if encoding == "zstd" {
            // The magic, the descriptor and the window, then an empty block.
            let log = fs::read(log_of(&bench, "quick")).unwrap();
            let is_hitched = |bytes: &&[u8]| {
                bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd, 0x04]) && bytes.ends_with(&[0, 0, 0])
            };
            let count = log.windows(9).filter(is_hitched).count();
            assert!(count > 10, "{count}");
        }
        let mine = events(&bench, "quick");
        let mine: Vec<_> = mine.iter().map(String::as_str).collect();
        assert_eq!(mine.len(), 19 * 6);
        let mut peer = Peer::start(&bench.root(), encoding);
        assert_eq!(peer.read("quick").unwrap().events, peer.spell(&mine), "in {encoding}");
        // And goes on behind it.
        let theirs = r#"{"type":"todo/write","seq":114,"time":2,"data":{"todos":[]}}"#;
        peer.append("quick", &[theirs]).unwrap();
        assert_eq!(events(&bench, "quick").len(), 115);
    }
}

#[test]
fn turnkeep_reads_what_the_peer_writes() {
    let golden = golden();
    for encoding in ENCODINGS {
        let bench = Bench::new();
        let mut peer = Peer::start(&bench.root(), encoding);
        for (name, cwd, lines) in &golden {
            let lines: Vec<_> = lines.iter().map(String::as_str).collect();
            peer.create(
                &json!({"id": name, "version": 0, "createdAt": 1, "cwd": cwd, "delegationDepth": 2,
                "parentSession": "p", "origin": "subagent", "agentPreset": "x"}),
            );
            for batch in lines.chunks(7) {
                peer.append(name, batch).unwrap();
            }
            assert_eq!(events(&bench, name), peer.spell(&lines), "{name} in {encoding}");
            ok(bench.run(&["show", name]));
        }
        peer.create(&json!({"id": "odd", "version": 0, "createdAt": 1, "delegationDepth": 0}));
        peer.append("odd", &ODD).unwrap();
        assert_eq!(events(&bench, "odd"), peer.spell(&ODD));
    }
}

#[test]
fn the_two_take_turns_on_one_log() {
    for encoding in ENCODINGS {
        let bench = Bench::new();
        let mut expected = Vec::new();
        for round in 0..4_u32 {
            let mine = turn(round * 2 + 1, "from turnkeep", "yes");
            let mut args = vec!["--compression", encoding, "append", "shared"];
            args.extend((round == 0).then_some("--create"));
            ok(bench.run_with_input(&args, mine.as_bytes()));
            expected.extend(events(&bench, "shared").split_off(expected.len()));

            // A new process each time: it must make sense of the log from the beginning.
            let mut peer = Peer::start(&bench.root(), encoding);
            assert_eq!(peer.read("shared").unwrap().events.len(), expected.len());
            let theirs: Vec<_> = turn(round * 2 + 2, "from the peer", "no")
                .lines()
                .enumerate()
                .map(|(index, line)| {
                    let seq = expected.len() + index;
                    line.replacen(
                        "\"data\":",
                        &format!("\"seq\":{seq},\"time\":{seq},\"data\":"),
                        1,
                    )
                })
                .collect();
            let theirs: Vec<_> = theirs.iter().map(String::as_str).collect();
            peer.append("shared", &theirs).unwrap();
            expected.extend(peer.spell(&theirs));
            let read = peer
                .spell(&events(&bench, "shared").iter().map(String::as_str).collect::<Vec<_>>());
            let wanted = peer.spell(&expected.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(read, wanted, "round {round} in {encoding}");
        }
    }
}

/// The peer takes no lock, so it cannot be kept out; but it is noticed, and loses nothing.
#[test]
fn a_peer_that_writes_into_an_owned_session_loses_nothing() {
    for encoding in ENCODINGS {
        let bench = Bench::new();
        let args = ["--compression", encoding, "append", "owned", "--create", "--batch", "1"];
        let mut mine = bench.spawn(&args);
        let mut input = mine.stdin.take().unwrap();
        writeln!(input, r#"{{"type":"todo/write","data":{{"todos":[]}}}}"#).unwrap();
        eventually("the first event is stored", || {
            text(&bench.run(&["events", "owned"]).stdout).lines().count() == 1
        });

        let mut peer = Peer::start(&bench.root(), encoding);
        assert_eq!(peer.list(), ["owned"]);
        let theirs = r#"{"type":"todo/write","seq":1,"time":2,"data":{"todos":[]}}"#;
        let before = peer.read("owned").unwrap().events;
        peer.append("owned", &[theirs]).unwrap();

        writeln!(input, r#"{{"type":"todo/write","data":{{"todos":[1]}}}}"#).unwrap();
        drop(input);
        let output = mine.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        assert!(text(&output.stderr).contains("write ownership was lost"), "{output:?}");

        let after = Peer::start(&bench.root(), encoding).read("owned").unwrap().events;
        assert_eq!(after[..before.len()], before[..]);
        assert_eq!(after.len(), before.len() + 1);
        assert_eq!(events(&bench, "owned").len(), after.len());
    }
}

/// A killed writer, a torn frame: the peer repairs the log its own way, and turnkeep goes on.
#[test]
fn a_log_that_the_peer_repaired_is_read_and_continued() {
    for encoding in ENCODINGS {
        let bench = Bench::new();
        let args = ["--compression", encoding, "append", "torn", "--create", "--batch", "6"];
        let input = turn(1, "whole", "yes") + &turn(2, "torn", "no");
        ok(bench.run_with_input(&args, input.as_bytes()));
        let log = log_of(&bench, "torn");
        let whole = fs::read(&log).unwrap();
        fs::write(&log, &whole[..whole.len() - 9]).unwrap();
        let kept = events(&bench, "torn").len();
        assert!((6..12).contains(&kept), "{kept} in {encoding}");

        let mut peer = Peer::start(&bench.root(), encoding);
        let loaded = peer.ask(&json!({"op": "load", "id": "torn"})).unwrap().as_u64().unwrap();
        let repaired = events(&bench, "torn");
        assert_eq!(repaired.len() as u64, loaded, "in {encoding}");
        ok(bench.run_with_input(&["append", "torn"], turn(3, "on", "we go").as_bytes()));
        let seen = Peer::start(&bench.root(), encoding).read("torn").unwrap();
        assert_eq!(seen.events.len(), repaired.len() + 6);
    }
}

/// After each command the peer lists what turnkeep lists, and reads every session of it.
#[test]
fn the_peer_reads_the_root_after_every_command() {
    for encoding in ENCODINGS {
        let bench = Bench::new();
        let check = |after: &str, expected: &[&str]| {
            let mut peer = Peer::start(&bench.root(), encoding);
            assert_eq!(peer.list(), expected, "after {after} in {encoding}");
            for id in expected {
                let mine = events(&bench, id);
                let mine: Vec<_> = mine.iter().map(String::as_str).collect();
                let seen = peer.read(id).unwrap_or_else(|error| panic!("after {after}: {error}"));
                assert_eq!(seen.events, peer.spell(&mine), "{id} after {after} in {encoding}");
            }
        };
        let run = |args: &[&str], expected: &[&str]| {
            ok(bench.run(args));
            check(&args.join(" "), expected);
        };

        for id in ["a", "b"] {
            let args = ["--compression", encoding, "append", id, "--create", "--cwd", "/work/x"];
            ok(bench.run_with_input(&args, turn(1, "hello", "there").as_bytes()));
        }
        check("append", &["a", "b"]);
        run(&["ls"], &["a", "b"]);
        run(&["show", "a"], &["a", "b"]);
        run(&["events", "b"], &["a", "b"]);

        let mut host = bench.spawn(&["serve", "--listen", "127.0.0.1:0"]);
        let mut line = String::new();
        let mut told = BufReader::new(host.stderr.take().unwrap());
        while !line.contains("serving at http://") {
            line.clear();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "it says where it serves");
        }
        let address = line.trim_end().rsplit("http://").next().unwrap().to_owned();
        assert_eq!(get(&address, "/api/turnkeep/sessions").0, 200);
        let page = get(&address, "/api/openchamber/sessions/a/messages?turns=1");
        assert_eq!(page.0, 200, "{page:?}");
        check("serve", &["a", "b"]);
        signal(&host, "-TERM");
        assert!(host.wait().unwrap().success());
        check("the end of serve", &["a", "b"]);

        run(&["verify", "--all"], &["a", "b"]);
        run(&["resume", "a"], &["a", "b"]);
        run(&["recover", "a", "--into", "c"], &["a", "b", "c"]);
        run(&["rm", "b"], &["a", "c"]);
        run(&["trash"], &["a", "c"]);
        run(&["trash", "--restore", "b"], &["a", "b", "c"]);
        run(&["rm", "a", "b"], &["c"]);
        run(&["trash", "--empty"], &["c"]);
        run(&["ls", "--json"], &["c"]);
        bench.run(&["doctor"]);
        check("doctor", &["c"]);

        // An interrupted turn, closed for good; and a log that is long enough for an index.
        let open = r#"{"type":"turn/start","data":{"turn":2}}"#.to_owned() + "\n";
        ok(bench.run_with_input(&["append", "c"], open.as_bytes()));
        run(&["resume", "c"], &["c"]);
        let long = turn(3, "much", &"0123456789abcdef".repeat(40_000));
        ok(bench.run_with_input(&["append", "long", "--create"], long.repeat(2).as_bytes()));
        run(&["events", "long", "--offset", "9"], &["c", "long"]);
        assert!(log_of(&bench, "long").with_file_name("turnkeep.idx").exists());
    }
}
