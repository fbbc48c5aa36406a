//! An upstream that fails in every way it can, against every route that reads from it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::time::Duration;

use support::{
    host::RunningHost,
    logs::Logs,
    upstream::{Act, Request, ScriptedUpstream, answer, response},
};
use turnkeep_host::HostOptions;

/// In every body the upstream sends, and never in a log line or an error.
const CANARY: &str = "canary-4711";

/// The routes, in the order of the columns below.
const ROUTES: [&str; 5] = [
    "/api/openchamber/sessions/ses_1/messages",
    "/api/openchamber/sessions/ses_1/messages/reconcile?anchor=msg_1",
    "/api/openchamber/sessions/ses_1/changes?messageID=msg_1",
    "/api/openchamber/sessions/ses_1/changes?messageID=msg_1&file=a",
    "/api/session/ses_1/message/msg_1",
];

/// What a client is told.
type Told = (u16, &'static str);

const FAILED: Told = (502, r#"{"error":"upstream"}"#);
const UNAVAILABLE: Told = (503, r#"{"error":"upstream unavailable"}"#);
const TIMED_OUT: Told = (504, r#"{"error":"upstream timeout"}"#);
const NO_SESSION: Told = (404, r#"{"error":"session not found","code":"session_not_found"}"#);
const NO_MESSAGE: Told = (404, r#"{"error":"not found","code":"not_found"}"#);
const NO_FILE: Told = (404, r#"{"error":"change file not found","code":"change_not_found"}"#);
const MISSING_ID: Told = (502, r#"{"error":"upstream record missing id"}"#);
const EMPTY_PAGE: Told = (502, r#"{"error":"empty page with cursor"}"#);
const DUPLICATE: Told = (502, r#"{"error":"duplicate cursor"}"#);
const NO_TURNS: Told = (
    200,
    r#"{"records":[],"turnCount":0,"cursor":null,"complete":true,"partsProjection":"slim-v1"}"#,
);
const RESET: Told = (
    200,
    r#"{"records":[],"anchorFound":false,"capturedHeadMessageID":null,"latestHeadMessageID":null,"continuation":null,"complete":true,"resetRequired":true,"scannedRecords":0,"responseBytes":0}"#,
);
const NO_FILES: Told = (200, r#"{"files":[]}"#);

/// Asks every route of a host whose upstream does this whatever it is asked, and compares.
async fn every_route_tells(act: Act, expected: [Told; 5]) {
    let script = {
        let act = act.clone();
        move |request: &Request| (request.path != "/global/health").then(|| act.clone())
    };
    let upstream = ScriptedUpstream::start(script).await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.page_deadline = Duration::from_millis(500);
    let host = RunningHost::start(options).await;
    for (path, told) in ROUTES.into_iter().zip(expected) {
        let logs = Logs::start();
        let answer = host.get(path).await;
        let name = format!("{act:?}").chars().take(300).collect::<String>();
        assert_eq!((answer.status, answer.body.as_str()), told, "{path} after {name}");
        let logs = logs.text();
        assert!(!logs.contains(CANARY) && !logs.contains("panicked"), "{logs}");
        assert!(logs.contains(&format!("status={} ", told.0)), "{logs}");
    }
}

fn json_head(length: usize) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
}

fn not_found(what: &str) -> Act {
    let body = format!(r#"{{"name":"NotFoundError","data":{{"message":"{what}: {CANARY}"}}}}"#);
    answer(404, &[], &body)
}

#[tokio::test]
async fn slow_answers() {
    every_route_tells(Act::Stall, [TIMED_OUT; 5]).await;
    let body = format!("{}[{{\"info\":{{\"id\":\"{CANARY}\"", json_head(99_999));
    every_route_tells(Act::SendAndStall(body.into_bytes()), [TIMED_OUT; 5]).await;
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
         f\r\n[\"{CANARY}\",\r\n"
    );
    every_route_tells(Act::SendAndStall(chunked.into_bytes()), [TIMED_OUT; 5]).await;
}

#[tokio::test]
async fn cut_answers() {
    every_route_tells(Act::Close, [FAILED; 5]).await;
    let body = format!("{}[{{\"info\":\"{CANARY}\"", json_head(999));
    every_route_tells(Act::SendAndClose(body.into_bytes()), [FAILED; 5]).await;
    let head = json_head(999);
    every_route_tells(Act::SendAndClose(head[..30].into()), [FAILED; 5]).await;
    every_route_tells(Act::SendAndClose(format!("{CANARY}\r\n\r\n").into()), [FAILED; 5]).await;
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
         f\r\n[\"{CANARY}\",\r\n"
    );
    every_route_tells(Act::SendAndClose(chunked.into_bytes()), [FAILED; 5]).await;
}

#[tokio::test]
async fn other_media_and_encodings() {
    let row = format!(r#"[{{"info":{{"id":"msg_1"}},"x":"{CANARY}"}}]"#);
    let html = format!("<html>{CANARY}");
    let plain = ("content-type", "text/plain");
    for act in [
        Act::Send(response(200, &[("content-type", "text/html")], &html)),
        Act::Send(response(200, &[("content-type", "text/html; charset=utf-8")], &html)),
        Act::Send(response(200, &[plain], &row)),
        Act::Send(response(200, &[("content-type", "application/jsonl")], &row)),
        Act::Send(response(200, &[], &row)),
        answer(200, &[("content-encoding", "gzip")], &row),
        Act::Send(response(204, &[], "")),
        answer(200, &[], ""),
        answer(200, &[], CANARY),
        answer(200, &[], &format!("{{\"x\":\"{CANARY}")),
        answer(200, &[], "\"\\ud800"),
    ] {
        every_route_tells(act, [FAILED; 5]).await;
    }
}

#[tokio::test]
async fn refusals() {
    let name = format!(r#"{{"name":"{CANARY}","data":{{"message":"{CANARY}"}}}}"#);
    for status in [301, 302, 304, 400, 401, 403, 404, 405, 418, 429, 500, 501, 502, 504] {
        let act = answer(status, &[("location", "/canary-4711")], &name);
        every_route_tells(act, [FAILED; 5]).await;
    }
    every_route_tells(answer(503, &[], &name), [UNAVAILABLE; 5]).await;
    // The list of diffs is never said to be missing.
    let no_session = [NO_SESSION, NO_SESSION, NO_SESSION, FAILED, NO_SESSION];
    every_route_tells(not_found("Session not found"), no_session).await;
    let no_message = [FAILED, FAILED, NO_MESSAGE, FAILED, NO_MESSAGE];
    every_route_tells(not_found("Message not found"), no_message).await;
    // A cursor is only refused to who sent one.
    every_route_tells(answer(400, &[], r#"{"_tag":"BadRequest"}"#), [FAILED; 5]).await;
}

#[tokio::test]
async fn nobody_listens() {
    let gone = ScriptedUpstream::start(|_| None).await;
    let mut options = HostOptions::default();
    options.upstream = Some(gone.options());
    gone.kill().await;
    let host = RunningHost::start(options).await;
    for path in ROUTES {
        let told = host.get(path).await;
        assert_eq!((told.status, told.body.as_str()), UNAVAILABLE, "{path}");
    }
}

#[tokio::test]
async fn json_of_another_shape() {
    for body in ["null", "1", "\"x\"", "true"] {
        every_route_tells(answer(200, &[], body), [FAILED; 5]).await;
    }
    every_route_tells(answer(200, &[], "{}"), [FAILED, FAILED, NO_FILES, FAILED, (200, "{}")])
        .await;
    every_route_tells(answer(200, &[], "[]"), [NO_TURNS, RESET, FAILED, NO_FILE, FAILED]).await;
    // Rows that are none.
    for body in [
        "[null]".to_owned(),
        "[[]]".to_owned(),
        "[{}]".to_owned(),
        format!(r#"[{{"info":{{"role":"{CANARY}"}}}}]"#),
        format!(r#"[{{"info":{{"id":""}},"x":"{CANARY}"}}]"#),
        format!(r#"[{{"info":{{"id":["{CANARY}"]}}}}]"#),
        format!(r#"[{{"info":{{"id":"msg_2"}}}},{{"info":null,"x":"{CANARY}"}}]"#),
    ] {
        let told = [MISSING_ID, MISSING_ID, FAILED, NO_FILE, FAILED];
        every_route_tells(answer(200, &[], &body), told).await;
    }
}

#[tokio::test]
async fn pages_that_lead_nowhere() {
    let next = ("x-next-cursor", CANARY);
    let told = [EMPTY_PAGE, EMPTY_PAGE, FAILED, NO_FILE, FAILED];
    every_route_tells(answer(200, &[next], "[]"), told).await;
    let row = r#"[{"info":{"id":"msg_2","role":"assistant"},"parts":[]}]"#;
    let told = [DUPLICATE, DUPLICATE, FAILED, NO_FILE, FAILED];
    every_route_tells(answer(200, &[next], row), told).await;
    // An empty cursor is none.
    let one = r#"{"records":[{"info":{"id":"msg_2","role":"assistant"},"parts":[]}],"turnCount":0,"cursor":null,"complete":true,"partsProjection":"slim-v1"}"#;
    let reset = r#"{"records":[],"anchorFound":false,"capturedHeadMessageID":"msg_2","latestHeadMessageID":"msg_2","continuation":null,"complete":true,"resetRequired":true,"scannedRecords":1,"responseBytes":0}"#;
    let told = [(200, one), (200, reset), FAILED, NO_FILE, FAILED];
    every_route_tells(answer(200, &[("x-next-cursor", "")], row), told).await;
}

#[tokio::test]
async fn pages_without_end() {
    // A new cursor and a new row each time, for ever.
    let counter = std::sync::atomic::AtomicUsize::new(0);
    let upstream = ScriptedUpstream::start(move |request| {
        request.path.starts_with("/session/").then(|| {
            let count = counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let row = format!(r#"[{{"info":{{"id":"msg_{count}","role":"assistant"}}}}]"#);
            answer(200, &[("x-next-cursor", &format!("cursor-{count}"))], &row)
        })
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    let too_many = (413, r#"{"error":"scan page limit exceeded","code":"max_scan_pages"}"#);
    for path in [ROUTES[0], ROUTES[1]] {
        let before = upstream.requests().len();
        let told = host.get(path).await;
        assert_eq!((told.status, told.body.as_str()), too_many, "{path}");
        assert_eq!(upstream.requests().len() - before, 50);
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_encoded_at_all() {
    // Every page is refused, that of one row as well, and there is no history to name the row: what
    // is left of the session is its one stub.
    let body = format!(r#"{{"name":"BadRequest","data":{{"message":"{CANARY}","kind":"Body"}}}}"#);
    let stub = r#"{"info":{"id":"unreadable:ses_1","sessionID":"ses_1","role":"user","time":{"created":0},"error":{"name":"TurnkeepUnreadable"}},"parts":[]}"#;
    let upstream = ScriptedUpstream::start(move |request| {
        (request.path != "/global/health").then(|| answer(400, &[], &body))
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    let page = host.get(ROUTES[0]).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.json()["records"][0].to_string(), stub);
    let round = host.get(&ROUTES[1].replace("msg_1", "unreadable:ses_1")).await;
    assert_eq!((round.status, round.json()["records"][0].to_string()), (200, stub.to_owned()));
    for path in &ROUTES[2..] {
        let told = host.get(path).await;
        assert_eq!((told.status, told.body.as_str()), FAILED, "{path}");
    }
}
