//! The transcript cache over HTTP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use support::{
    contract,
    host::{Answer, RunningHost},
    logs::Logs,
};
use tempfile::TempDir;
use turnkeep_host::HostOptions;

const CACHE: &str = "/api/openchamber/transcript-cache";
const SCOPE: &str = "transport=local&generation=1&directory=%2Fw&sessionID=s";

/// Nothing of this may ever be logged or be told in an error.
const CANARY: &str = "canary-4711";

async fn host_with(path: Option<&Path>) -> RunningHost {
    let mut options = HostOptions::default();
    options.transcript_cache = path.map(Path::to_owned);
    RunningHost::start(options).await
}

async fn host() -> (TempDir, RunningHost) {
    let directory = tempfile::tempdir().unwrap();
    let host = host_with(Some(&file(&directory))).await;
    (directory, host)
}

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join("cache.sqlite")
}

fn scope() -> Value {
    json!({ "transport": "local", "generation": 1, "directory": "/w", "sessionID": "s" })
}

fn message(id: &str, parts: &Value) -> Value {
    let info = json!({ "id": id, "role": "user", "time": { "created": 5 } });
    json!({ "scope": scope(), "info": info, "parts": parts })
}

async fn send(host: &RunningHost, method: &str, path: &str, body: &Value) -> Answer {
    let request = host.request(method, &format!("{CACHE}/{path}"));
    request.json(body.to_string()).send().await.unwrap()
}

async fn put(host: &RunningHost, body: &Value) -> Value {
    let answer = send(host, "PUT", "message", body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

async fn session(host: &RunningHost, more: &str) -> Value {
    let answer = host.get(&format!("{CACHE}/session?{SCOPE}{more}")).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

async fn ids(host: &RunningHost) -> Vec<String> {
    let session = session(host, "").await;
    let records = session["records"].as_array().unwrap();
    records.iter().map(|record| record["messageID"].as_str().unwrap().to_owned()).collect()
}

fn is(answer: &Answer, status: u16, error: &str) -> bool {
    answer.status == status && answer.json() == json!({ "error": error })
}

#[tokio::test]
async fn without_a_cache_everything_is_501() {
    let host = host_with(None).await;
    for (method, path) in [
        ("GET", format!("session?{SCOPE}")),
        ("GET", format!("message?{SCOPE}&messageID=m")),
        ("GET", "message".to_owned()),
        ("PUT", "message".to_owned()),
        ("DELETE", "message".to_owned()),
        ("DELETE", "session".to_owned()),
        ("DELETE", "generation".to_owned()),
        ("DELETE", "all".to_owned()),
        ("POST", "evict".to_owned()),
    ] {
        // Larger than what fits the buffers of a connection.
        let parts = json!([{ "text": "x".repeat(4 << 20) }]);
        let answer = send(&host, method, &path, &message("m", &parts)).await;
        let unavailable = "Transcript cache is unavailable for this runtime";
        assert!(is(&answer, 501, unavailable), "{method} {path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_blank_path_is_none() {
    let logs = Logs::start();
    for blank in ["", " \t"] {
        let host = host_with(Some(Path::new(blank))).await;
        assert_eq!(host.get(&format!("{CACHE}/session?{SCOPE}")).await.status, 501);
    }
    assert!(!logs.text().contains("WARN"), "it was not asked for");
}

#[tokio::test]
async fn a_file_that_will_not_do_turns_the_cache_off_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text.sqlite");
    std::fs::write(&text, "no database, but long enough to be one".repeat(100)).unwrap();
    for path in [
        text,
        directory.path().join("cache.db"),
        directory.path().join("Session-Index.sqlite"),
        directory.path().join("none/cache.sqlite"),
        directory.path().to_owned(),
    ] {
        let logs = Logs::start();
        let host = host_with(Some(&path)).await;
        assert_eq!(host.get(&format!("{CACHE}/session?{SCOPE}")).await.status, 501, "{path:?}");
        let text = logs.text();
        assert!(text.contains("WARN") && text.contains("the transcript cache is off"), "{text}");
    }
}

#[tokio::test]
async fn bad_input_is_400_with_a_text_for_each() {
    let (_directory, host) = host().await;
    let with = |from: &str, to: &str| SCOPE.replace(from, to);
    for (query, what) in [
        (with("generation=1", "generation=1.5"), "scope"),
        (with("generation=1", "generation=1&generation=1"), "scope"),
        (with("local", ""), "scope"),
        (with("sessionID", "sessionid"), "scope"),
        (with("=s", &format!("={}", "x".repeat(513))), "scope"),
        (String::new(), "scope"),
        (SCOPE.to_owned(), "message ID"),
        (format!("{SCOPE}&messageID="), "message ID"),
        (format!("{SCOPE}&messageID={}", "x".repeat(513)), "message ID"),
    ] {
        let answer = host.get(&format!("{CACHE}/message?{query}")).await;
        assert!(is(&answer, 400, &format!("Invalid transcript cache {what}")), "{query}");
    }
    let one = message("m", &json!([]));
    let changed = |key: &str, value: Value| {
        let mut body = one.clone();
        body[key] = value;
        body
    };
    for (method, path, body, what) in [
        ("PUT", "message", json!([]), "payload"),
        ("PUT", "message", changed("parts", json!("x")), "payload"),
        ("PUT", "message", changed("info", json!([])), "payload"),
        ("PUT", "message", changed("info", json!({ "role": "user" })), "message ID"),
        ("PUT", "message", changed("scope", json!({ "generation": 1.5 })), "scope"),
        ("DELETE", "message", json!({ "scope": scope() }), "message ID"),
        ("DELETE", "message", json!({ "messageID": "m" }), "scope"),
        ("DELETE", "session", json!([]), "scope"),
        ("DELETE", "generation", json!({ "transport": "local" }), "generation"),
        ("POST", "evict", json!({ "maxBytes": "1" }), "payload"),
        ("POST", "evict", json!({ "maxBytes": 1, "protect": [{}] }), "scope"),
        ("POST", "evict", json!({ "maxBytes": 1, "protect": {} }), "payload"),
    ] {
        let answer = send(&host, method, path, &body).await;
        let expected = format!("Invalid transcript cache {what}");
        assert!(is(&answer, 400, &expected), "{method} {path} {body}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_body_must_be_json_of_at_most_72_mib_and_say_so() {
    let (_directory, host) = host().await;
    let put = || host.request("PUT", &format!("{CACHE}/message"));
    let payload = "Invalid transcript cache payload";
    let good = message("m", &json!([])).to_string();
    for bad in [&good[..good.len() - 1], "", " ", "1", "null", "\"x\"", "{} {}", "nul"] {
        let answer = put().json(bad.to_owned()).send().await.unwrap();
        // What is empty counts as `{}`, which has no scope.
        let error = if bad.is_empty() { "Invalid transcript cache scope" } else { payload };
        assert!(is(&answer, 400, error), "{bad:?}: {}", answer.body);
    }
    // Nothing asks before a page of another site sends one of these.
    for media_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let request = put().header("content-type", media_type).body(good.clone());
        let answer = request.send().await.unwrap();
        assert!(is(&answer, 400, "Invalid transcript cache scope"), "{}", answer.body);
    }
    let packed = put().json(good.clone()).header("content-encoding", "gzip").send().await.unwrap();
    assert!(is(&packed, 400, payload));
    // A mark of the byte order, parameters, and bytes that are no UTF-8 are no obstacle.
    let marked = format!("\u{feff}{}", good.replace("/w", "/w?"));
    let odd: Vec<u8> = marked.bytes().map(|byte| if byte == b'?' { 0xff } else { byte }).collect();
    let request = put().header("content-type", "Application/JSON; charset=utf-8").body(odd);
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["record"]["scope"]["directory"], "/w\u{fffd}");
    let largest = 72 << 20;
    let padded = format!("{good}{}", " ".repeat(largest - good.len()));
    assert_eq!(put().json(padded.clone()).send().await.unwrap().status, 200);
    // One byte more, which shows only at the end.
    let chunked = format!(
        "PUT {CACHE}/message HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         connection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{padded} \r\n0\r\n\r\n",
        largest + 1
    );
    let answer = host.raw(chunked.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(payload), "{answer}");
    // One that says to be too large is not waited for.
    let head = format!(
        "PUT {CACHE}/message HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        largest + 1
    );
    let answer = host.raw(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(payload), "{answer}");
}

#[tokio::test]
async fn what_is_written_is_read() {
    let (_directory, host) = host().await;
    let parts = json!([{ "type": "text", "text": "hello" }, { "type": "tool", "slim": true }]);
    let mut inlined = message("m", &parts);
    let members = scope();
    inlined.as_object_mut().unwrap().remove("scope");
    inlined.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    inlined["generation"] = json!("1");
    let written = put(&host, &inlined).await;
    assert_eq!(written["status"], "written");
    assert_eq!(written["record"]["scope"], scope());
    let again = put(&host, &message("m", &parts)).await;
    assert_eq!((&again["status"], &again["reason"]), (&json!("skipped"), &json!("unchanged")));
    let read = host.get(&format!("{CACHE}/message?{SCOPE}&messageID=m")).await.json();
    assert_eq!(read["record"]["parts"], parts);
    assert_eq!(read["record"]["contentHash"], written["record"]["contentHash"]);
    let slim = put(&host, &message("n", &json!([]))).await;
    assert_eq!(slim["record"]["completeness"], "full");
    let downgrade = put(&host, &message("n", &json!([{ "slim": true }]))).await;
    assert_eq!(downgrade["reason"], "slim-downgrade");
    let mut open = message("o", &json!([]));
    open["info"]["role"] = json!("assistant");
    assert_eq!(put(&host, &open).await, json!({ "status": "skipped", "reason": "not-settled" }));
    assert_eq!(ids(&host).await, ["m", "n"]);
    let missing = host.get(&format!("{CACHE}/message?{SCOPE}&messageID=o")).await;
    assert!(is(&missing, 404, "message_not_found"));
    let head = host.request("HEAD", &format!("{CACHE}/session?{SCOPE}")).send().await.unwrap();
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    // Names of routes are in any case, with a slash behind them.
    let loud = CACHE.to_uppercase().replace("/API", "/api");
    let loud = host.get(&format!("{loud}/SESSION/?{SCOPE}")).await;
    assert_eq!(loud.status, 200);
}

#[tokio::test]
async fn json_is_kept_as_it_came() {
    let (_directory, host) = host().await;
    let info =
        r#"{"id":"m", "n":1.0e0,"big":12345678901234567890,"escaped":"\ud83d\ude00","id":"m"}"#;
    let parts = r#"[ {"type":"text","text":"\u2028\/"} ]"#;
    let body = format!(r#"{{"scope":{},"info":{info},"parts":{parts}}}"#, scope());
    let request = host.request("PUT", &format!("{CACHE}/message"));
    let written = request.json(body).send().await.unwrap();
    let read = host.get(&format!("{CACHE}/session?{SCOPE}")).await;
    for answer in [written, read] {
        assert!(answer.body.contains(&format!(r#""info":{info},"parts":{parts},"#)));
    }
}

#[tokio::test]
async fn reasoning_is_left_out_on_request_and_the_words_line_up() {
    let (_directory, host) = host().await;
    let parts = json!([{ "type": "reasoning", "slim": true }, { "type": "text", "text": "x" }]);
    put(&host, &message("m", &parts)).await;
    for (more, expected) in [
        ("", json!(["slim", "full"])),
        ("&includeReasoning=0", json!(["slim", "full"])),
        ("&includeReasoning=false", json!(["full"])),
        ("&includeReasoning=false&includeReasoning=true", json!(["full"])),
    ] {
        let read = host.get(&format!("{CACHE}/message?{SCOPE}&messageID=m{more}")).await.json();
        assert_eq!(read["record"]["partCompleteness"], expected, "{more}");
        let read = session(&host, more).await;
        assert_eq!(read["records"][0]["partCompleteness"], expected, "{more}");
    }
    assert_eq!(session(&host, "").await["records"][0]["parts"], parts, "it is kept whole");
}

#[tokio::test]
async fn deletes_are_204_and_upsert_and_evict_answer_with_json() {
    let (_directory, host) = host().await;
    for id in ["a", "b", "c"] {
        put(&host, &message(id, &json!([]))).await;
    }
    let gone = json!({ "scope": scope(), "messageID": "b" });
    assert_eq!(send(&host, "DELETE", "message", &gone).await.status, 204);
    assert_eq!(ids(&host).await, ["a", "c"]);
    let before = session(&host, "").await["byteSize"].as_u64().unwrap();
    let kept = json!({ "maxBytes": 0, "protect": [scope()] });
    let kept = send(&host, "POST", "evict", &kept).await.json();
    assert_eq!(kept, json!({ "evicted": 0, "freedBytes": 0, "remainingBytes": before }));
    let one = send(&host, "POST", "evict", &json!({ "maxBytes": before - 1 })).await.json();
    let half = before / 2;
    assert_eq!(one, json!({ "evicted": 1, "freedBytes": half, "remainingBytes": half }));
    for (path, body) in [
        ("session", json!({ "scope": scope() })),
        ("session", scope()),
        ("generation", json!({ "transport": "local", "generation": 1 })),
        ("all", json!(null)),
    ] {
        put(&host, &message("a", &json!([]))).await;
        assert_eq!(send(&host, "DELETE", path, &body).await.status, 204, "{path}");
        assert!(ids(&host).await.is_empty(), "{path}");
    }
    let bare = host.request("DELETE", &format!("{CACHE}/all")).send().await.unwrap();
    assert_eq!(bare.status, 204);
}

#[tokio::test]
async fn a_credential_for_previews_is_refused() {
    let (_directory, host) = host().await;
    let get = |more: &str| host.request("GET", &format!("{CACHE}/session?{SCOPE}{more}"));
    let by_query = get("&oc_preview_token=x").send().await.unwrap();
    let by_cookie = get("").header("cookie", "a=b; oc_preview_token=x=y").send().await.unwrap();
    for answer in [by_query, by_cookie] {
        assert!(is(&answer, 403, "Forbidden"), "{}", answer.body);
    }
    let normal =
        get("&oc_preview_token=").header("cookie", "oc_preview_token_2=x; oc_preview_token=");
    assert_eq!(normal.send().await.unwrap().status, 200);
    let off = host_with(None).await;
    let off = off.get(&format!("{CACHE}/session?oc_preview_token=x")).await;
    assert!(is(&off, 403, "Forbidden"));
}

#[tokio::test]
async fn other_methods_and_names_are_none_of_the_cache() {
    let (_directory, host) = host().await;
    for (method, path) in [
        ("POST", "message"),
        ("PUT", "session"),
        ("GET", "all"),
        ("GET", "evict"),
        ("DELETE", "evict"),
        ("GET", "other"),
    ] {
        let answer = send(&host, method, path, &scope()).await;
        assert!(is(&answer, 404, "no upstream configured"), "{method} {path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_failure_is_500_and_nothing_of_a_message_is_logged() {
    let logs = Logs::start();
    let (directory, host) = host().await;
    let parts = json!([{ "type": "text", "text": CANARY }]);
    let mut secret = message("m", &parts);
    secret["scope"]["directory"] = json!(format!("/{CANARY}"));
    put(&host, &secret).await;
    let other = rusqlite::Connection::open(file(&directory)).unwrap();
    other.execute_batch("DROP TABLE transcript_cache_content").unwrap();
    let failed = "Transcript cache request failed";
    assert!(is(&send(&host, "PUT", "message", &secret).await, 500, failed));
    let query = SCOPE.replace("%2Fw", CANARY);
    for path in ["session", "message"] {
        let answer = host.get(&format!("{CACHE}/{path}?{query}&messageID=m")).await;
        assert!(is(&answer, 500, failed), "{path}: {}", answer.body);
    }
    let text = logs.text();
    assert!(!text.contains(CANARY), "{text}");
    assert!(text.contains(r#"session="s""#) && text.contains(r#"message_id="m""#), "{text}");
    assert!(text.contains("the transcript cache failed"), "{text}");
}

#[tokio::test]
async fn requests_at_once_do_not_hinder_each_other() {
    let (directory, host) = host().await;
    let second = host_with(Some(&file(&directory))).await;
    let parts = json!([{ "type": "text", "text": "x".repeat(10_000) }]);
    let writes = (0..40).map(|index| {
        let host = if index % 2 == 0 { &host } else { &second };
        let body = message(&format!("{index:02}"), &parts);
        async move { (put(host, &body).await, session(host, "").await) }
    });
    for (written, _) in futures_util::future::join_all(writes).await {
        assert_eq!(written["status"], "written");
    }
    assert_eq!(ids(&host).await.len(), 40);
    assert_eq!(contract::ids(&session(&second, "").await).len(), 40);
}

#[tokio::test]
async fn the_cache_outlives_the_host() {
    let (directory, host) = host().await;
    put(&host, &message("m", &json!([]))).await;
    host.stop().await;
    let host = host_with(Some(&file(&directory))).await;
    assert_eq!(ids(&host).await, ["m"]);
}

/// The process that is killed: writes messages until it is, and names each that is acknowledged.
#[tokio::test]
async fn writer_to_be_killed() {
    let Some(path) = std::env::var_os("TURNKEEP_TEST_CACHE_TO_KILL") else { return };
    let host = host_with(Some(Path::new(&path))).await;
    let parts = json!([{ "type": "text", "text": "x".repeat(20_000) }]);
    for index in 0.. {
        put(&host, &message(&format!("{index:06}"), &parts)).await;
        println!("\nkept {index}");
    }
}

#[tokio::test]
async fn a_host_that_is_killed_leaves_a_cache_with_all_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["writer_to_be_killed", "--exact", "--nocapture"])
        .env("TURNKEEP_TEST_CACHE_TO_KILL", file(&directory))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut kept = lines.filter(|line| line.starts_with("kept ")).skip(50);
    assert!(kept.next().is_some(), "it gets that far");
    child.kill().unwrap();
    let more = kept.count();
    child.wait().unwrap();
    let host = host_with(Some(&file(&directory))).await;
    assert!(ids(&host).await.len() > 50 + more, "killing a process loses nothing");
    put(&host, &message("z", &json!([]))).await;
    let check = rusqlite::Connection::open(file(&directory)).unwrap();
    let sound: String = check.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}
