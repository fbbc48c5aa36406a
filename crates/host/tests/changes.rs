//! What a message changed: the list of files, and the diff of one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use serde_json::{Value, json};
use support::{
    host::RunningHost,
    logs::Logs,
    store::{TestStore, turns},
    upstream::{Request, ScriptedUpstream, answer},
};
use turnkeep_host::HostOptions;
use turnkeep_store::SessionStore;

const PATH: &str = "/api/openchamber/sessions/ses_1/changes";

fn diffs() -> Value {
    json!([
        { "file": "src/a b.rs", "patch": "@@\n+é", "additions": 1, "deletions": 0, "status": "added" },
        { "file": "SRC/A b.rs", "patch": "-x", "additions": 0, "deletions": 1, "more": { "x": 1.0 } },
        { "file": "odd", "additions": "3", "deletions": -1, "status": 5 },
        { "path": "none" },
        { "file": "" },
        null,
    ])
}

/// An upstream that has one message with these diffs.
async fn upstream() -> (ScriptedUpstream, RunningHost) {
    let upstream = ScriptedUpstream::start(|request: &Request| match request.path.as_str() {
        "/session/ses_1/message/msg_1" => {
            let info = json!({ "id": "msg_1", "role": "user", "summary": { "diffs": diffs() } });
            Some(answer(200, &[], &json!({ "info": info, "parts": [] }).to_string()))
        }
        "/session/ses_1/diff" if request.query.contains("messageID=msg_1") => {
            Some(answer(200, &[], &diffs().to_string()))
        }
        "/session/ses_1/diff" => Some(answer(200, &[], "[]")),
        path if path.starts_with("/session/ses_1/message/") => {
            let body =
                json!({ "name": "NotFoundError", "data": { "message": "Message not found: x" } });
            Some(answer(404, &[], &body.to_string()))
        }
        _ => None,
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    (upstream, host)
}

#[tokio::test]
async fn files_are_listed_without_their_patches() {
    let (upstream, host) = upstream().await;
    let told = host.get(&format!("{PATH}?messageID=msg_1&directory=/no/such")).await;
    let files = concat!(
        r#"{"files":[{"file":"src/a b.rs","status":"added","additions":1,"deletions":0},"#,
        r#"{"file":"SRC/A b.rs","additions":0,"deletions":1},"#,
        r#"{"file":"odd","additions":0,"deletions":-1}]}"#,
    );
    assert_eq!((told.status, told.body.as_str()), (200, files));
    let [asked] = upstream.requests().try_into().unwrap();
    assert_eq!(
        (asked.path.as_str(), asked.query.as_str()),
        ("/session/ses_1/message/msg_1", "directory=%2Fno%2Fsuch")
    );
    // An empty `file` is none.
    assert_eq!(host.get(&format!("{PATH}?messageID=msg_1&file=")).await.body, files);
}

#[tokio::test]
async fn one_diff_comes_as_it_is() {
    let (upstream, host) = upstream().await;
    let expected = format!(r#"{{"diff":{}}}"#, diffs()[0]);
    for file in ["src/a%20b.rs", "src/a+b.rs", "src%2Fa b.rs".replace(' ', "%20").as_str()] {
        let told = host.get(&format!("{PATH}?messageID=msg_1&file={file}&directory=/no")).await;
        assert_eq!((told.status, &told.body), (200, &expected), "{file}");
    }
    let asked = &upstream.requests()[0];
    assert_eq!(
        (asked.path.as_str(), asked.query.as_str()),
        ("/session/ses_1/diff", "directory=%2Fno&messageID=msg_1")
    );
    let told = host.get(&format!("{PATH}?messageID=msg_1&file=SRC/A+b.rs")).await;
    assert_eq!(told.body, format!(r#"{{"diff":{}}}"#, diffs()[1]), "the case counts");
    for (message, file) in [("msg_1", "src/a"), ("msg_1", "src/a b.rs "), ("msg_2", "src/a b.rs")] {
        let (file, missing) = (
            file.replace(' ', "+"),
            r#"{"error":"change file not found","code":"change_not_found"}"#,
        );
        let told = host.get(&format!("{PATH}?messageID={message}&file={file}")).await;
        assert_eq!((told.status, told.body.as_str()), (404, missing), "{message} {file}");
    }
}

#[tokio::test]
async fn parameters_are_checked_in_order_with_exact_answers() {
    let (upstream, host) = upstream().await;
    let session = r#"{"error":"sessionID is required","code":"invalid_session"}"#;
    let message = r#"{"error":"messageID is required","code":"invalid_message"}"#;
    let file = r#"{"error":"file is invalid","code":"invalid_file"}"#;
    let (long, longest) = ("a".repeat(513), "a".repeat(4097));
    for (target, body) in [
        (format!("/api/openchamber/sessions/{long}/changes?file=%00"), session),
        (PATH.to_owned(), message),
        (format!("{PATH}?messageID="), message),
        (format!("{PATH}?messageID=a&messageID=a&file=%00"), message),
        (format!("{PATH}?messageID={long}"), message),
        (format!("{PATH}?messageID=msg_1&file=a&file=a"), file),
        (format!("{PATH}?messageID=msg_1&file=&file="), file),
        (format!("{PATH}?messageID=msg_1&file={longest}"), file),
        (format!("{PATH}?messageID=msg_1&file=a%0Ab"), file),
        (format!("{PATH}?messageID=msg_1&file=%7f"), file),
        (format!("{PATH}?messageID=msg_1&file=%00"), file),
    ] {
        let told = host.get(&target).await;
        assert_eq!((told.status, told.body.as_str()), (400, body), "{target}");
    }
    assert_eq!(upstream.requests().len(), 0);
    let told = host.get(&format!("{PATH}?messageID=msg_2&file=&directory=a&directory=b")).await;
    let missing = r#"{"error":"not found","code":"not_found"}"#;
    assert_eq!((told.status, told.body.as_str()), (404, missing));
    assert_eq!(upstream.requests()[0].query, "", "a repeated directory is none");
    // Bad escapes stand for themselves, and 4096 units are a path like any other.
    for file in ["%zz".to_owned(), "%C3%A9".repeat(4096)] {
        let told = host.get(&format!("{PATH}?messageID=msg_1&file={file}")).await;
        assert_eq!(told.status, 404, "{file}");
    }
}

#[tokio::test]
async fn changes_are_served_like_a_page() {
    let logs = Logs::start();
    let (_upstream, host) = upstream().await;
    for query in ["messageID=msg_1", "messageID=msg_1&file=odd"] {
        let path = format!("{PATH}?{query}");
        let whole = host.get(&path).await;
        let tag = whole.header("etag").unwrap();
        let again = host.request("GET", &path).header("if-none-match", tag).send().await.unwrap();
        assert_eq!(again.status, 304);
        let head = host.request("HEAD", &path).send().await.unwrap();
        assert_eq!((head.status, head.header("etag")), (200, Some(tag)));
        assert_eq!(head.header("content-length"), whole.header("content-length"));
        assert_eq!(host.request("PUT", &path).send().await.unwrap().status, 404);
    }
    let lines = logs.requests();
    assert!(lines[0].contains(r#"route="changes""#) && !lines[0].contains("has_file"), "{lines:?}");
    assert!(lines[4].contains(r#"message_id="msg_1""#) && lines[4].contains("has_file=true"));
    assert!(!logs.text().contains("odd"), "a path is not logged");
}

#[tokio::test]
async fn a_stored_session_names_no_changes_of_its_own() {
    let store = TestStore::new();
    store.add_made("ses_1", &turns(2)).await;
    let mut options = HostOptions::default();
    options.store = Some(std::sync::Arc::clone(&store.store) as std::sync::Arc<dyn SessionStore>);
    let host = RunningHost::start(options).await;
    let told = host.get(&format!("{PATH}?messageID=prompt-1")).await;
    assert_eq!((told.status, told.body.as_str()), (200, r#"{"files":[]}"#));
    let told = host.get(&format!("{PATH}?messageID=nothing")).await;
    assert_eq!(
        (told.status, told.body.as_str()),
        (404, r#"{"error":"not found","code":"not_found"}"#)
    );
    for message in ["prompt-1", "nothing"] {
        let told = host.get(&format!("{PATH}?messageID={message}&file=a")).await;
        let missing = r#"{"error":"change file not found","code":"change_not_found"}"#;
        assert_eq!((told.status, told.body.as_str()), (404, missing), "{message}");
    }
    let unknown = r#"{"error":"session not found","code":"session_not_found"}"#;
    for query in ["messageID=prompt-1", "messageID=prompt-1&file=a"] {
        let told = host.get(&format!("/api/openchamber/sessions/nobody/changes?{query}")).await;
        assert_eq!((told.status, told.body.as_str()), (404, unknown), "{query}");
    }
}
