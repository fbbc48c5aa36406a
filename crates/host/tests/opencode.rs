//! Turn pages in front of a real OpenCode server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use serde_json::{Value, json};
use support::host::RunningHost;
use turnkeep_host::{HostOptions, UpstreamOptions};
use turnkeep_log::json::Json;
use turnkeep_test_opencode::{LongSession, OpenCode, Options};
use turnkeep_turns::{Parts, Projection};

async fn host(server: &OpenCode, password: Option<&str>) -> RunningHost {
    let upstream = UpstreamOptions::new(server.base_url()).unwrap();
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.with_password(password.map(str::to_owned)));
    RunningHost::start(options).await
}

/// What the server's whole list of a session is to look like on turn pages, old to new.
async fn expected(server: &OpenCode, session: &str) -> Vec<Value> {
    let list = server.full_list(session).await.unwrap();
    let slim = Projection { parts: Parts::Slim, reasoning: true };
    let rows = Json::parse(&list).unwrap().elements().unwrap();
    let project = |row| {
        let mut text = String::new();
        slim.write(row, &mut text);
        serde_json::from_str(&text).unwrap()
    };
    rows.map(project).collect()
}

/// Pages through the session from the newest turn to the oldest: nothing may be missing, twice, or
/// changed on the way. Compared as values, since the server spells one message in two ways.
async fn check_pages(host: &RunningHost, server: &OpenCode, session: &str, turns: usize) -> usize {
    let expected = expected(server, session).await;
    let records = host.records(session, turns).await;
    let ids = |rows: &[Value]| -> Vec<_> {
        rows.iter().map(|row| row["info"]["id"].to_string()).collect()
    };
    assert_eq!(ids(&records), ids(&expected), "{turns} turns a page");
    for (record, expected) in records.iter().zip(&expected) {
        assert_eq!(record, expected);
    }
    expected.len()
}

#[tokio::test]
async fn sessions_are_paged_without_gap_overlap_or_loss() {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let host = host(&server, None).await;

    let session = server.create_session().await.unwrap();
    for turn in 0..9 {
        let prompt = format!("Look into part {turn}. #steps={} #reason", 3 + turn % 4);
        server.prompt(&session, &prompt).await.unwrap();
    }
    let rows = check_pages(&host, &server, &session, 3).await;
    assert!(rows >= 40, "{rows} messages");

    // Longer than one page of the server, and cut exactly where such a page ends.
    for messages in [100, 150, 1000] {
        let long = LongSession::new(format!("long{messages}")).messages(messages);
        let id = server.import(&long.to_json()).await.unwrap();
        for turns in [3, 10] {
            assert_eq!(check_pages(&host, &server, &id, turns).await, messages);
        }
    }
}

#[tokio::test]
async fn every_message_can_be_had_whole() {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let host = host(&server, None).await;
    let session = server.create_session().await.unwrap();
    server.prompt(&session, "Look around. #steps=3 #reason").await.unwrap();
    let list = server.full_list(&session).await.unwrap();
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for record in list {
        let id = record["info"]["id"].as_str().unwrap();
        let whole = host.get(&format!("/api/session/{session}/message/{id}")).await.json();
        assert_eq!(whole["parts"], record["parts"], "{id}");
        for part in whole["parts"].as_array().unwrap() {
            kinds.insert(part["type"].as_str().unwrap().to_owned());
        }
    }
    assert!(kinds.contains("tool") && kinds.contains("reasoning"), "{kinds:?}");
}

#[tokio::test]
async fn what_the_server_answers_is_told_apart() {
    let mut server = OpenCode::start(Options::default()).await.unwrap();
    let host = host(&server, None).await;
    let session = server.create_session().await.unwrap();
    let page = |id: &str, query: &str| format!("/api/openchamber/sessions/{id}/messages{query}");

    let empty = host.get(&page(&session, "")).await;
    let body =
        r#"{"records":[],"turnCount":0,"cursor":null,"complete":true,"partsProjection":"slim-v1"}"#;
    assert_eq!((empty.status, empty.body.as_str()), (200, body));

    let not_found = (404, r#"{"error":"session not found","code":"session_not_found"}"#);
    for id in ["ses_nobody", "nobody"] {
        let unknown = host.get(&page(id, "")).await;
        assert_eq!((unknown.status, unknown.body.as_str()), not_found, "{id}");
    }
    let unknown = host.get("/api/turnkeep/sessions/ses_nobody").await;
    assert_eq!((unknown.status, unknown.body.as_str()), not_found);

    let message = async |session: &str| {
        let answer = host.get(&format!("/api/session/{session}/message/msg_nothing")).await;
        let other = host.get(&format!("/api/session/{session}/message/nothing")).await;
        assert_eq!((other.status, &other.body), (answer.status, &answer.body));
        (answer.status, answer.body)
    };
    let no_message = (404, r#"{"error":"not found","code":"not_found"}"#.to_owned());
    assert_eq!(message(&session).await, no_message);
    assert_eq!(message("ses_nobody").await, (404, not_found.1.to_owned()));
    assert_eq!(message("nobody").await, (404, not_found.1.to_owned()));

    let cursor = host.get(&page(&session, "?before=garbage")).await;
    assert_eq!((cursor.status, cursor.body.as_str()), (400, r#"{"error":"invalid cursor"}"#));

    server.prompt(&session, "Say hello. #steps=0").await.unwrap();
    let before = host.get(&page(&session, "")).await;
    assert_eq!(before.status, 200);
    server.kill();
    let unavailable = (503, r#"{"error":"upstream unavailable"}"#);
    let down = host.get(&page(&session, "")).await;
    assert_eq!((down.status, down.body.as_str()), unavailable);
    let listed = host.get("/api/turnkeep/sessions").await.json();
    assert_eq!((&listed["sessions"], &listed["upstream"]), (&json!([]), &json!("unavailable")));
    server.restart().await.unwrap();
    assert_eq!(host.get(&page(&session, "")).await.body, before.body);
}

#[tokio::test]
async fn a_password_is_needed_and_used() {
    let options = Options { password: Some("open sesame".to_owned()), ..Options::default() };
    let server = OpenCode::start(options).await.unwrap();
    let session = server.create_session().await.unwrap();
    server.prompt(&session, "Say hello. #steps=1").await.unwrap();
    let right = host(&server, server.password()).await;
    assert!(check_pages(&right, &server, &session, 3).await >= 3);

    let path = format!("/api/openchamber/sessions/{session}/messages");
    for password in [None, Some("wrong")] {
        let host = host(&server, password).await;
        let answer = host.get(&path).await;
        assert_eq!((answer.status, answer.body.as_str()), (502, r#"{"error":"upstream"}"#));
        let listed = host.get("/api/turnkeep/sessions").await.json();
        assert_eq!(listed["upstream"], "login_refused");
    }
}

#[tokio::test]
async fn sessions_are_listed_and_told_apart() {
    let server = OpenCode::start(Options::default()).await.unwrap();
    let host = host(&server, None).await;
    let blank = server.create_session().await.unwrap();
    let spoken = server.create_session().await.unwrap();
    server.prompt(&spoken, "Say hello. #steps=1").await.unwrap();
    let made = server.post("/api/session", "{}").await.unwrap();
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let newer = made["data"]["id"].as_str().unwrap().to_owned();
    let prompt = json!({ "prompt": { "text": "Say hello." }, "resume": false });
    server.post(&format!("/api/session/{newer}/prompt"), &prompt.to_string()).await.unwrap();

    let mut listed = Vec::new();
    let mut cursor = String::new();
    loop {
        let page =
            host.get(&format!("/api/turnkeep/sessions?limit=1&cursor={cursor}")).await.json();
        listed.extend(page["sessions"].as_array().unwrap().clone());
        match page["cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    let find = |id: &str| listed.iter().find(|session| session["id"] == *id).unwrap();
    assert_eq!(listed.len(), 3);
    for (id, state, is_blank) in [(&blank, "ok", true), (&spoken, "ok", false)] {
        let session = find(id);
        assert_eq!(
            (&session["state"], &session["blank"]),
            (&json!(state), &json!(is_blank)),
            "{id}"
        );
        assert_eq!(session["cwd"], json!(server.project().to_str().unwrap()));
        assert_eq!(&host.get(&format!("/api/turnkeep/sessions/{id}")).await.json(), session);
    }
    assert_eq!(find(&spoken)["title"], "Say hello.");
    // A prompt that is only admitted is in no list yet; one that was run makes the session foreign.
    let prompt = json!({ "prompt": { "text": "Say hello again." } });
    let model = json!({ "model": { "id": "scripted", "providerID": "scripted" } });
    let _ = server.post(&format!("/api/session/{newer}/model"), &model.to_string()).await.unwrap();
    server.post(&format!("/api/session/{newer}/prompt"), &prompt.to_string()).await.unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let known = host.get(&format!("/api/turnkeep/sessions/{newer}")).await.json();
        if known["state"] == "foreign" {
            assert!(known["reason"].is_string());
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{known}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
