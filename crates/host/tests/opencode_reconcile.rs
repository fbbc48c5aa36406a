//! Catching up with sessions of a real OpenCode server, while they are written and after all that
//! can befall them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use serde_json::{Value, json};
use support::{contract::ids, host::RunningHost};
use turnkeep_host::{Budgets, HostOptions, UpstreamOptions};
use turnkeep_log::json::Json;
use turnkeep_test_opencode::{LongSession, OpenCode, Options};
use turnkeep_turns::{Parts, Projection};

async fn host(server: &OpenCode, budgets: Budgets) -> RunningHost {
    let upstream = UpstreamOptions::new(server.base_url()).unwrap();
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.with_password(server.password().map(str::to_owned)));
    options.reconcile = budgets;
    RunningHost::start(options).await
}

/// What the server's whole list of a session is to look like in a round, old to new.
async fn expected(server: &OpenCode, session: &str) -> Vec<Value> {
    let list = server.full_list(session).await.unwrap();
    let full = Projection { parts: Parts::Full, reasoning: true };
    let rows = Json::parse(&list).unwrap().elements().unwrap();
    let project = |row| {
        let mut text = String::new();
        full.write(row, &mut text);
        serde_json::from_str(&text).unwrap()
    };
    rows.map(project).collect()
}

fn ids_of(rows: &[Value]) -> Vec<String> {
    rows.iter().map(|row| row["info"]["id"].as_str().unwrap().to_owned()).collect()
}

/// All records of a round, old to new.
fn records(pages: &[Value]) -> Vec<Value> {
    let pages = pages.iter().rev();
    pages.flat_map(|page| page["records"].as_array().unwrap().clone()).collect()
}

/// A round from this record on brings exactly what the server has, compared as values, since the
/// server spells one message in two ways.
async fn check_round(host: &RunningHost, session: &str, expected: &[Value], first: usize) {
    let anchor = expected[first]["info"]["id"].as_str().unwrap();
    let pages = host.round(session, anchor).await;
    let sent = records(&pages);
    assert_eq!(ids_of(&sent), ids_of(&expected[first..]), "from {first}");
    assert!(sent == expected[first..], "from {first}");
    let last = pages.last().unwrap();
    assert_eq!((&last["resetRequired"], &last["anchorFound"]), (&json!(false), &json!(true)));
    let newest = &expected.last().unwrap()["info"]["id"];
    assert_eq!(
        (&pages[0]["capturedHeadMessageID"], &last["latestHeadMessageID"]),
        (newest, newest)
    );
}

/// The ids on all pages of a session, old to new.
async fn page_ids(host: &RunningHost, session: &str) -> Vec<String> {
    ids_of(&host.records(session, 2).await)
}

/// Reads the session over and over until the turn that runs is over; what the rounds brought.
async fn read_while_written(
    host: &RunningHost,
    server: &OpenCode,
    session: &str,
    anchor: &str,
) -> Vec<Vec<String>> {
    let mut seen = Vec::new();
    let reading = async {
        loop {
            let (round, scrolled) =
                tokio::join!(host.round(session, anchor), page_ids(host, session));
            seen.push(ids_of(&records(&round)));
            seen.push(scrolled);
        }
    };
    tokio::select! {
        () = reading => {}
        idle = server.wait_until_idle(session) => idle.unwrap(),
    }
    seen
}

/// Each of these is a stretch of the whole without a gap, in its order.
fn check_stretches(seen: &[Vec<String>], whole: &[String]) {
    assert!(!seen.is_empty(), "something was read");
    for stretch in seen {
        let is_there = whole.windows(stretch.len()).any(|window| window == stretch);
        assert!(is_there, "{stretch:#?} of {whole:#?}");
    }
}

#[tokio::test]
async fn a_session_is_followed_through_all_that_befalls_it() {
    let mut server = OpenCode::start(Options::default()).await.unwrap();
    let host = host(&server, Budgets { records: 4, ..Budgets::default() }).await;
    let session = server.create_session().await.unwrap();
    server.prompt(&session, "Begin. #steps=2 #reason").await.unwrap();
    let first = ids_of(&expected(&server, &session).await)[0].clone();

    // Turns that are being written.
    server.prompt_async(&session, "Go on. #steps=6 #slow=20 #reason").await.unwrap();
    let seen = read_while_written(&host, &server, &session, &first).await;
    let now = expected(&server, &session).await;
    check_stretches(&seen, &ids_of(&now));
    for first in [0, 1, now.len() - 1] {
        check_round(&host, &session, &now, first).await;
    }

    // A turn that is broken off.
    server.prompt_async(&session, "Wait. #steps=0 #slow=200 #chunks=500").await.unwrap();
    let round = host.round(&session, &first).await;
    server.abort(&session).await.unwrap();
    server.wait_until_idle(&session).await.unwrap();
    let now = expected(&server, &session).await;
    check_stretches(&[ids_of(&records(&round))], &ids_of(&now));
    check_round(&host, &session, &now, 0).await;
    assert_eq!(page_ids(&host, &session).await, ids_of(&now));

    // A revert, and the prompt that makes it final: what a client held to go on with names messages
    // that are gone.
    let newest = host.page(&session, 1, None).await;
    let (cursor, gone) = (newest["cursor"].as_str().unwrap().to_owned(), ids(&newest)[0].clone());
    let begun = host.reconcile(&session, "anchor", &first).await;
    let (next, below) =
        (begun["continuation"].as_str().unwrap().to_owned(), ids(&begun)[0].clone());
    let order = ids_of(&now);
    let revert = json!({ "messageID": gone }).to_string();
    let reverted = server.post(&format!("/session/{session}/revert"), &revert).await.unwrap();
    assert_eq!(reverted.status, 200, "{}", reverted.body);
    check_round(&host, &session, &expected(&server, &session).await, 0).await;
    server.prompt(&session, "Go another way. #steps=1").await.unwrap();
    let now = expected(&server, &session).await;
    let left = ids_of(&now);
    assert!(!left.contains(&gone));
    let older_than = |id: &str| {
        let end = order.iter().position(|known| known == id).unwrap();
        order[..end].iter().filter(|id| left.contains(id)).cloned().collect::<Vec<_>>()
    };
    let page = host.page(&session, 10, Some(&cursor)).await;
    assert_eq!(ids(&page), older_than(&gone));
    let mut rest = vec![host.reconcile(&session, "continuation", &next).await];
    while let Some(next) = rest.last().unwrap()["continuation"].as_str() {
        let page = host.reconcile(&session, "continuation", next).await;
        rest.push(page);
    }
    assert_eq!(ids_of(&records(&rest)), older_than(&below));
    check_round(&host, &session, &now, 0).await;

    // A server that is killed in the middle of a turn.
    server.prompt_async(&session, "Wait. #steps=0 #slow=200 #chunks=500").await.unwrap();
    let begun = host.reconcile(&session, "anchor", &first).await;
    let next = begun["continuation"].as_str().unwrap().to_owned();
    server.kill();
    let message = format!("/api/session/{session}/message/{first}");
    let round = format!("/api/openchamber/sessions/{session}/messages/reconcile");
    let changes = format!("/api/openchamber/sessions/{session}/changes?messageID={first}");
    for path in [
        format!("{round}?anchor={first}"),
        format!("{round}?continuation={next}"),
        changes.clone(),
        format!("{changes}&file=a"),
        message,
    ] {
        let told = host.get(&path).await;
        let unavailable = (503, r#"{"error":"upstream unavailable"}"#);
        assert_eq!((told.status, told.body.as_str()), unavailable, "{path}");
    }
    server.restart().await.unwrap();
    let now = expected(&server, &session).await;
    let rest = host.reconcile(&session, "continuation", &next).await;
    let whole = ids_of(&now);
    check_stretches(&[ids(&rest), [ids(&rest), ids(&begun)].concat()], &whole);
    check_round(&host, &session, &now, 0).await;
    assert_eq!(page_ids(&host, &session).await, whole);

    // A message that the server cannot encode.
    let poison = json!({
        "messageID": "msg_ffffffffffff00000000000000",
        "noReply": true,
        "parts": [{ "type": "text", "text": "Answer in a form." }],
        "format": {
            "type": "json_schema",
            "schema": { "type": "object", "properties": { "a": { "type": "string" } } },
            "retryCount": 1,
        },
    });
    let _ = server.post(&format!("/session/{session}/message"), &poison.to_string()).await.unwrap();
    let list = server.get(&format!("/session/{session}/message")).await.unwrap();
    assert_eq!(list.status, 400, "the server's own list fails now: {}", list.body);
    let mut whole = whole;
    whole.push("msg_ffffffffffff00000000000000".to_owned());
    assert_eq!(page_ids(&host, &session).await, whole);
    assert_eq!(ids_of(&records(&host.round(&session, &first).await)), whole);
    // By itself it comes from the page that the server does send.
    let path = format!("/api/session/{session}/message/msg_ffffffffffff00000000000000");
    let message = host.get(&path).await;
    assert_eq!(message.status, 200, "{}", message.body);
    assert_eq!(message.json()["parts"][0]["text"], "Answer in a form.");
}

#[tokio::test]
async fn a_long_session_is_caught_up_with_from_anywhere() {
    let options = Options { password: Some("open sesame".to_owned()), ..Options::default() };
    let server = OpenCode::start(options).await.unwrap();
    let long = LongSession::new("long").messages(817).tool_output(20_000);
    let session = server.import(&long.to_json()).await.unwrap();
    let all = expected(&server, &session).await;
    assert_eq!(all.len(), 817);
    let patient = host(&server, Budgets { pages: 100, ..Budgets::default() }).await;
    let host = host(&server, Budgets::default()).await;
    for from_newest in [1, 5, 56, 143, 400] {
        check_round(&host, &session, &all, all.len() - from_newest).await;
    }
    // Twenty pages of half a megabyte do not reach the beginning; a hundred do.
    let oldest = all[0]["info"]["id"].as_str().unwrap();
    let given_up = host.round(&session, oldest).await;
    assert_eq!((given_up.len(), &given_up[19]["resetRequired"]), (20, &json!(true)));
    check_round(&patient, &session, &all, 0).await;
    let scrolled = ids_of(&host.records(&session, 10).await);
    assert_eq!(scrolled, ids_of(&all));

    // What its prompts changed.
    let list: Vec<Value> =
        serde_json::from_str(&server.full_list(&session).await.unwrap()).unwrap();
    let prompts = list.iter().filter(|row| row["info"]["role"] == "user");
    for prompt in prompts.step_by(15) {
        let (id, diff) = (&prompt["info"]["id"], &prompt["info"]["summary"]["diffs"][0]);
        let path = format!(
            "/api/openchamber/sessions/{session}/changes?messageID={}",
            id.as_str().unwrap()
        );
        let files = host.get(&path).await.json();
        assert_eq!(files["files"].as_array().unwrap().len(), 1);
        for key in ["file", "status", "additions", "deletions"] {
            assert_eq!(files["files"][0][key], diff[key], "{key}");
        }
        let one = host.get(&format!("{path}&file={}", diff["file"].as_str().unwrap())).await;
        assert_eq!(&one.json()["diff"], diff);
        let missing = host.get(&format!("{path}&file=nothing")).await;
        let told = r#"{"error":"change file not found","code":"change_not_found"}"#;
        assert_eq!((missing.status, missing.body.as_str()), (404, told));
    }
    let nobody = host.get("/api/openchamber/sessions/ses_nobody/messages/reconcile?anchor=a").await;
    let told = r#"{"error":"session not found","code":"session_not_found"}"#;
    assert_eq!((nobody.status, nobody.body.as_str()), (404, told));

    let mut wrong = HostOptions::default();
    wrong.upstream = Some(UpstreamOptions::new(server.base_url()).unwrap());
    let wrong = RunningHost::start(wrong).await;
    let base = format!("/api/openchamber/sessions/{session}");
    for path in [
        format!("{base}/messages/reconcile?anchor=a"),
        format!("{base}/changes?messageID=msg_1"),
        format!("{base}/changes?messageID=msg_1&file=a"),
    ] {
        let told = wrong.get(&path).await;
        assert_eq!((told.status, told.body.as_str()), (502, r#"{"error":"upstream"}"#), "{path}");
    }
}
