//! The official list of messages: the upstream's as it is, but for reasoning that is not wanted,
//! and the same of stored sessions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::{
    both::Served,
    host::RunningHost,
    raw_upstream::{RawUpstream, Wire},
    store::TestStore,
};
use turnkeep_host::HostOptions;
use turnkeep_store::SessionStore;

/// Spelled as nobody would spell it anew.
const RECORDS: &str = r#"[ {"info":{"id":"m1","n":1.0e2},"parts":[{"type":"reasoning"} , {"type" : "text","text":"\u0041"}]},{"parts":[],"info":{"id":"m2","summary":{"diffs":[{"file":"a","patch":"@@"}]}}}]"#;
const FILTERED: &str = r#"[ {"info":{"id":"m1","n":1.0e2},"parts":[{"type" : "text","text":"\u0041"}]},{"parts":[],"info":{"id":"m2","summary":{"diffs":[{"file":"a","patch":"@@"}]}}}]"#;

/// An upstream whose every answer is this, of this media type.
async fn saying(media_type: &'static str, body: &'static str) -> RawUpstream {
    RawUpstream::start(move |mut wire| async move {
        let (host, target) = (wire.header("host").unwrap(), wire.target().to_owned());
        let joint = if target.contains('?') { '&' } else { '?' };
        let length = body.len();
        wire.send(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\
             access-control-expose-headers: Link, X-Next-Cursor\r\nx-next-cursor: c1\r\n\
             link: <http://{host}{target}{joint}before=c1>; rel=\"next\"\r\nvary: Origin\r\n\r\n{body}"
        ))
        .await;
        Some(wire)
    })
    .await
}

async fn host_of(upstream: &RawUpstream) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    RunningHost::start(options).await
}

async fn ask(host: &RunningHost, line: &str) -> (Wire, String) {
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(&[&format!("{line} HTTP/1.1"), "accept-encoding: gzip"]).await;
    assert!(wire.read_head().await);
    let body = if line.starts_with("HEAD") { String::new() } else { wire.body().await.unwrap() };
    (wire, body)
}

#[tokio::test]
async fn the_list_passes_byte_for_byte_and_its_cursor_with_it() {
    let upstream = saying("application/json", RECORDS).await;
    let host = host_of(&upstream).await;
    let (answer, body) =
        ask(&host, "GET /api/session/ses_1/message?limit=2&includeReasoning=true").await;
    assert_eq!((answer.status(), body.as_str()), (200, RECORDS));
    assert_eq!(answer.header("x-next-cursor").as_deref(), Some("c1"));
    let link = "</api/session/ses_1/message?limit=2&before=c1>; rel=\"next\"";
    assert_eq!(answer.header("link").as_deref(), Some(link));
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(upstream.targets(), ["/session/ses_1/message?limit=2"]);
    assert!(upstream.heads()[0].contains("accept-encoding: gzip\r\n"));
}

#[tokio::test]
async fn reasoning_is_left_out_and_nothing_else_changes() {
    let upstream = saying("application/json; charset=utf-8", RECORDS).await;
    let host = host_of(&upstream).await;
    let (answer, body) =
        ask(&host, "GET /api/session/ses_1/message?includeReasoning=false&limit=2").await;
    assert_eq!((answer.status(), body.as_str()), (200, FILTERED));
    assert_eq!(answer.header("content-length"), Some(FILTERED.len().to_string()));
    let link =
        "</api/session/ses_1/message?limit=2&before=c1&includeReasoning=false>; rel=\"next\"";
    assert_eq!(answer.header("link").as_deref(), Some(link));
    assert_eq!(upstream.targets(), ["/session/ses_1/message?limit=2"]);
    assert!(upstream.heads()[0].contains("accept-encoding: identity\r\n"));
    for other in ["False", "0", "", "true&includeReasoning=false"] {
        let (_, body) =
            ask(&host, &format!("GET /api/session/ses_1/message?includeReasoning={other}")).await;
        assert_eq!(body, RECORDS, "{other}");
    }
}

#[tokio::test]
async fn what_is_no_list_passes_as_text() {
    for (media_type, body) in [
        ("text/html", "<html>reasoning</html>"),
        ("text/plain", RECORDS),
        ("application/json", "null"),
        ("application/json", "[{\"parts\":[{\"type\":\"reasoning\"}]"),
        ("application/json", r#"{"name":"NotFoundError","data":{}}"#),
    ] {
        let upstream = saying(media_type, body).await;
        let host = host_of(&upstream).await;
        let (answer, told) =
            ask(&host, "GET /api/session/ses_1/message?includeReasoning=false").await;
        assert_eq!((answer.status(), told.as_str()), (200, body));
        assert_eq!(answer.header("content-type").as_deref(), Some(media_type));
    }
}

#[tokio::test]
async fn a_head_asks_for_what_a_get_would_bring() {
    let upstream = saying("application/json", RECORDS).await;
    let host = host_of(&upstream).await;
    let (answer, _) = ask(&host, "HEAD /api/session/ses_1/message").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.header("x-next-cursor").as_deref(), Some("c1"));
    assert!(upstream.heads()[0].starts_with("GET "));
}

#[tokio::test]
async fn a_list_that_breaks_off_is_no_list() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.send(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n[",
        )
        .await;
        None
    })
    .await;
    let host = host_of(&upstream).await;
    let (answer, body) = ask(&host, "GET /api/session/ses_1/message?includeReasoning=false").await;
    assert_eq!(
        (answer.status(), body.as_str()),
        (503, r#"{"error":"OpenCode service unavailable"}"#)
    );
}

#[tokio::test]
async fn ids_that_are_nobodys_are_not_asked_for() {
    let upstream = RawUpstream::quiet().await;
    let host = host_of(&upstream).await;
    let told = host.get("/api/session/nobody/message").await;
    let unknown = r#"{"error":"session not found","code":"session_not_found"}"#;
    assert_eq!((told.status, told.body.as_str()), (404, unknown));
    assert!(upstream.heads().is_empty());
}

/// Goes through a list from its newest part to its oldest, as the header or the link says.
async fn walk(served: &Served, limit: usize, by_link: bool) -> Vec<String> {
    let start = format!("/api/session/{}/message?limit={limit}", served.session);
    let (mut target, mut parts) = (start.clone(), Vec::new());
    loop {
        let answer = served.host.get(&target).await;
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        let records: Vec<Value> = serde_json::from_str(&answer.body).unwrap();
        assert!(records.len() <= limit);
        let ids = records.iter().map(|record| record["info"]["id"].as_str().unwrap().to_owned());
        parts.push(ids.collect::<Vec<_>>());
        match (by_link, answer.header("x-next-cursor")) {
            (_, None) => break,
            (false, Some(next)) => target = format!("{start}&before={next}"),
            (true, Some(_)) => {
                let link = answer.header("link").unwrap();
                let address = link.strip_prefix('<').unwrap().split_once('>').unwrap().0;
                address.clone_into(&mut target);
            }
        }
    }
    parts.into_iter().rev().flatten().collect()
}

#[tokio::test]
async fn one_client_code_goes_through_a_session_in_either_place() {
    let served = Served::in_store(4, |_| {}).await;
    let all = served.ids(0..served.len());
    for limit in [1, 2, 5, 11, 12, 13] {
        assert_eq!(walk(&served, limit, false).await, all, "{limit}");
        assert_eq!(walk(&served, limit, true).await, all, "{limit}");
    }
    for whole in ["", "?limit=0", "?limit=", "?limit=12", "?limit=1000"] {
        let answer = served.host.get(&format!("/api/session/ses_1/message{whole}")).await;
        let records: Vec<Value> = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((records.len(), answer.header("x-next-cursor")), (12, None), "{whole}");
    }
    let behind = Served::behind_upstream(4, |_| {}).await;
    let answer = behind.host.get("/api/session/ses_1/message?limit=12").await;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&answer.body).unwrap().len(), 12);
}

#[tokio::test]
async fn mistakes_about_a_stored_session_are_told() {
    let served = Served::in_store(1, |_| {}).await;
    for (query, error) in [
        ("limit=-1", "limit must be a natural number"),
        ("limit=abc", "limit must be a natural number"),
        ("limit=1.5", "limit must be a natural number"),
        ("before=eyJzZXEiOjV9", "before needs a limit"),
        ("limit=2&before=garbage", "invalid cursor"),
    ] {
        let answer = served.host.get(&format!("/api/session/ses_1/message?{query}")).await;
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!(error)), "{query}");
    }
    let empty = served.host.get("/api/session/ses_1/message?limit=2&before=").await;
    assert_eq!(empty.status, 200);
}

#[tokio::test]
async fn a_stored_list_is_as_the_messages_are_and_needs_no_upstream() {
    let store = TestStore::new();
    let id = store.add_golden("text-turn").await;
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    let host = RunningHost::start(options).await;
    let path = format!("/api/session/{id}/message");
    let all: Vec<Value> = serde_json::from_str(&host.get(&path).await.body).unwrap();
    assert!(!all.is_empty());
    let reasoning = |records: &[Value]| {
        let parts = records.iter().flat_map(|record| record["parts"].as_array().unwrap());
        parts.filter(|part| part["type"] == "reasoning").count()
    };
    let without = host.get(&format!("{path}?includeReasoning=false")).await;
    let without: Vec<Value> = serde_json::from_str(&without.body).unwrap();
    assert_eq!((without.len(), reasoning(&without)), (all.len(), 0));
    // A client that has it already is told so.
    let first = host.get(&path).await;
    let again = host.request("GET", &path).header("if-none-match", first.header("etag").unwrap());
    assert_eq!(again.send().await.unwrap().status, 304);
    assert_eq!(host.request("HEAD", &path).send().await.unwrap().status, 200);
}
