//! Turn pages in front of an upstream that misbehaves in every way it can.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use support::{
    contract::ids,
    host::{Answer, RunningHost},
    logs::Logs,
    upstream::{Act, Request, ScriptedUpstream, answer, list, response, rows},
};
use turnkeep_host::HostOptions;

/// In every body the upstream sends, and never in a log line or an error.
const CANARY: &str = "canary-4711";

const PAGE: &str = "/api/openchamber/sessions/ses_1/messages";

async fn host(upstream: &ScriptedUpstream) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.page_deadline = Duration::from_millis(400);
    RunningHost::start(options).await
}

/// What a client is told when the message list is answered in this way, however often it is asked.
async fn told(act: Act) -> (u16, String) {
    let logs = Logs::start();
    let script = move |request: &Request| (request.path != "/global/health").then(|| act.clone());
    let upstream = ScriptedUpstream::start(script).await;
    let host = host(&upstream).await;
    let Answer { status, body, .. } = host.get(PAGE).await;
    host.stop().await;

    let text = logs.text();
    assert!(!body.contains(CANARY), "an upstream's words reach no client: {body}");
    assert!(!text.contains(CANARY), "an upstream's words reach no log: {text}");
    let lines = logs.requests();
    let [line] = lines.as_slice() else { panic!("one line a request, not {lines:?}") };
    assert!(line.contains(&format!("status={status} ")), "{line}");
    assert!(line.contains(r#"session="ses_1""#), "{line}");
    (status, body)
}

fn upstream_failed() -> (u16, String) {
    (502, r#"{"error":"upstream"}"#.to_owned())
}

#[tokio::test]
async fn a_page_without_sense_is_a_failed_upstream() {
    let body = format!("[{{\"info\":{{\"id\":\"m\"}},\"x\":\"{CANARY}\"}}]");
    let html = ("content-type", "text/html");
    let gzip = ("content-encoding", "gzip");
    for act in [
        Act::Send(response(200, &[html], &format!("<html>{CANARY}"))),
        Act::Send(response(200, &[("content-type", "text/plain")], &body)),
        Act::Send(response(200, &[], &body)),
        Act::Send(response(204, &[], "")),
        answer(200, &[], ""),
        answer(200, &[], CANARY),
        answer(200, &[], &format!("{{\"{CANARY}\":1}}")),
        answer(200, &[gzip], &body),
        answer(302, &[("location", "http://127.0.0.1:1/canary-4711")], &body),
        answer(401, &[("www-authenticate", "Basic realm=\"canary-4711\"")], &body),
        answer(404, &[], &format!("{{\"name\":\"{CANARY}\"}}")),
        answer(500, &[], &format!("{{\"name\":\"UnknownError\",\"data\":\"{CANARY}\"}}")),
    ] {
        assert_eq!(told(act.clone()).await, upstream_failed(), "{act:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_early_is_a_failed_upstream() {
    let whole = response(200, &[("content-type", "application/json")], &format!("[\"{CANARY}\"]"));
    let cut = whole[..whole.len() - 3].to_vec();
    assert_eq!(told(Act::SendAndClose(cut)).await, upstream_failed());
    assert_eq!(told(Act::SendAndClose(whole[..20].to_vec())).await, upstream_failed());
    assert_eq!(told(Act::Close).await, upstream_failed());
    assert_eq!(told(Act::Send(format!("{CANARY}\r\n\r\n").into_bytes())).await, upstream_failed());
}

#[tokio::test]
async fn rows_that_cannot_be_paged_are_a_failed_upstream() {
    let no_id = format!(r#"[{{"info":{{"role":"user","x":"{CANARY}"}}}}]"#);
    let expected = r#"{"error":"upstream record missing id"}"#;
    assert_eq!(told(answer(200, &[], &no_id)).await, (502, expected.to_owned()));
    let empty = answer(200, &[("x-next-cursor", CANARY)], "[]");
    let expected = r#"{"error":"empty page with cursor"}"#;
    assert_eq!(told(empty).await, (502, expected.to_owned()));
    let one = r#"[{"info":{"id":"msg_1","role":"assistant"},"parts":[]}]"#;
    let expected = r#"{"error":"duplicate cursor"}"#;
    let same = answer(200, &[("x-next-cursor", "again")], one);
    assert_eq!(told(same).await, (502, expected.to_owned()));
}

#[tokio::test]
async fn an_unknown_session_is_not_an_outage() {
    let body = format!(r#"{{"name":"NotFoundError","data":{{"message":"{CANARY}"}}}}"#);
    let expected = r#"{"error":"session not found","code":"session_not_found"}"#;
    assert_eq!(told(answer(404, &[], &body)).await, (404, expected.to_owned()));
}

#[tokio::test]
async fn an_upstream_that_does_not_serve_is_unavailable() {
    let expected = (503, r#"{"error":"upstream unavailable"}"#.to_owned());
    assert_eq!(told(answer(503, &[], &format!("\"{CANARY}\""))).await, expected);

    let logs = Logs::start();
    let upstream = ScriptedUpstream::start(|_| None).await;
    let host = host(&upstream).await;
    upstream.kill().await;
    let told = host.get(&format!("{PAGE}?directory=/{CANARY}")).await;
    assert_eq!((told.status, told.body), expected);
    let [line] = &logs.requests()[..] else { panic!("one line a request") };
    assert!(line.contains("status=503 ") && line.contains(r#"session="ses_1""#), "{line}");
    assert!(!logs.text().contains(CANARY), "{}", logs.text());
}

#[tokio::test]
async fn slow_headers_and_slow_bodies_run_into_the_deadline() {
    let expected = (504, r#"{"error":"upstream timeout"}"#.to_owned());
    assert_eq!(told(Act::Stall).await, expected);
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n[";
    assert_eq!(told(Act::Send(head.to_vec())).await, expected);
}

#[tokio::test]
async fn a_refused_cursor_is_the_clients_mistake() {
    let rows = rows(4);
    let upstream = ScriptedUpstream::start(move |request| {
        request.path.starts_with("/session/").then(|| list(&rows, request))
    })
    .await;
    let host = host(&upstream).await;
    let told = host.get(&format!("{PAGE}?before=garbage")).await;
    assert_eq!((told.status, told.body.as_str()), (400, r#"{"error":"invalid cursor"}"#));
    let token = host.get(&format!("{PAGE}?before=oc1.garbage")).await;
    assert_eq!((token.status, token.body.as_str()), (400, r#"{"error":"invalid cursor"}"#));
    assert_eq!(upstream.requests().len(), 1, "a bad token is not even sent");
}

#[tokio::test]
async fn pages_lead_from_the_newest_turn_to_the_oldest() {
    let rows = rows(25);
    let expected: Vec<_> =
        rows.iter().map(|row| row["info"]["id"].as_str().unwrap().to_owned()).collect();
    let upstream = ScriptedUpstream::start(move |request| {
        request.path.starts_with("/session/").then(|| list(&rows, request))
    })
    .await;
    let host = host(&upstream).await;
    for turns in [1, 3, 10] {
        let pages = host.pages("ses_1", turns).await;
        let read: Vec<_> = pages.iter().rev().flat_map(ids).collect();
        assert_eq!(read, expected, "{turns} turns a page");
    }
}

#[tokio::test]
async fn a_full_page_without_a_cursor_is_checked() {
    // As if the header had been lost on the way, on every page.
    let rows = rows(50);
    let upstream = ScriptedUpstream::start(move |request| {
        let act = request.path.starts_with("/session/").then(|| list(&rows, request))?;
        let Act::Send(bytes) = act else { return Some(act) };
        let text = String::from_utf8(bytes).unwrap();
        Some(Act::Send(text.replace("x-next-cursor", "x-lost").into_bytes()))
    })
    .await;
    let host = host(&upstream).await;
    let pages = host.pages("ses_1", 10).await;
    assert_eq!(pages.iter().map(|page| ids(page).len()).sum::<usize>(), 150);
}

#[tokio::test]
async fn a_message_that_cannot_be_encoded_hides_no_other() {
    // The oldest row cannot be encoded, and pages without a cursor are the encoded ones.
    let rows = rows(3);
    let poison =
        format!(r#"{{"name":"BadRequest","data":{{"message":"{CANARY}","kind":"Body"}}}}"#);
    let history = r#"[{"type":"message.updated.1","seq":1,"aggregateID":"ses_1","data":{
        "sessionID":"ses_1","info":{"id":"msg_0000_user","role":"user","time":{"created":1000}}}}]"#;
    let upstream = ScriptedUpstream::start(move |request| {
        if request.path == "/sync/history" {
            return Some(answer(200, &[], history));
        }
        let act = request.path.starts_with("/session/").then(|| list(&rows, request))?;
        let Act::Send(bytes) = &act else { return Some(act) };
        let text = String::from_utf8_lossy(bytes);
        if text.contains("msg_0000_user") && !text.contains("x-next-cursor") {
            return Some(answer(400, &[], &poison));
        }
        Some(act)
    })
    .await;
    let host = host(&upstream).await;
    let page = host.page("ses_1", 10, None).await;
    assert_eq!(ids(&page).len(), 9);
    assert_eq!(page["records"][0]["info"]["error"]["name"], "TurnkeepUnreadable");
    // Its id is in the server's history.
    assert_eq!(page["records"][0]["info"]["id"], "msg_0000_user");
    let asked = upstream.requests();
    let asked: Vec<_> = asked.iter().filter(|request| request.path == "/sync/history").collect();
    let [asked] = asked.as_slice() else { panic!("asked once for the id: {asked:?}") };
    assert_eq!((asked.method.as_str(), asked.body.as_str()), ("POST", r#"{"ses_1":0}"#));
}

#[tokio::test]
async fn requests_go_out_as_the_upstream_expects_them() {
    let rows = rows(2);
    let upstream = ScriptedUpstream::start(move |request| {
        request.path.starts_with("/session/").then(|| list(&rows, request))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap().join("real dir");
    std::fs::create_dir(&real).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();

    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options().with_password(Some("secret".to_owned())));
    let host = RunningHost::start(options).await;
    let link = link.to_str().unwrap();
    let path = format!("/api/openchamber/sessions/ses%2F1/messages?scanLimit=40&directory={link}");
    assert_eq!(host.get(&path).await.status, 200);
    assert_eq!(host.get(&format!("{PAGE}?directory=/no/such/place")).await.status, 200);

    let [linked, missing] = upstream.requests().try_into().unwrap();
    assert_eq!(linked.path, "/session/ses%2F1/message");
    let real: String = real.to_str().unwrap().replace('/', "%2F").replace(' ', "+");
    assert_eq!(linked.query, format!("directory={real}&limit=40"));
    assert_eq!(missing.query, "directory=%2Fno%2Fsuch%2Fplace&limit=100");
    let head = linked.head.to_lowercase();
    assert!(head.contains("authorization: basic b3blbmnvzgu6c2vjcmv0"), "{head}");
    assert!(head.contains("accept-encoding: identity"), "{head}");
}

#[tokio::test]
async fn nothing_is_sent_before_the_upstream_is_ready() {
    // A starting server takes requests that it never answers.
    let starting = AtomicUsize::new(2);
    let rows = rows(1);
    let upstream = ScriptedUpstream::start(move |request| match request.path.as_str() {
        "/global/health" => {
            let left = starting
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            left.is_ok().then_some(Act::Stall)
        }
        _ => Some(list(&rows, request)),
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    let started = Instant::now();
    let (first, second) = tokio::join!(host.get(PAGE), host.get(PAGE));
    assert_eq!((first.status, second.status), (200, 200));
    assert!(started.elapsed() >= Duration::from_secs(2), "two probes of a second each");
    assert_eq!(upstream.probes(), 3, "one caller probes for both");
    assert_eq!(host.get(PAGE).await.status, 200);
    assert_eq!(upstream.probes(), 3, "a ready upstream is not probed");
}

#[tokio::test]
async fn an_upstream_that_comes_back_is_found_again() {
    let first = ScriptedUpstream::start(|request| {
        request.path.starts_with("/session/").then(|| list(&rows(1), request))
    })
    .await;
    let address = first.address;
    let host = host(&first).await;
    assert_eq!(host.get(PAGE).await.status, 200);
    first.kill().await;
    assert_eq!(host.get(PAGE).await.status, 503);

    let second = ScriptedUpstream::start_on(address, |request| {
        request.path.starts_with("/session/").then(|| list(&rows(1), request))
    })
    .await;
    assert_eq!(host.get(PAGE).await.status, 200);
    assert_eq!(second.probes(), 1, "probed before it is used again");
}

#[tokio::test]
async fn a_connection_lost_once_is_not_noticed() {
    let lost = AtomicUsize::new(0);
    let upstream = ScriptedUpstream::start(move |request| {
        let act = request.path.starts_with("/session/").then(|| list(&rows(1), request))?;
        Some(if lost.fetch_add(1, Ordering::SeqCst) == 0 { Act::Close } else { act })
    })
    .await;
    assert_eq!(host(&upstream).await.get(PAGE).await.status, 200);
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_along() {
    let logs = Logs::start();
    let upstream =
        ScriptedUpstream::start(|request| (request.path != "/global/health").then_some(Act::Stall))
            .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    let impatient = host.request("GET", PAGE).timeout(Duration::from_millis(200)).send();
    assert!(impatient.await.unwrap_err().is_timeout());
    let deadline = Instant::now() + Duration::from_secs(5);
    while !logs.requests().iter().any(|line| line.contains("status=499")) {
        assert!(Instant::now() < deadline, "the request is dropped: {}", logs.text());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
