//! `demo` and `serve` as a client meets them.

mod support;

use std::process::Child;

use support::{Bench, Lines, get, signal, text, turn};

/// Starts the demo on a free port; its address, and the folder it says it uses.
fn demo(bench: &Bench) -> (Child, String, String) {
    let mut child = bench.spawn(&["demo", "--listen", "127.0.0.1:0"]);
    let mut lines = Lines::of(&mut child);
    let first = lines.next();
    let address = first.strip_prefix("turnkeep demo: http://").unwrap_or_else(|| panic!("{first}"));
    let second = lines.next();
    let folder = second.split(' ').find(|word| word.contains("turnkeep-demo-"));
    let folder = folder.unwrap_or_else(|| panic!("{second}"));
    let folder = folder.trim_end_matches(';').trim_end_matches("/sessions").to_owned();
    (child, address.to_owned(), folder)
}

#[test]
fn the_demo_shows_sessions_and_leaves_nothing_behind() {
    let bench = Bench::new();
    let (mut child, address, folder) = demo(&bench);
    let (status, head, page) = get(&address, "/");
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html"), "{head}");
    assert!(page.contains("<title>"), "{page}");

    let (status, _, list) = get(&address, "/api/turnkeep/sessions");
    assert_eq!(status, 200);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 10, "{list}");

    let mut turns = 0;
    let mut before = String::new();
    loop {
        let path = format!("/api/openchamber/sessions/demo-long/messages?turns=10{before}");
        let (status, _, page) = get(&address, &path);
        assert_eq!(status, 200, "{page}");
        let page: serde_json::Value = serde_json::from_str(&page).unwrap();
        turns += page["turnCount"].as_u64().unwrap();
        let Some(cursor) = page["cursor"].as_str() else { break };
        before = format!("&before={cursor}");
    }
    assert_eq!(turns, 64);

    let path = "/api/openchamber/sessions/demo-images/messages";
    let (_, _, page) = get(&address, path);
    assert!(page.contains("\"width\":390,\"height\":844"), "{page}");
    let path = "/api/openchamber/sessions/demo-broken-off/messages?turns=1";
    let (_, _, page) = get(&address, path);
    assert!(page.contains("Each of them"), "{page}");

    assert!(std::fs::exists(&folder).unwrap(), "{folder}");
    signal(&child, "-TERM");
    assert!(child.wait().unwrap().success());
    assert!(!std::fs::exists(&folder).unwrap(), "{folder}");
}

#[test]
fn show_prints_exactly_what_the_route_sends() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "same", "--create"], turn(1, "é?", "\u{1F600}").as_bytes());
    let mut child = bench.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let address = loop {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
        if let Some((_, address)) = line.trim_end().split_once("turnkeep: serving at http://") {
            break address.to_owned();
        }
    };
    let (status, _, body) = get(&address, "/api/openchamber/sessions/same/messages?turns=2");
    assert_eq!(status, 200);
    let shown = bench.run(&["--json", "show", "same", "--turns", "2"]);
    assert_eq!(text(&shown.stdout), format!("{body}\n"));
    signal(&child, "-INT");
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_address_that_others_reach_is_refused() {
    let bench = Bench::new();
    let output = bench.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("can be reached from other machines"), "{output:?}");
}

#[test]
fn an_upstream_that_is_down_is_an_exit_code_and_a_sentence() {
    let bench = Bench::new();
    let output = bench.run(&["show", "ses_1", "--upstream", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(text(&output.stderr).contains("does not answer"), "{output:?}");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
}
