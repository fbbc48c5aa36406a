//! `demo` and `serve` as a client meets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod support;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    process::{Child, ChildStderr, Command, Stdio},
    thread,
};

use support::{Bench, Lines, ask, get, signal, text, turn};

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

/// Serves on a free port; the address, and the rest of what it says, to be kept while it runs.
#[expect(clippy::zombie_processes, reason = "who asked for it ends it")]
fn serve(mut command: Command) -> (Child, String, BufReader<ChildStderr>) {
    let command = command.args(["--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    loop {
        let mut line = String::new();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "it ended");
        if let Some((_, address)) = line.trim_end().split_once("turnkeep: serving at http://") {
            return (child, address.to_owned(), stderr);
        }
    }
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

    let store = format!("{folder}/sessions");
    for session in list["sessions"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let (status, _, failure) =
            ask(&address, "HEAD", &format!("/api/session.export?sessionId={id}"));
        assert_eq!(status, 200, "{id}: {failure}");
    }
    let exported = bench.run(&["--store", &store, "export", "demo-images", "-o", "images.zip"]);
    assert!(text(&exported.stdout).contains("3 images"), "{exported:?}");

    assert!(std::fs::exists(&folder).unwrap(), "{folder}");
    signal(&child, "-TERM");
    assert!(child.wait().unwrap().success());
    assert!(!std::fs::exists(&folder).unwrap(), "{folder}");
}

#[test]
fn show_prints_exactly_what_the_route_sends() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "same", "--create"], turn(1, "é?", "\u{1F600}").as_bytes());
    let (mut child, address, _stderr) = serve(bench.command(&["serve"]));
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

/// An upstream that is healthy, has no session, and lets nobody follow its events.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap_or(0) > 0 {}
            let (status, body) = if head.contains("/global/health") {
                ("200 OK", r#"{"healthy":true}"#)
            } else if head.contains("/event") {
                ("401 Unauthorized", "{}")
            } else {
                ("404 Not Found", r#"{"name":"NotFoundError","data":{}}"#)
            };
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn a_session_that_is_nowhere_is_told_from_one_to_be_looked_for_elsewhere() {
    let bench = Bench::new();
    let output = bench.run(&["show", "ses_1", "--upstream", &upstream()]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = "turnkeep: session \"ses_1\" is found neither in the store nor at the upstream\n";
    assert_eq!(text(&output.stderr), told);
}

#[test]
fn what_is_open_what_is_new_and_what_is_away_is_told_at_the_start() {
    let bench = Bench::new();
    let told = |args: &[&str], last: &str| {
        let mut command = bench.command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut told = Vec::new();
        while told.last().is_none_or(|line: &String| !line.contains(last)) {
            told.push(lines.next().unwrap().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        told.join("\n")
    };
    let is_new = "there is no such store yet";
    let away = "OpenCode does not answer; trying again";
    let said = told(&["--store", "typo", "--upstream", "http://127.0.0.1:9"], away);
    assert!(said.contains("read the sessions, and run commands through the upstream"), "{said}");
    assert!(said.contains(is_new), "{said}");
    let login =
        "OpenCode refuses our login: set OPENCODE_SERVER_PASSWORD or upstream_password_file";
    let said = told(&["--upstream", &upstream()], login);
    assert!(said.contains("trouble=\"login_refused\""), "{said}");

    bench.run_with_input(&["append", "s", "--create"], turn(1, "a", "b").as_bytes());
    let said = told(&[], "serving at");
    assert!(said.contains("can read the sessions\n"), "{said}");
    assert!(!said.contains(is_new), "{said}");
}

#[test]
fn an_upstream_that_is_down_is_an_exit_code_and_a_sentence() {
    let bench = Bench::new();
    let output = bench.run(&["show", "ses_1", "--upstream", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(text(&output.stderr).contains("does not answer"), "{output:?}");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
}

#[test]
fn a_client_that_catches_up_goes_on_after_a_restart_with_the_same_keys() {
    let bench = Bench::new();
    let turns: String = (1..=9).map(|number| turn(number, "q", "a")).collect();
    bench.run_with_input(&["append", "long", "--create"], turns.as_bytes());
    let keys = bench.root().with_file_name("keys");
    std::fs::write(&keys, format!("{}=\n", "A".repeat(43))).unwrap();
    let serving = |key_file: bool| {
        let mut command = bench.command(&["serve"]);
        command.env("TURNKEEP_RECONCILE_PAGE_RECORDS", "4");
        if key_file {
            command.args(["--continuation-key-file", keys.to_str().unwrap()]);
        }
        serve(command)
    };
    let round = "/api/openchamber/sessions/long/messages/reconcile";
    let page = |address: &str, query: &str| -> serde_json::Value {
        let (status, _, body) = get(address, &format!("{round}?{query}"));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let records = page["records"].as_array().unwrap();
        records.iter().map(|record| record["info"]["id"].as_str().unwrap().to_owned()).collect()
    };

    let (mut child, address, _stderr) = serving(true);
    let first = page(&address, "anchor=u6");
    assert_eq!(ids(&first).len(), 4);
    let query = format!("continuation={}", first["continuation"].as_str().unwrap());
    let second = ids(&page(&address, &query));
    child.kill().unwrap();
    child.wait().unwrap();

    let (mut child, address, _stderr) = serving(true);
    let again = page(&address, &query);
    assert_eq!(ids(&again), second);
    assert_eq!((&again["complete"], ids(&again)[0].as_str()), (&true.into(), "u6"));
    child.kill().unwrap();
    child.wait().unwrap();

    let (mut child, address, _stderr) = serving(false);
    let (status, _, body) = get(&address, &format!("{round}?{query}"));
    assert_eq!((status, body.as_str()), (400, r#"{"error":"invalid continuation"}"#));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn keys_and_budgets_that_cannot_be_meant_are_refused() {
    let bench = Bench::new();
    let refused = |command: &mut Command, problem: &str| {
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(problem) && said.lines().count() == 1, "{said}");
    };
    let keys = bench.root().with_file_name("keys");
    let key_file = ["serve", "--continuation-key-file", keys.to_str().unwrap()];
    refused(&mut bench.command(&key_file), "cannot read");
    std::fs::write(&keys, format!("{}=\nc2hvcnQ=\n", "A".repeat(43))).unwrap();
    refused(&mut bench.command(&key_file), "keys: the key in line 2");
    std::fs::write(&keys, "\n").unwrap();
    refused(&mut bench.command(&key_file), "keys: no key");
    for (name, value, problem) in [
        ("PAGE_RECORDS", "501", "reconcile.page_records is 1 to 500, not 501"),
        ("PAGE_BYTES", "1023", "reconcile.page_bytes is 1024 to 4194304, not 1023"),
        ("TOTAL_PAGES", "0", "reconcile.total_pages is 1 to 100, not 0"),
        ("TOTAL_BYTES", "1073741825", "reconcile.total_bytes is 1024 to 1073741824"),
    ] {
        let name = format!("TURNKEEP_RECONCILE_{name}");
        refused(bench.command(&["serve"]).env(name, value), problem);
    }
    // What the other host's variables say out of range is as if it were not said.
    let mut ignored = bench.command(&["serve"]);
    ignored.env("OPENCHAMBER_SESSION_RECONCILE_PAGE_RECORDS", "501");
    let (mut child, _address, _stderr) = serve(ignored);
    child.kill().unwrap();
    child.wait().unwrap();
}
