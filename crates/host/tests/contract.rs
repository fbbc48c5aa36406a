//! The judge of all answers is judged: what clients refuse, it refuses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use support::contract::{Asked, Told, check};

const PAGE: &str = "/api/openchamber/sessions/s/messages?turns=2&before=b";
const RECONCILE: &str = "/api/openchamber/sessions/s/messages/reconcile?continuation=c";
const CHANGES: &str = "/api/openchamber/sessions/s/changes?messageID=m";
const MESSAGE: &str = "/api/session/s/message/m?includeReasoning=false";

/// Whether an answer passes.
fn passes(target: &str, status: u16, body: &str) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json; charset=utf-8".parse().unwrap());
    let tag = format!("W/\"{:x}-{}\"", body.len(), "x".repeat(27));
    headers.insert("etag", tag.parse().unwrap());
    let told = Told { status, headers: &headers, body: body.as_bytes() };
    catch_unwind(AssertUnwindSafe(|| check(Asked { method: "GET", target }, told))).is_ok()
}

/// The answer passes as it is, and with none of these changes: a JSON pointer and what to put
/// there, `"-"` to take it out.
fn only_as_it_is(target: &str, good: &Value, changes: &[(&str, Value)]) {
    assert!(passes(target, 200, &good.to_string()), "{good}");
    for (pointer, value) in changes {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        if value == "-" {
            bad.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(key);
        } else if let Some(member) = bad.pointer_mut(pointer) {
            *member = value.clone();
        } else {
            bad.pointer_mut(parent).unwrap()[key] = value.clone();
        }
        assert!(!passes(target, 200, &bad.to_string()), "{pointer} {value}");
    }
}

fn record(id: &str) -> Value {
    let diffs = json!({ "diffs": [{ "file": "a" }], "diffCount": 1, "hasDiffs": true });
    json!({
        "info": { "id": id, "role": "assistant", "summary": diffs },
        "parts": [{ "type": "tool", "state": { "status": "completed" }, "slim": true }],
    })
}

#[test]
fn turn_pages() {
    let page = json!({
        "records": [record("a"), record("b")],
        "turnCount": 2,
        "cursor": "x",
        "complete": false,
        "partsProjection": "slim-v1",
    });
    only_as_it_is(
        PAGE,
        &page,
        &[
            ("/partial", json!(true)),
            ("/extra", json!(1)),
            ("/records", json!({})),
            ("/records", json!([])),
            ("/records/0", json!("x")),
            ("/records/0/info", json!([])),
            ("/records/0/info", json!("-")),
            ("/records/0/info/id", json!("")),
            ("/records/0/info/id", json!(1)),
            ("/records/0/info/id", json!("b")),
            ("/records/0/parts", json!({})),
            ("/records/0/info/summary/diffCount", json!(2)),
            ("/records/0/info/summary/hasDiffs", json!("-")),
            ("/records/0/info/summary/diffs/0/patch", json!("+x")),
            ("/records/0/parts/0/slim", json!("-")),
            ("/records/0/parts/0/state/output", json!("x")),
            ("/turnCount", json!(3)),
            ("/turnCount", json!(-1)),
            ("/turnCount", json!(1.5)),
            ("/complete", json!(0)),
            ("/complete", json!(true)),
            ("/cursor", json!("")),
            ("/cursor", json!(null)),
            ("/cursor", json!("b")),
            ("/cursor", json!("-")),
            ("/partsProjection", json!("slim-v2")),
        ],
    );
    let last = json!({
        "records": [], "turnCount": 0, "cursor": null, "complete": true, "partsProjection": "slim-v1",
    });
    only_as_it_is(PAGE, &last, &[("/complete", json!(false)), ("/cursor", json!("x"))]);
}

#[test]
fn rounds_of_reconciling() {
    let bytes = 2 * record("a").to_string().len();
    let page = json!({
        "records": [record("a"), record("b")],
        "anchorFound": false,
        "capturedHeadMessageID": "h",
        "latestHeadMessageID": "h",
        "continuation": "x",
        "complete": false,
        "resetRequired": false,
        "scannedRecords": 2,
        "responseBytes": bytes,
    });
    only_as_it_is(
        RECONCILE,
        &page,
        &[
            ("/records", json!(null)),
            ("/records/0/info/id", json!("")),
            ("/anchorFound", json!("no")),
            ("/capturedHeadMessageID", json!("")),
            ("/latestHeadMessageID", json!(null)),
            ("/continuation", json!(null)),
            ("/continuation", json!("")),
            ("/continuation", json!("c")),
            ("/continuation", json!("-")),
            ("/complete", json!(true)),
            ("/complete", json!(null)),
            ("/resetRequired", json!(true)),
            ("/resetRequired", json!(1)),
            ("/scannedRecords", json!(1)),
            ("/scannedRecords", json!("2")),
            ("/responseBytes", json!(bytes + 1)),
            ("/partsProjection", json!("slim-v1")),
        ],
    );
    let reset = json!({
        "records": [],
        "anchorFound": false,
        "capturedHeadMessageID": null,
        "latestHeadMessageID": null,
        "continuation": null,
        "complete": true,
        "resetRequired": true,
        "scannedRecords": 0,
        "responseBytes": 0,
    });
    only_as_it_is(
        RECONCILE,
        &reset,
        &[
            ("/records", json!([record("a")])),
            ("/anchorFound", json!(true)),
            ("/continuation", json!("x")),
            ("/complete", json!(false)),
            ("/resetRequired", json!(false)),
        ],
    );
}

#[test]
fn messages_and_changes() {
    let files =
        json!({ "files": [{ "file": "a", "status": "new", "additions": 1, "deletions": 0 }] });
    only_as_it_is(
        CHANGES,
        &files,
        &[
            ("/files", json!({})),
            ("/files/0/file", json!("")),
            ("/files/0/status", json!(1)),
            ("/files/0/additions", json!("1")),
            ("/files/0/deletions", json!("-")),
            ("/files/0/patch", json!("+x")),
            ("/more", json!(1)),
        ],
    );
    let one = format!("{CHANGES}&file=a");
    let diff = json!({ "diff": { "file": "a", "patch": "+x" } });
    only_as_it_is(&one, &diff, &[("/diff/file", json!("b")), ("/diff", json!("-"))]);
    let message = json!({ "info": { "id": "m", "role": "user" }, "parts": [{ "type": "text" }] });
    let patch = json!({ "diffs": [{ "patch": "+x" }], "diffCount": 1, "hasDiffs": true });
    only_as_it_is(
        MESSAGE,
        &message,
        &[("/info/summary", patch), ("/parts/0/type", json!("reasoning"))],
    );
}

#[test]
fn the_transcript_cache() {
    let scope =
        json!({ "transport": "local", "generation": 1, "directory": "/w", "sessionID": "s" });
    let record = |id: &str| {
        json!({
            "scope": scope,
            "messageID": id,
            "info": { "id": id },
            "parts": [{ "type": "text", "slim": true }],
            "partCompleteness": ["slim"],
            "completeness": "slim",
            "contentHash": "0a".repeat(32),
            "byteSize": 7,
            "lastAccessedAt": 9,
            "sortKey": { "created": 5, "messageID": id },
        })
    };
    let session = json!({
        "available": true,
        "scope": scope,
        "records": [record("a"), record("b")],
        "byteSize": 14,
    });
    only_as_it_is(
        "/api/openchamber/transcript-cache/session?includeReasoning=false",
        &session,
        &[
            ("/available", json!(false)),
            ("/scope/generation", json!("1")),
            ("/scope/sessionID", json!("t")),
            ("/records", json!({})),
            ("/records/0", record("c")),
            ("/records/1/info/id", json!("c")),
            ("/records/1/parts", json!([])),
            ("/records/1/parts/0/type", json!("reasoning")),
            ("/records/1/partCompleteness", json!(["full"])),
            ("/records/1/partCompleteness", json!("-")),
            ("/records/1/completeness", json!("full")),
            ("/records/1/contentHash", json!("")),
            ("/records/1/byteSize", json!(8)),
            ("/records/1/lastAccessedAt", json!(9.5)),
            ("/records/1/sortKey/messageID", json!("a")),
            ("/records/1/sortKey/created", json!(4)),
            ("/byteSize", json!("14")),
        ],
    );
    only_as_it_is(
        "/api/openchamber/transcript-cache/message?messageID=a",
        &json!({ "available": true, "record": record("a") }),
        &[("/record", json!(null)), ("/record", record("b")), ("/scope", scope.clone())],
    );
}

#[test]
fn errors_and_what_is_no_json() {
    assert!(passes(PAGE, 502, r#"{"error":"upstream"}"#));
    assert!(passes(PAGE, 404, r#"{"error":"session not found","code":"session_not_found"}"#));
    for bad in
        ["{}", r#"{"error":""}"#, r#"{"error":1}"#, r#"{"error":"x","records":[]}"#, "[]", ""]
    {
        assert!(!passes(PAGE, 502, bad), "{bad}");
    }
    assert!(!passes(PAGE, 200, r#"{"error":"upstream"}"#));
    assert!(!passes(PAGE, 200, "{"));
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "text/html".parse().unwrap());
    let told = Told { status: 200, headers: &headers, body: b"<html>" };
    let html = |target| {
        catch_unwind(AssertUnwindSafe(|| check(Asked { method: "GET", target }, told))).is_ok()
    };
    assert!(html("/") && !html(PAGE));
}
