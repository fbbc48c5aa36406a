//! Pages and events together: a page names the event that a client goes on from, and a client that
//! does is exact.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use support::{
    events::SseClient,
    host::RunningHost,
    store::{TestStore, turns},
    upstream::{Act, ScriptedUpstream, answer, list, wait_until},
};
use turnkeep_host::{HostOptions, Origin, TurnPageRequest};

const PAGE: &str = "/api/openchamber/sessions/ses_1/messages";
const RECONCILE: &str = "/api/openchamber/sessions/ses_1/messages/reconcile?anchor=msg_1";
const MESSAGE: &str = "/api/session/ses_1/message/msg_2";
const EVENT_ID: &str = "x-turnkeep-event-id";

/// A prompt, and an answer that is being written: the server lists its text as empty.
fn open_answer() -> Vec<Value> {
    vec![
        json!({ "info": { "id": "msg_1", "sessionID": "ses_1", "role": "user", "time": { "created": 1 } },
            "parts": [{ "id": "prt_1", "type": "text", "text": "Hello?" }] }),
        json!({ "info": { "id": "msg_2", "sessionID": "ses_1", "role": "assistant", "time": { "created": 2 } },
            "parts": [text_part("", None)] }),
    ]
}

fn text_part(text: &str, end: Option<u64>) -> Value {
    let mut part = json!({ "id": "prt_2", "sessionID": "ses_1", "messageID": "msg_2", "type": "text",
        "text": text, "time": { "start": 3 } });
    if let Some(end) = end {
        part["time"]["end"] = json!(end);
    }
    part
}

fn updated(part: &Value) -> Value {
    json!({ "type": "message.part.updated", "properties": { "sessionID": "ses_1", "part": part } })
}

fn delta(text: &str) -> Value {
    json!({ "type": "message.part.delta", "properties": {
        "sessionID": "ses_1", "messageID": "msg_2", "partID": "prt_2", "field": "text", "delta": text } })
}

/// A host whose upstream has these rows, and waits as long as it is told before it lists them.
async fn host(rows: &Arc<Mutex<Vec<Value>>>, wait: Duration) -> (ScriptedUpstream, RunningHost) {
    let rows = Arc::clone(rows);
    let upstream = ScriptedUpstream::start(move |request| {
        let rows = rows.lock().unwrap().clone();
        let act = match request.path.as_str() {
            "/session/ses_1/message" => list(&rows, request),
            "/session/ses_1/message/msg_2" => answer(200, &[], &rows[1].to_string()),
            _ => return None,
        };
        let Act::Send(bytes) = act else { panic!("{act:?}") };
        Some(Act::SendAfter(wait, bytes))
    })
    .await;
    upstream.events.answer_with(Act::Stream);
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.event_timing.retry = Duration::from_millis(10);
    let host = RunningHost::start(options).await;
    wait_until("it is followed", || host.host.hub().position(Origin::Upstream).is_some()).await;
    (upstream, host)
}

/// Sends events, and waits until the host has them.
async fn send(upstream: &ScriptedUpstream, host: &RunningHost, events: &[Value]) {
    let before = host.host.hub().stats().events;
    for event in events {
        upstream.events.send("/d", event);
    }
    let all = before + events.len() as u64;
    wait_until("the events are there", || host.host.hub().stats().events == all).await;
}

fn text_of(record: &Value) -> (&str, bool) {
    let part = &record["parts"][0];
    (part["text"].as_str().unwrap(), part["time"]["end"].is_null())
}

fn answer_in(path: &str, body: &Value) -> Value {
    if path == MESSAGE {
        body.clone()
    } else {
        body["records"].as_array().unwrap().last().unwrap().clone()
    }
}

#[tokio::test]
async fn an_open_part_carries_its_text_as_of_the_event_that_the_page_names() {
    let rows = Arc::new(Mutex::new(open_answer()));
    let (upstream, host) = host(&rows, Duration::ZERO).await;
    send(&upstream, &host, &[updated(&text_part("", None)), delta("Good "), delta("mor")]).await;
    let position = host.host.hub().position(Origin::Upstream).unwrap().to_string();
    for path in [PAGE, RECONCILE, MESSAGE] {
        let told = host.get(path).await;
        assert_eq!(told.header(EVENT_ID), Some(position.as_str()), "{path}");
        assert_eq!(text_of(&answer_in(path, &told.json())), ("Good mor", true), "{path}");
        let tag = told.header("etag").unwrap().to_owned();
        let fresh = host.request("GET", path).header("if-none-match", &tag).send().await.unwrap();
        assert_eq!(
            (fresh.status, fresh.header(EVENT_ID)),
            (304, Some(position.as_str())),
            "{path}"
        );
    }
    let page = host.host.turn_page_json("ses_1", &TurnPageRequest::default()).await.unwrap();
    assert!(page.contains("Good mor"));
    let app =
        host.request("GET", PAGE).header("origin", "capacitor://localhost").send().await.unwrap();
    assert!(app.header("access-control-expose-headers").unwrap().contains(EVENT_ID));
    let page = host.get(&format!("{PAGE}?includeReasoning=false")).await;
    assert_eq!(page.header(EVENT_ID), Some(position.as_str()));
}

#[tokio::test]
async fn a_client_that_applies_what_comes_after_the_page_is_exact() {
    // While the page is on its way, the answer goes on; in the last case it ends, and the rows say so.
    for ends in [false, true] {
        let rows = Arc::new(Mutex::new(open_answer()));
        let (upstream, host) = host(&rows, Duration::from_millis(150)).await;
        send(&upstream, &host, &[updated(&text_part("", None)), delta("Good ")]).await;
        let meanwhile = async {
            upstream.wait_for_requests(1).await;
            send(&upstream, &host, &[delta("morn"), delta("ing")]).await;
            if ends {
                let whole = text_part("Good morning", Some(9));
                rows.lock().unwrap()[1]["parts"][0] = whole.clone();
                send(&upstream, &host, &[updated(&whole)]).await;
            }
        };
        let (page, ()) = tokio::join!(host.get(PAGE), meanwhile);
        let record = answer_in(PAGE, &page.json());
        assert_eq!(text_of(&record), ("Good ", true));
        let last = page.header(EVENT_ID).unwrap().to_owned();
        let header = [("last-event-id", last.as_str())];
        let mut client = SseClient::open_with(&host.origin(), "/api/global/event", &header).await;
        let mut text = text_of(&record).0.to_owned();
        for block in client.take(if ends { 3 } else { 2 }).await {
            match block.kind() {
                "message.part.delta" => {
                    text += block.payload()["properties"]["delta"].as_str().unwrap();
                }
                _ => {
                    text =
                        block.payload()["properties"]["part"]["text"].as_str().unwrap().to_owned();
                }
            }
        }
        assert_eq!(text, "Good morning");
    }
}

#[tokio::test]
async fn a_read_is_not_shared_across_an_event_of_its_session() {
    let rows = Arc::new(Mutex::new(open_answer()));
    let (upstream, host) = host(&rows, Duration::from_millis(300)).await;
    let elsewhere = json!({ "type": "message.part.delta", "properties": { "sessionID": "ses_2" } });
    for (path, event, requests) in [
        (PAGE, &delta("x"), 2),
        (MESSAGE, &delta("x"), 2),
        (PAGE, &elsewhere, 1),
        (MESSAGE, &elsewhere, 1),
    ] {
        let before = upstream.requests().len();
        let later = async {
            upstream.wait_for_requests(before + 1).await;
            send(&upstream, &host, std::slice::from_ref(event)).await;
            host.get(path).await
        };
        let (first, second) = tokio::join!(host.get(path), later);
        assert_eq!((first.status, second.status), (200, 200));
        assert_ne!(first.header(EVENT_ID), second.header(EVENT_ID));
        assert_eq!(upstream.requests().len() - before, requests, "{path} {event}");
    }
}

#[tokio::test]
async fn without_the_events_of_the_upstream_a_page_names_none() {
    let rows = Arc::new(Mutex::new(open_answer()));
    let (upstream, host) = host(&rows, Duration::ZERO).await;
    send(&upstream, &host, &[updated(&text_part("", None)), delta("Good ")]).await;
    upstream.events.answer_with(answer(503, &[], "{}"));
    upstream.events.cut();
    wait_until("it is lost", || host.host.hub().position(Origin::Upstream).is_none()).await;
    for path in [PAGE, RECONCILE, MESSAGE] {
        let told = host.get(path).await;
        assert_eq!((told.status, told.header(EVENT_ID)), (200, None), "{path}");
        assert_eq!(text_of(&answer_in(path, &told.json())), ("", true), "{path}");
    }
    // A part that is joined in the middle stays as it is sent.
    upstream.events.answer_with(Act::Stream);
    wait_until("it is back", || host.host.hub().position(Origin::Upstream).is_some()).await;
    upstream.events.wait_for_open(1).await;
    send(&upstream, &host, &[delta("morning")]).await;
    let told = host.get(PAGE).await;
    assert!(told.header(EVENT_ID).is_some());
    assert_eq!(text_of(&answer_in(PAGE, &told.json())).0, "");
}

#[tokio::test]
async fn a_failure_names_no_event() {
    let rows = Arc::new(Mutex::new(open_answer()));
    let (_upstream, host) = host(&rows, Duration::ZERO).await;
    let told = host.get(&format!("{PAGE}?turns=99")).await;
    assert_eq!((told.status, told.header(EVENT_ID)), (400, None));
    let told = host.get(&PAGE.replace("ses_1", "ses_9")).await;
    assert_eq!((told.status, told.header(EVENT_ID)), (502, None));
}

#[tokio::test]
async fn a_stored_session_names_an_event_while_the_store_is_followed() {
    let store = TestStore::new();
    store.add_made("s1", &turns(1)).await;
    let mut options = HostOptions::default();
    options.store = Some(store.store.clone());
    let host = RunningHost::start(options).await;
    let path = PAGE.replace("ses_1", "s1");
    assert_eq!(host.get(&path).await.header(EVENT_ID), None, "nobody watches");
    let _client = SseClient::open(&host.origin(), "/api/global/event").await;
    let deadline = Instant::now() + Duration::from_secs(10);
    let dated = loop {
        let answer = host.get(&path).await;
        if let Some(id) = answer.header(EVENT_ID) {
            break id.to_owned();
        }
        assert!(Instant::now() < deadline, "the store is followed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let position = host.host.hub().position(Origin::Store).unwrap().to_string();
    assert_eq!(dated, position);
}
