//! Messages by themselves: what a turn page shows by reference, whole.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use support::{
    host::RunningHost,
    logs::Logs,
    store::{TestStore, golden, turns},
    upstream::{Act, Request, ScriptedUpstream, answer, list, response},
};
use turnkeep_host::HostOptions;
use turnkeep_store::SessionStore;
use turnkeep_turns::Fold;

/// In every body the upstream sends, and never in a log line or an error.
const CANARY: &str = "canary-4711";

const MESSAGE: &str = "/api/session/ses_1/message/msg_1";

async fn stored() -> (TestStore, RunningHost) {
    let store = TestStore::new();
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    let host = RunningHost::start(options).await;
    (store, host)
}

async fn upstream(
    act: impl Fn(&Request) -> Act + Send + Sync + 'static,
) -> (ScriptedUpstream, RunningHost) {
    let script = move |request: &Request| (request.path != "/global/health").then(|| act(request));
    let upstream = ScriptedUpstream::start(script).await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.page_deadline = Duration::from_millis(400);
    let host = RunningHost::start(options).await;
    (upstream, host)
}

#[tokio::test]
async fn every_stored_record_can_be_had_whole() {
    let (store, host) = stored().await;
    for name in ["parallel-tool-calls", "error-finish", "compaction-recovery"] {
        let (header, events) = golden(name);
        let id = store.add_golden(name).await;
        let mut fold = Fold::new(&header.id);
        for event in &events {
            fold.push(event);
        }
        for (_, row) in fold.page(None, usize::MAX).rows {
            let record: Value = serde_json::from_str(row.text()).unwrap();
            let message = record["info"]["id"].as_str().unwrap();
            let whole = host.get(&format!("/api/session/{id}/message/{message}")).await;
            assert_eq!((whole.status, whole.body.as_str()), (200, &**row.text()), "{message}");
            assert_eq!(whole.header("content-type"), Some("application/json; charset=utf-8"));
        }
    }
}

#[tokio::test]
async fn reasoning_can_be_left_out() {
    let (store, host) = stored().await;
    let id = store.add_golden("text-turn").await;
    let page = host.page(&id, 3, None).await;
    let thinks = |record: &&Value| {
        record["parts"].as_array().unwrap().iter().any(|part| part["type"] == "reasoning")
    };
    let record = page["records"].as_array().unwrap().iter().find(thinks).unwrap();
    let path = format!("/api/session/{id}/message/{}", record["info"]["id"].as_str().unwrap());
    let with = host.get(&path).await.json();
    let without = host.get(&format!("{path}?includeReasoning=false")).await.json();
    assert!(with["parts"].as_array().unwrap().iter().any(|part| part["text"].is_string()));
    assert!(thinks(&&with) && !thinks(&&without));
    assert_eq!(with["info"], without["info"]);
}

#[tokio::test]
async fn what_is_missing_is_told_apart() {
    let (store, host) = stored().await;
    let id = store.add_made("s", &turns(1)).await;
    let long = "x".repeat(513);
    let invalid_session = r#"{"error":"sessionID is required","code":"invalid_session"}"#;
    let invalid_message = r#"{"error":"messageID is required","code":"invalid_message"}"#;
    for (path, status, body) in [
        (
            format!("/api/session/{id}/message/nope"),
            404,
            r#"{"error":"not found","code":"not_found"}"#,
        ),
        (
            "/api/session/nobody/message/prompt-1".to_owned(),
            404,
            r#"{"error":"session not found","code":"session_not_found"}"#,
        ),
        (format!("/api/session/{long}/message/{long}"), 400, invalid_session),
        (format!("/api/session/{id}/message/{long}"), 400, invalid_message),
        (format!("/api/session/{id}/message/%zz"), 400, r#"{"error":"malformed path"}"#),
    ] {
        let told = host.get(&path).await;
        assert_eq!((told.status, told.body.as_str()), (status, body), "{path}");
    }
    // 512 units of two bytes each are an id like any other.
    let longest = "%C3%A9".repeat(512);
    assert_eq!(host.get(&format!("/api/session/{id}/message/{longest}")).await.status, 404);
    let other = host.request("DELETE", &format!("/api/session/{id}/message/prompt-1"));
    assert_eq!(other.send().await.unwrap().status, 409, "a stored session is only read here");
}

#[tokio::test]
async fn a_message_is_served_like_a_page() {
    let logs = Logs::start();
    let (store, host) = stored().await;
    let id = store.add_made("s", &turns(1)).await;
    let path = format!("/api/session/{id}/message/prompt-1");
    let whole = host.get(&path).await;
    let tag = whole.header("etag").unwrap();
    let again = host.request("GET", &path).header("if-none-match", tag).send().await.unwrap();
    assert_eq!(again.status, 304);
    let head = host.request("HEAD", &path).send().await.unwrap();
    assert_eq!((head.status, head.header("etag")), (200, Some(tag)));
    let lines = logs.requests();
    assert_eq!(lines.len(), 3);
    for part in
        [r#"route="message""#, r#"session="s""#, r#"message_id="prompt-1""#, r#"source="store""#]
    {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
}

#[tokio::test]
async fn the_upstream_is_asked_for_exactly_this_message() {
    let full = json!({
        "info": {
            "id": "msg_1",
            "summary": { "diffs": [{ "file": "a", "patch": "+x", "additions": 1, "deletions": 0 }] },
        },
        "parts": [{ "type": "reasoning", "text": "hm" }, { "type": "tool", "state": { "output": "long" } }],
    });
    let body = full.to_string();
    let (upstream, host) = upstream(move |_| answer(200, &[], &body)).await;
    let told = host.get("/api/session/ses_1/message/msg%2F1?directory=/no/such&x=1").await.json();
    let [asked] = upstream.requests().try_into().unwrap();
    assert_eq!(asked.path, "/session/ses_1/message/msg%2F1");
    assert_eq!(asked.query, "directory=%2Fno%2Fsuch");
    assert_eq!(told["parts"], full["parts"]);
    let summary = json!({
        "diffs": [{ "file": "a", "additions": 1, "deletions": 0 }], "diffCount": 1, "hasDiffs": true,
    });
    assert_eq!(told["info"]["summary"], summary);
    let told = host.get(&format!("{MESSAGE}?includeReasoning=false")).await.json();
    assert_eq!(told["parts"], json!([full["parts"][1]]));
    assert_eq!(upstream.requests()[1].query, "", "what is left out is left out here");
    // The server has no message of such an id, and would call it a mistake to ask.
    for id in ["1", "prompt-1", "unreadable:ses_2"] {
        let path = format!("/api/session/ses_1/message/{id}");
        assert_eq!(host.get(&path).await.status, 404, "{id}");
    }
    let asked = upstream.requests();
    assert!(asked[2..].iter().all(|request| request.path == "/session/ses_1/message"), "{asked:?}");
}

/// Three messages of one turn. The server can encode all but `poisoned`, which it does for a
/// message by itself and for a page that has no cursor.
async fn poisoned(poisoned: &'static str) -> (ScriptedUpstream, RunningHost) {
    let row = |id: &str, role: &str, time: u64| {
        let info = json!({ "id": id, "role": role, "time": { "created": time },
            "summary": { "diffs": [{ "file": id, "patch": "+x", "additions": 1, "deletions": 0 }] } });
        json!({ "info": info, "parts": [{ "type": "reasoning", "text": "hm" }] })
    };
    let rows = vec![row("msg_1", "user", 1), row("msg_2", "user", 2), row("msg_3", "user", 3)];
    let unencodable =
        json!({ "name": "BadRequest", "data": { "message": CANARY, "kind": "Body" } });
    let history = json!([{ "type": "message.updated.1", "data": {
        "sessionID": "ses_1", "info": { "id": "msg_1", "time": { "created": 1 } } } }]);
    upstream(move |request| {
        if request.path == "/sync/history" {
            return answer(200, &[], &history.to_string());
        }
        let page = (request.path == "/session/ses_1/message").then(|| list(&rows, request));
        match page {
            Some(Act::Send(bytes)) => {
                let text = String::from_utf8_lossy(&bytes);
                if text.contains("x-next-cursor") || !text.contains(poisoned) {
                    return Act::Send(bytes);
                }
            }
            Some(act) => return act,
            None => {}
        }
        answer(400, &[], &unencodable.to_string())
    })
    .await
}

#[tokio::test]
async fn a_message_that_cannot_be_encoded_comes_from_a_page() {
    let (_upstream, host) = poisoned("msg_2").await;
    let path = "/api/session/ses_1/message/msg_2";
    let told = host.get(path).await;
    assert_eq!(told.status, 200, "{}", told.body);
    let told = told.json();
    assert_eq!(told["info"]["id"], "msg_2");
    assert_eq!(
        told["info"]["summary"]["diffs"],
        json!([{ "file": "msg_2", "additions": 1, "deletions": 0 }])
    );
    assert_eq!(told["parts"], json!([{ "type": "reasoning", "text": "hm" }]));
    let told = host.get(&format!("{path}?includeReasoning=false")).await.json();
    assert_eq!(told["parts"], json!([]));
    let changes = host.get("/api/openchamber/sessions/ses_1/changes?messageID=msg_2").await;
    assert_eq!(changes.body, r#"{"files":[{"file":"msg_2","additions":1,"deletions":0}]}"#);
    // One that the server refuses in this way and lists nowhere.
    let lost = host.get("/api/session/ses_1/message/msg_9").await;
    assert_eq!((lost.status, lost.body.as_str()), (502, r#"{"error":"upstream"}"#));
}

#[tokio::test]
async fn the_oldest_message_comes_as_its_stub_when_it_cannot_be_encoded() {
    let (_upstream, host) = poisoned("msg_1").await;
    let told = host.get(MESSAGE).await.json();
    assert_eq!(told["info"]["id"], "msg_1");
    assert_eq!(told["info"]["error"]["name"], "TurnkeepUnreadable");
    assert_eq!(told["parts"], json!([]));
}

#[tokio::test]
async fn what_a_page_shows_in_place_of_a_message_can_be_had_too() {
    // Nothing tells which message it is.
    let refusal = json!({ "name": "BadRequest", "data": { "message": CANARY, "kind": "Body" } });
    let (_upstream, host) = upstream(move |request| match request.path.as_str() {
        "/sync/history" => answer(500, &[], "{}"),
        _ => answer(400, &[], &refusal.to_string()),
    })
    .await;
    let page = host.page("ses_1", 3, None).await;
    let id = page["records"][0]["info"]["id"].as_str().unwrap();
    assert_eq!(id, "unreadable:ses_1");
    let told = host.get(&format!("/api/session/ses_1/message/{id}")).await;
    assert_eq!((told.status, told.json()), (200, page["records"][0].clone()));
    let changes = format!("/api/openchamber/sessions/ses_1/changes?messageID={id}");
    assert_eq!(host.get(&changes).await.body, r#"{"files":[]}"#);
    let change = host.get(&format!("{changes}&file=a")).await;
    assert_eq!(change.body, r#"{"error":"change file not found","code":"change_not_found"}"#);
}

#[tokio::test]
async fn a_message_of_an_unknown_session_is_told_from_an_unknown_message() {
    // To the server, a session that it does not know is one without the message or any change.
    let refused = |text: &str| json!({ "name": "NotFoundError", "data": { "message": format!("{text}: {CANARY}") } });
    let (no_session, no_message) = (refused("Session not found"), refused("Message not found"));
    let (upstream, host) = upstream(move |request| match request.path.as_str() {
        "/session/ses_1/message" => answer(200, &[], "[]"),
        path if path.ends_with("/diff") => answer(200, &[], "[]"),
        path if path.contains("/message/") => answer(404, &[], &no_message.to_string()),
        _ => answer(404, &[], &no_session.to_string()),
    })
    .await;
    let session = r#"{"error":"session not found","code":"session_not_found"}"#;
    let message = r#"{"error":"not found","code":"not_found"}"#;
    let change = r#"{"error":"change file not found","code":"change_not_found"}"#;
    for (id, message, change) in [("ses_1", message, change), ("ses_2", session, session)] {
        for (path, body) in [
            (format!("/api/session/{id}/message/msg_1"), message),
            (format!("/api/openchamber/sessions/{id}/changes?messageID=msg_1"), message),
            (format!("/api/openchamber/sessions/{id}/changes?messageID=msg_1&file=a"), change),
        ] {
            let told = host.get(&path).await;
            assert_eq!((told.status, told.body.as_str()), (404, body), "{path}");
        }
    }
    let asked = upstream.requests();
    let probes: Vec<_> = asked.iter().filter(|request| request.query == "limit=1").collect();
    assert_eq!((asked.len(), probes.len()), (12, 6), "one look at the session for each miss");
}

#[tokio::test]
async fn trouble_of_the_upstream_is_told_apart() {
    let not_found = |text: &str| {
        let body =
            json!({ "name": "NotFoundError", "data": { "message": format!("{text}: {CANARY}") } });
        answer(404, &[], &body.to_string())
    };
    let upstream_failed = (502, r#"{"error":"upstream"}"#);
    let plain = [("content-type", "text/plain")];
    for (act, told) in [
        (not_found("Message not found"), (404, r#"{"error":"not found","code":"not_found"}"#)),
        (
            not_found("Session not found"),
            (404, r#"{"error":"session not found","code":"session_not_found"}"#),
        ),
        (answer(404, &[], &format!("\"{CANARY}\"")), upstream_failed),
        (answer(200, &[], ""), upstream_failed),
        (Act::Send(response(204, &[], "")), upstream_failed),
        (answer(200, &[], &format!("[\"{CANARY}\"]")), upstream_failed),
        (answer(200, &[], CANARY), upstream_failed),
        (Act::Send(response(200, &plain, CANARY)), upstream_failed),
        (answer(401, &[], CANARY), upstream_failed),
        (answer(500, &[], CANARY), upstream_failed),
        (answer(503, &[], CANARY), (503, r#"{"error":"upstream unavailable"}"#)),
        (Act::Stall, (504, r#"{"error":"upstream timeout"}"#)),
    ] {
        let logs = Logs::start();
        let script = act.clone();
        let (_upstream, host) = upstream(move |_| script.clone()).await;
        let answer = host.get(MESSAGE).await;
        assert_eq!((answer.status, answer.body.as_str()), told, "{act:?}");
        assert!(!logs.text().contains(CANARY), "{}", logs.text());
        assert_eq!(logs.requests().len(), 1);
    }
}
