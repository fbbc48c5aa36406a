//! The list of sessions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant, UNIX_EPOCH},
};

use serde_json::{Value, json};
use support::{
    host::RunningHost,
    store::{TestStore, WatchedStore, made, prompt, turns},
    upstream::{Act, Request, ScriptedUpstream, answer},
};
use turnkeep_host::HostOptions;
use turnkeep_log::{SessionHeader, SessionId};
use turnkeep_store::{
    Cancel, SessionStore,
    cold::BlankGates,
    memory::{Disk, MemoryStore},
};

fn options(store: &TestStore, upstream: Option<&ScriptedUpstream>) -> HostOptions {
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    options.upstream = upstream.map(ScriptedUpstream::options);
    options
}

/// Stores a session whose log last changed at this time.
async fn add_at(store: &TestStore, id: &str, ms: u64) {
    store.add_made(id, &turns(60)).await;
    touch(store, id, ms);
}

fn touch(store: &TestStore, id: &str, ms: u64) {
    let time = UNIX_EPOCH + Duration::from_millis(ms);
    let log = fs::File::options().write(true).open(store.log(id)).unwrap();
    log.set_modified(time).unwrap();
}

/// A session of the upstream as its lists have it.
fn served(id: &str, updated: u64) -> Value {
    json!({
        "id": id,
        "slug": "s",
        "projectID": "p",
        "directory": "/work/demo",
        "title": format!("title of {id}"),
        "version": "1",
        "summary": { "additions": 0, "deletions": 0, "files": 0 },
        "time": { "created": updated - 5, "updated": updated },
    })
}

/// Answers lists of these sessions, newest first, as OpenCode does.
fn lists(sessions: Vec<Value>) -> impl Fn(&Request) -> Option<Act> + Send + Sync {
    move |request| {
        let parameter = |name: &str| {
            let mut pairs = request.query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<u64>().ok())
        };
        let updated = |session: &Value| session["time"]["updated"].as_u64().unwrap();
        match request.path.split('/').collect::<Vec<_>>().as_slice() {
            ["", "experimental", "session"] => {
                let before = parameter("cursor").unwrap_or(u64::MAX);
                let older = sessions.iter().filter(|session| updated(session) < before);
                let limit = usize::try_from(parameter("limit").unwrap()).unwrap();
                let page: Vec<_> = older.take(limit).cloned().collect();
                Some(answer(200, &[], &Value::from(page).to_string()))
            }
            ["", "session", id] => {
                let known = sessions.iter().find(|session| session["id"] == *id)?;
                Some(answer(200, &[], &known.to_string()))
            }
            _ => None,
        }
    }
}

/// Every session of the list, page by page.
async fn walk(host: &RunningHost, query: &str, limit: usize) -> Vec<Value> {
    let mut sessions = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/turnkeep/sessions?limit={limit}&cursor={cursor}&{query}");
        let answer = host.get(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let page = answer.json();
        let listed = page["sessions"].as_array().unwrap();
        assert!(listed.len() <= limit);
        sessions.extend(listed.iter().cloned());
        match page["cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return sessions,
        }
        assert!(sessions.len() < 1000, "the list ends");
    }
}

fn ids(sessions: &[Value]) -> Vec<&str> {
    sessions.iter().map(|session| session["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn both_halves_make_one_list_at_any_page_size() {
    let store = TestStore::new();
    for (id, ms) in [("a", 9_000), ("b", 7_000), ("c", 5_000), ("d", 3_000)] {
        add_at(&store, id, ms).await;
    }
    let theirs = [("ses_1", 8_000), ("ses_2", 7_500), ("ses_3", 4_000), ("ses_4", 1_000)];
    let mut theirs = theirs.map(|(id, updated)| served(id, updated)).to_vec();
    // One that cannot be made out hides no other.
    theirs.insert(1, json!({ "id": 7, "time": { "updated": 7_900 } }));
    let upstream = ScriptedUpstream::start(lists(theirs)).await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    let expected = ["a", "ses_1", "ses_2", "b", "c", "ses_3", "d", "ses_4"];
    for limit in [1, 2, 3, 5, 50] {
        assert_eq!(ids(&walk(&host, "", limit).await), expected, "{limit} a page");
    }
}

#[tokio::test]
async fn sessions_of_one_time_are_all_listed_once() {
    let store = TestStore::new();
    for id in ["a", "b", "c"] {
        add_at(&store, id, 5_000).await;
    }
    let theirs = ["ses_3", "ses_1", "ses_2"].map(|id| served(id, 5_000)).to_vec();
    let upstream = ScriptedUpstream::start(lists(theirs)).await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    for limit in [1, 2, 4] {
        let mut listed = walk(&host, "", limit).await;
        listed.sort_by_key(|session| session["id"].to_string());
        assert_eq!(ids(&listed), ["a", "b", "c", "ses_1", "ses_2", "ses_3"], "{limit} a page");
    }
}

#[tokio::test]
async fn a_session_is_described_in_full() {
    let store = TestStore::new();
    add_at(&store, "stored", 9_000).await;
    let mut child = served("ses_1", 8_000);
    child["parentID"] = json!("ses_0");
    let upstream = ScriptedUpstream::start(lists(vec![child])).await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    let page = host.get("/api/turnkeep/sessions").await.json();
    let stored = &page["sessions"][0];
    let size = fs::metadata(store.log("stored")).unwrap().len();
    let revision = stored["revision"].as_str().unwrap();
    assert!(!revision.is_empty());
    let expected = json!({
        "id": "stored",
        "source": "store",
        "title": null,
        "cwd": "/work/demo",
        "createdAt": 1,
        "updatedAt": 1299,
        "lastPromptAt": 1296,
        "blank": false,
        "eventCount": 300,
        "sizeBytes": size,
        "revision": revision,
        "state": "ok",
    });
    assert_eq!(stored, &expected);
    let expected = json!({
        "id": "ses_1",
        "source": "upstream",
        "title": "title of ses_1",
        "cwd": "/work/demo",
        "createdAt": 7995,
        "updatedAt": 8000,
        "lastPromptAt": null,
        "blank": false,
        "revision": "8000",
        "state": "ok",
        "parentID": "ses_0",
    });
    assert_eq!(page["sessions"][1], expected);
    assert_eq!(host.get("/api/turnkeep/sessions/ses_1").await.json(), expected);
    assert_eq!((&page["cursor"], &page["upstream"]), (&Value::Null, &json!("ok")));
}

#[tokio::test]
async fn a_cold_list_reads_no_log_and_a_look_at_one_session_does() {
    let store = TestStore::new();
    let mut events = turns(60);
    events.push(("session/title", json!({ "title": "About turns" })));
    store.add_made("large", &events).await;
    let watched = WatchedStore::new(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&watched) as Arc<dyn SessionStore>);
    options.listing_probe.max_bytes = 400;
    let host = RunningHost::start(options).await;
    let indexed = walk(&host, "", 50).await.remove(0);
    assert_eq!((&indexed["title"], &indexed["blank"]), (&json!("About turns"), &json!(false)));
    assert_eq!((&indexed["lastPromptAt"], &indexed["eventCount"]), (&json!(1296), &json!(301)));
    fs::remove_file(store.log("large").with_file_name("turnkeep.idx")).unwrap();
    let unknown = walk(&host, "", 50).await.remove(0);
    assert_eq!((&unknown["title"], &unknown["blank"]), (&Value::Null, &json!(false)));
    assert_eq!((&unknown["lastPromptAt"], unknown.get("eventCount")), (&Value::Null, None));
    assert_eq!(watched.opened(), 0);

    let known = host.get("/api/turnkeep/sessions/large").await.json();
    assert_eq!((&known["title"], &known["blank"]), (&json!("About turns"), &json!(false)));
    assert_eq!(known["lastPromptAt"], 1000 + 59 * 5 + 1);
    assert_eq!(walk(&host, "", 50).await, [known], "what is known is listed from then on");
    assert_eq!(watched.opened(), 1);

    let title = ("session/title", json!({ "title": "Tiny" }));
    store.add_made("tiny", &[title]).await;
    let tiny = &walk(&host, "q=tiny", 50).await[0];
    assert_eq!(
        (&tiny["title"], &tiny["blank"]),
        (&json!("Tiny"), &json!(true)),
        "small ones are read"
    );
}

#[tokio::test]
async fn the_list_can_be_narrowed() {
    let store = TestStore::new();
    add_at(&store, "Alpha", 9_000).await;
    add_at(&store, "beta", 8_000).await;
    add_at(&store, "broken", 7_000).await;
    let log = store.log("broken");
    fs::write(&log, b"not a log").unwrap();
    touch(&store, "broken", 7_000);
    let upstream = ScriptedUpstream::start(lists(vec![served("ses_1", 8_500)])).await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    for (query, expected) in [
        ("", vec!["Alpha", "ses_1", "beta", "broken"]),
        ("q=ALPHA", vec!["Alpha"]),
        ("q=title+of", vec!["ses_1"]),
        ("q=/work/de", vec!["Alpha", "ses_1", "beta"]),
        ("q=nothing", vec![]),
        ("cwd=/work/demo", vec!["Alpha", "ses_1", "beta"]),
        ("cwd=/work", vec![]),
        ("state=damaged", vec!["broken"]),
        ("state=ok", vec!["Alpha", "ses_1", "beta"]),
        ("state=ok,damaged&q=b", vec!["beta", "broken"]),
        ("state=newer,foreign", vec![]),
    ] {
        for limit in [1, 50] {
            assert_eq!(ids(&walk(&host, query, limit).await), expected, "{query}, {limit} a page");
        }
    }
    let broken = &walk(&host, "state=damaged", 1).await[0];
    let reason = broken["reason"].as_str().unwrap();
    assert!(
        !reason.is_empty() && !reason.contains(store.folder.path().to_str().unwrap()),
        "{reason}"
    );
}

#[tokio::test]
async fn an_upstream_that_is_down_is_said_to_be() {
    let store = TestStore::new();
    add_at(&store, "stored", 9_000).await;
    let upstream = ScriptedUpstream::start(lists(vec![served("ses_1", 8_000)])).await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    assert_eq!(walk(&host, "", 50).await.len(), 2);
    upstream.kill().await;
    let page = host.get("/api/turnkeep/sessions").await.json();
    assert_eq!(ids(page["sessions"].as_array().unwrap()), ["stored"]);
    assert_eq!((&page["upstream"], &page["cursor"]), (&json!("unavailable"), &Value::Null));

    let odd = ScriptedUpstream::start(|request| {
        (request.path != "/global/health").then(|| answer(500, &[], "{}"))
    })
    .await;
    let host = RunningHost::start(options(&store, Some(&odd))).await;
    let page = host.get("/api/turnkeep/sessions").await.json();
    assert_eq!(
        (ids(page["sessions"].as_array().unwrap()), &page["upstream"]),
        (vec!["stored"], &json!("failed"))
    );
}

#[tokio::test]
async fn an_older_upstream_lists_its_own_project() {
    let store = TestStore::new();
    let sessions =
        Value::from(vec![served("ses_1", 8_000), served("ses_2", 7_000), served("ses_3", 6_000)]);
    let upstream = ScriptedUpstream::start(move |request| match request.path.as_str() {
        "/session" => Some(answer(200, &[], &sessions.to_string())),
        "/global/health" => None,
        _ => Some(Act::Send(support::upstream::response(
            200,
            &[("content-type", "text/html")],
            "<html>",
        ))),
    })
    .await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    for limit in [1, 2, 50] {
        assert_eq!(ids(&walk(&host, "", limit).await), ["ses_1", "ses_2", "ses_3"]);
    }
}

#[tokio::test]
async fn a_session_that_both_hold_is_the_stores() {
    let store = TestStore::new();
    add_at(&store, "ses_1", 5_000).await;
    let upstream =
        ScriptedUpstream::start(lists(vec![served("ses_2", 9_000), served("ses_1", 8_000)])).await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    let listed = walk(&host, "", 1).await;
    assert_eq!(ids(&listed), ["ses_2", "ses_1"]);
    assert_eq!(listed[1]["source"], "store");
}

#[tokio::test]
async fn sessions_of_the_other_form_are_foreign_and_new_ones_blank() {
    let store = TestStore::new();
    let sessions = ["ses_new", "ses_v2"].map(|id| {
        let mut session = served(id, 8_000);
        session.as_object_mut().unwrap().remove("summary");
        session
    });
    let lists = lists(sessions.to_vec());
    let upstream = ScriptedUpstream::start(move |request| match request.path.as_str() {
        "/session/ses_new/message" | "/session/ses_v2/message" => Some(answer(200, &[], "[]")),
        "/api/session/ses_new/message" => Some(answer(200, &[], r#"{"data":[],"cursor":{}}"#)),
        "/api/session/ses_v2/message" => {
            Some(answer(200, &[], r#"{"data":[{"id":"m"}],"cursor":{}}"#))
        }
        _ => lists(request),
    })
    .await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    let listed = walk(&host, "", 50).await;
    let told: Vec<_> =
        listed.iter().map(|session| (&session["state"], &session["blank"])).collect();
    let (ok, foreign) = (json!("ok"), json!("foreign"));
    assert_eq!(told, [(&ok, &json!(true)), (&foreign, &json!(false))]);
    assert!(listed[1]["reason"].is_string());
    let asked = upstream.requests().len();
    assert_eq!(ids(&walk(&host, "state=foreign", 50).await), ["ses_v2"]);
    assert_eq!(upstream.requests().len(), asked + 1, "what was found out is not asked again");
    assert_eq!(host.get("/api/turnkeep/sessions/ses_v2").await.json(), listed[1]);
}

#[tokio::test]
async fn what_takes_too_long_to_tell_does_not_hold_up_the_list() {
    let store = TestStore::new();
    let sessions = ["ses_1", "ses_2", "ses_3"].map(|id| {
        let mut session = served(id, 8_000);
        session.as_object_mut().unwrap().remove("summary");
        session
    });
    let lists = lists(sessions.to_vec());
    let upstream = ScriptedUpstream::start(move |request| {
        let slow = request.path.ends_with("/message");
        if slow { Some(Act::Stall) } else { lists(request) }
    })
    .await;
    let host = RunningHost::start(options(&store, Some(&upstream))).await;
    let started = Instant::now();
    let page = host.get("/api/turnkeep/sessions").await.json();
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!(page["sessions"].as_array().unwrap().len(), 3);
    assert_eq!(page["upstream"], "ok");
}

#[tokio::test]
async fn an_empty_host_lists_nothing() {
    let host = RunningHost::start(HostOptions::default()).await;
    let answer = host.get("/api/turnkeep/sessions").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"sessions":[],"cursor":null}"#));
    let answer = host.get("/api/turnkeep/sessions?cursor=garbage").await;
    assert_eq!((answer.status, answer.body.as_str()), (400, r#"{"error":"invalid cursor"}"#));
}

#[tokio::test]
async fn a_small_session_is_listed_with_its_last_prompt() {
    let store = TestStore::new();
    store.add_made("small", &[prompt("p", "hello")]).await;
    let host = RunningHost::start(options(&store, None)).await;
    assert_eq!(walk(&host, "", 50).await[0]["lastPromptAt"], 1000);
}

#[tokio::test]
async fn a_small_session_is_listed_as_blank_until_a_turn_starts() {
    let store = TestStore::new();
    store.add_made("s", &[("session/title", json!({ "title": "New" }))]).await;
    let host = RunningHost::start(options(&store, None)).await;
    let listed = || async { walk(&host, "", 50).await.remove(0) };
    assert_eq!(listed().await["blank"], true);
    store.append("s", made(1, |at| 2000 + at, &[("turn/start", json!({ "turn": 1 }))])).await;
    assert_eq!(listed().await["blank"], false);

    let mut off = options(&store, None);
    off.listing_probe = BlankGates { max_events: u64::MAX, max_bytes: 0 };
    let host = RunningHost::start(off).await;
    store.add_made("t", &[("session/title", json!({ "title": "New" }))]).await;
    for session in walk(&host, "", 50).await {
        assert_eq!(session["blank"], false, "not read, so not known");
        assert_eq!(session["title"], "New", "the index of the log tells");
    }
}

#[tokio::test]
async fn stores_that_count_events_are_probed_by_that() {
    let memory: Arc<dyn SessionStore> = Arc::new(MemoryStore::new(&Disk::new()));
    for (id, count) in [("a", 16), ("b", 17)] {
        let header = SessionHeader::new(SessionId::new(id).unwrap(), 1);
        let writer = memory.create(header, &Cancel::never()).await.unwrap();
        let title = ("session/title", json!({ "title": "New" }));
        let events = made(0, |at| 1000 + at, &vec![title; count]);
        writer.append(events, &Cancel::never()).await.unwrap();
        writer.close().await.unwrap();
    }
    let mut options = HostOptions::default();
    options.store = Some(memory);
    let host = RunningHost::start(options).await;
    let mut listed = walk(&host, "", 50).await;
    listed.sort_by_key(|session| session["id"].to_string());
    let blank: Vec<_> = listed.iter().map(|session| session["blank"].clone()).collect();
    assert_eq!(blank, [true, false], "16 events are read, 17 are not");
}
