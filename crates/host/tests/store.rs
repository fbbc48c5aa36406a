//! Turn pages of stored sessions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use support::{
    contract::ids,
    host::RunningHost,
    logs::Logs,
    store::{TestStore, WatchedStore, golden, header, made, notice, prompt, turns},
    upstream::{ScriptedUpstream, list, rows},
};
use turnkeep_host::{HostOptions, TurnPageRequest};
use turnkeep_store::SessionStore;
use turnkeep_turns::{Fold, TurnQuery};

const GOLDEN: [&str; 10] = [
    "compaction-recovery",
    "error-finish",
    "packed-chunks",
    "parallel-tool-calls",
    "subagent-fork-child",
    "subagent-fork-parent",
    "text-turn",
    "todo-write",
    "tool-outcome-unknown",
    "web-goal-multi-turn",
];

fn options(store: &TestStore) -> HostOptions {
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    options
}

/// The ids of the records that the events fold to, old to new.
fn folded(id: &str, events: &[turnkeep_log::Event]) -> Vec<String> {
    let mut fold = Fold::new(&turnkeep_log::SessionId::new(id).unwrap());
    for event in events {
        fold.push(event);
    }
    let rows = fold.page(None, usize::MAX).rows;
    let id = |text: &str| -> String {
        let record: Value = serde_json::from_str(text).unwrap();
        record["info"]["id"].as_str().unwrap().to_owned()
    };
    rows.iter().map(|(_, json)| id(json.text())).collect()
}

#[tokio::test]
async fn real_sessions_of_another_writer_are_paged_without_gap_or_overlap() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    for name in GOLDEN {
        let (header, events) = golden(name);
        let id = store.add_golden(name).await;
        let expected = folded(header.id.as_str(), &events);
        for turns in [1, 3] {
            let pages = host.pages(&id, turns).await;
            let read: Vec<_> = pages.iter().rev().flat_map(ids).collect();
            assert_eq!(read, expected, "{name}, {turns} turns a page");
        }
    }
}

#[tokio::test]
async fn order_is_by_seq_where_times_go_backwards() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let events = turns(12);
    let id = store.add(header("backwards"), made(0, |at| 100_000 - at, &events)).await;
    let jumbled = store.add(header("jumbled"), made(0, |at| at * 7919 % 101, &events)).await;
    let expected = folded(&id, &made(0, |at| at, &events));
    for id in [id, jumbled] {
        let pages = host.pages(&id, 3).await;
        let read: Vec<_> = pages.iter().rev().flat_map(ids).collect();
        assert_eq!(read, expected, "{id}");
        assert_eq!(pages.len(), 4);
    }
}

#[tokio::test]
async fn a_session_without_any_prompt_is_one_page() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let events: Vec<_> = (0..30).map(|at| notice(&format!("n{at}"), "x")).collect();
    let id = store.add_made("no-prompt", &events).await;
    let page = host.page(&id, 3, None).await;
    assert_eq!(
        (ids(&page).len(), &page["turnCount"], &page["complete"]),
        (30, &json!(0), &json!(true))
    );

    let empty = store.add_made("nothing", &[("turn/start", json!({ "turn": 1 }))]).await;
    assert_eq!(host.page(&empty, 3, None).await["records"], json!([]));
}

#[tokio::test]
async fn a_long_turn_goes_on_behind_a_cursor() {
    // More rows than one request reads: an open page, and nothing is lost.
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let mut events = vec![prompt("first", "go")];
    events.extend((0..6000).map(|at| notice(&format!("n{at}"), "x")));
    let id = store.add_made("long-turn", &events).await;
    let pages = host.pages(&id, 3).await;
    assert_eq!(pages.len(), 2);
    let read: Vec<_> = pages.iter().rev().flat_map(ids).collect();
    assert_eq!(read.len(), 6001);
    assert_eq!(read[0], "first");
    assert_eq!(read[6000], "n5999");
}

#[tokio::test]
async fn a_dead_upstream_hides_no_stored_session() {
    let store = TestStore::new();
    let uuid = store.add_made("0b7e3d0a-5d8f-4c3c-9a43-0e3f0f6c4a11", &turns(7)).await;
    let like_theirs = store.add_made("ses_stored", &turns(5)).await;
    let backwards = made(0, |at| 100_000 - at, &turns(6));
    let backwards = store.add(header("backwards"), backwards).await;
    let notices: Vec<_> = (0..30).map(|at| notice(&format!("n{at}"), "x")).collect();
    let unprompted = store.add_made("no-prompt", &notices).await;
    let sessions = [uuid, like_theirs, backwards, unprompted];
    let pages = async |host: &RunningHost| {
        let mut pages = Vec::new();
        for id in &sessions {
            pages.push(host.pages(id, 2).await);
        }
        pages
    };
    let upstream_rows = rows(4);
    let upstream = ScriptedUpstream::start(move |request| {
        request.path.starts_with("/session/").then(|| list(&upstream_rows, request))
    })
    .await;
    let mut options = options(&store);
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;

    let alone = RunningHost::start(self::options(&store)).await;
    let expected = pages(&alone).await;
    assert_eq!(expected.iter().map(Vec::len).collect::<Vec<_>>(), [4, 3, 3, 1]);
    assert_eq!(pages(&host).await, expected);
    assert_eq!(host.records("ses_theirs", 3).await.len(), 12);
    assert!(
        upstream.requests().iter().all(|request| request.path == "/session/ses_theirs/message")
    );

    upstream.kill().await;
    assert_eq!(pages(&host).await, expected);
    let theirs = host.get("/api/openchamber/sessions/ses_theirs/messages").await;
    assert_eq!(theirs.status, 503);
}

#[tokio::test]
async fn an_id_that_nobody_holds_is_not_found() {
    let expected = r#"{"error":"session not found","code":"session_not_found"}"#;
    let upstream = ScriptedUpstream::start(|_| None).await;
    let store = TestStore::new();
    let mut with_upstream = options(&store);
    with_upstream.upstream = Some(upstream.options());
    for (options, ids) in [
        (options(&store), ["ses_nobody", "nobody", "..%2F.."]),
        (with_upstream, ["nobody", "Ses_nobody", "..%2Fses_"]),
        (HostOptions::default(), ["ses_nobody", "nobody", "%20"]),
    ] {
        let host = RunningHost::start(options).await;
        for id in ids {
            let answer = host.get(&format!("/api/openchamber/sessions/{id}/messages")).await;
            assert_eq!((answer.status, answer.body.as_str()), (404, expected), "{id}");
            let answer = host.get(&format!("/api/turnkeep/sessions/{id}")).await;
            assert_eq!((answer.status, answer.body.as_str()), (404, expected), "{id}");
        }
    }
    assert_eq!(
        upstream.requests().len(),
        0,
        "ids that cannot be the upstream's are not sent there"
    );
}

#[tokio::test]
async fn what_is_appended_is_seen_and_nothing_is_read_twice() {
    let store = TestStore::new();
    let id = store.add_made("growing", &turns(4)).await;
    let watched = WatchedStore::new(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&watched) as Arc<dyn SessionStore>);
    let host = RunningHost::start(options).await;
    assert_eq!(host.records(&id, 1).await.len(), 12);
    assert_eq!(watched.opened(), 1, "four pages, one read");

    let first = host.page(&id, 1, None).await;
    let cursor = first["cursor"].as_str().unwrap().to_owned();
    store.append(&id, made(20, |at| at, &[prompt("late", "one more")])).await;
    assert_eq!(ids(&host.page(&id, 1, None).await), ["late"]);
    assert_eq!(watched.opened(), 1, "the handle reads on");
    let older = host.page(&id, 1, Some(&cursor)).await;
    assert_eq!(ids(&older)[0], "prompt-3", "a cursor survives what is appended after it");
}

#[tokio::test]
async fn a_log_that_was_replaced_is_read_anew() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let id = store.add_made("same", &[prompt("one", "1"), prompt("old-two", "2")]).await;
    assert_eq!(ids(&host.page(&id, 3, None).await), ["one", "old-two"]);

    // Another log of the same header, longer than the first, takes its place.
    let other = TestStore::new();
    let events = [prompt("one", "1"), prompt("new-two", "2"), prompt("new-three", "3")];
    other.add_made("same", &events).await;
    std::fs::rename(other.log(&id), store.log(&id)).unwrap();
    assert_eq!(ids(&host.page(&id, 3, None).await), ["one", "new-two", "new-three"]);
}

#[tokio::test]
async fn cursors_of_another_kind_are_refused() {
    let store = TestStore::new();
    let id = store.add_made("s", &turns(2)).await;
    let host = RunningHost::start(options(&store)).await;
    let theirs = "eyJpZCI6Im1zZ18wMSIsInRpbWUiOjE3ODAwMDAwMDAwMDB9";
    let long = format!("oc1.{}", "a".repeat(8192));
    for cursor in ["garbage", "oc1.x", theirs, &long] {
        let answer =
            host.get(&format!("/api/openchamber/sessions/{id}/messages?before={cursor}")).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (400, r#"{"error":"invalid cursor"}"#),
            "{cursor}"
        );
    }
}

#[tokio::test]
async fn a_damaged_log_is_told_by_kind_and_id_alone() {
    let logs = Logs::start();
    let store = TestStore::new();
    let id = store.add_made("hurt", &[prompt("p", "canary-4711")]).await;
    let log = store.log(&id);
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() - 8;
    bytes[middle] ^= 0xff;
    std::fs::write(&log, bytes).unwrap();

    let host = RunningHost::start(options(&store)).await;
    let answer = host.get(&format!("/api/openchamber/sessions/{id}/messages")).await;
    let expected = r#"{"error":"session log is corrupt","code":"corrupt","session":"hurt"}"#;
    assert_eq!((answer.status, answer.body.as_str()), (422, expected));
    let known = host.get(&format!("/api/turnkeep/sessions/{id}")).await.json();
    assert_eq!(
        (&known["state"], &known["reason"]),
        (&json!("damaged"), &json!("session log is corrupt"))
    );

    let text = logs.text();
    let folder = store.folder.path().to_str().unwrap();
    let ours: Vec<_> = text.lines().filter(|line| line.contains("turnkeep_host")).collect();
    assert!(ours.iter().any(|line| line.contains("corrupt")), "{text}");
    assert!(
        ours.iter().all(|line| !line.contains(folder) && !line.contains("canary-4711")),
        "{text}"
    );
}

#[tokio::test]
async fn a_log_without_a_whole_header_is_damaged_and_not_missing() {
    let store = TestStore::new();
    let empty = store.add_made("empty", &[prompt("p", "x")]).await;
    let cut = store.add_made("ses_cut", &[prompt("p", "x")]).await;
    let whole = std::fs::read(store.log(&cut)).unwrap();
    std::fs::write(store.log(&cut), &whole[..9]).unwrap();
    std::fs::write(store.log(&empty), "").unwrap();
    let host = RunningHost::start(options(&store)).await;
    for id in [empty, cut] {
        let expected =
            format!(r#"{{"error":"session log is corrupt","code":"corrupt","session":"{id}"}}"#);
        let page = format!("/api/openchamber/sessions/{id}/messages");
        for path in
            [page, format!("/api/turnkeep/sessions/{id}"), format!("/api/session/{id}/message/p")]
        {
            let told = host.get(&path).await;
            assert_eq!((told.status, &told.body), (422, &expected), "{path}");
        }
    }
}

#[tokio::test]
async fn reasoning_can_be_left_out() {
    let store = TestStore::new();
    let id = store.add_golden("text-turn").await;
    let host = RunningHost::start(options(&store)).await;
    let path = format!("/api/openchamber/sessions/{id}/messages?includeReasoning=");
    let types = async |value: &str| -> Vec<String> {
        let page = host.get(&format!("{path}{value}")).await.json();
        let records = page["records"].as_array().unwrap().clone();
        let parts = records.iter().flat_map(|record| record["parts"].as_array().unwrap().clone());
        parts.map(|part| part["type"].as_str().unwrap().to_owned()).collect()
    };
    assert!(types("true").await.contains(&"reasoning".to_owned()));
    let without = types("false").await;
    assert!(!without.contains(&"reasoning".to_owned()) && without.contains(&"text".to_owned()));
}

#[tokio::test]
async fn the_library_gives_what_the_route_sends() {
    let store = TestStore::new();
    let id = store.add_golden("web-goal-multi-turn").await;
    let host = RunningHost::start(options(&store)).await;
    let request = TurnPageRequest {
        query: TurnQuery { turns: 3, width: 100, before: None },
        directory: None,
        include_reasoning: true,
    };
    let page = host.host.turn_page_json(&id, &request).await.unwrap();
    let sent = host.get(&format!("/api/openchamber/sessions/{id}/messages")).await;
    assert_eq!(page, sent.body);
    let failure = host.host.turn_page_json("nobody", &request).await.unwrap_err();
    assert_eq!((failure.kind(), failure.status()), ("session_not_found", 404));
}

#[tokio::test]
async fn a_bug_is_an_internal_error_and_no_more() {
    let logs = Logs::start();
    let store = TestStore::new();
    let mut watched = WatchedStore::new(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    Arc::get_mut(&mut watched).unwrap().panics = true;
    let mut options = HostOptions::default();
    options.store = Some(watched);
    let host = RunningHost::start(options).await;
    for path in [
        "/api/openchamber/sessions/s/messages",
        "/api/openchamber/sessions/s/messages/reconcile?anchor=m",
        "/api/session/s/message/m",
        "/api/openchamber/sessions/s/changes?messageID=m",
        "/api/openchamber/sessions/s/changes?messageID=m&file=a",
        "/api/turnkeep/sessions/s",
    ] {
        let answer = host.get(path).await;
        assert_eq!((answer.status, answer.body.as_str()), (500, r#"{"error":"internal error"}"#));
    }
    assert_eq!(host.get("/health").await.status, 200, "and the host goes on");
    assert!(logs.text().contains("panicked") && !logs.text().contains("canary-4711"));
}

#[tokio::test]
async fn a_host_that_stops_finishes_what_is_under_way() {
    let upstream = ScriptedUpstream::start(|request| {
        request.path.starts_with("/session/").then(|| list(&rows(1), request))
    })
    .await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    assert_eq!(host.get("/health").await.status, 200);
    tokio::time::timeout(Duration::from_secs(5), host.stop()).await.unwrap();
}
