//! Events over a WebSocket: messages, their order, and how connections end.
//!
//! The clients' other host pins its behaviour by tests, under four headings. What each of them says
//! is a test here, in `events.rs`, `events_upstream.rs` or beside the code, but for what speaks of
//! things that this host does not have:
//!
//! | not here | why |
//! |---|---|
//! | one reader of the upstream for each directory, with its own URL | directory streams are views of the one line, with the same ids |
//! | a URL that cannot be built | the address is checked before the host starts |
//! | a health check for each failure | the reader's own readiness probe is that |
//! | two message sizes that close a connection or warn | one queue bound, in the options; a message is as large as its event |
//! | a subscriber, an identity provider or a promise that throws | nothing that serves clients is a callback |
//! | runtime keys and generations; which of several upstreams speaks | there is one upstream, fixed at the start |
//! | the message queue and its confirmations; shadow and paused runtimes | there is no message queue |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{
    events::{SocketClient, SseClient, deaf},
    host::RunningHost,
    logs::SAID,
    store::TestStore,
    upstream::{Act, ScriptedUpstream, answer, wait_until},
};
use tokio::io::AsyncReadExt as _;
use turnkeep_host::HostOptions;

const GLOBAL: &str = "/api/global/event/ws";
const HERE: &str = "/api/event/ws?directory=/d";

async fn host(set: impl FnOnce(&mut HostOptions)) -> (ScriptedUpstream, RunningHost) {
    let upstream = ScriptedUpstream::start(|_| None).await;
    upstream.events.answer_with(Act::Stream);
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.event_timing.retry = Duration::from_millis(10);
    set(&mut options);
    let host = RunningHost::start(options).await;
    upstream.events.wait_for_open(1).await;
    (upstream, host)
}

/// A host whose upstream answers every request for a stream like this.
async fn host_without_stream(
    act: Act,
    set: impl FnOnce(&mut HostOptions),
) -> (ScriptedUpstream, RunningHost) {
    let upstream = ScriptedUpstream::start(|_| None).await;
    upstream.events.answer_with(act);
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.event_timing.retry = Duration::from_millis(10);
    options.event_timing.hold = Duration::from_millis(100);
    options.event_timing.connect = Duration::from_millis(300);
    set(&mut options);
    (upstream, RunningHost::start(options).await)
}

async fn open(host: &RunningHost, target: &str) -> SocketClient {
    SocketClient::open(&host.origin(), target).await
}

fn note(text: &str) -> Value {
    json!({ "id": "evt_1", "type": "note", "properties": { "text": text, "said": SAID } })
}

fn text(message: &Value) -> &str {
    message["payload"]["properties"]["text"].as_str().unwrap()
}

#[tokio::test]
async fn both_channels_say_that_they_are_ready_and_then_what_happens() {
    let (upstream, host) = host(|_| {}).await;
    let mut all = open(&host, GLOBAL).await;
    all.ready("global").await;
    let mut here = open(&host, HERE).await;
    here.ready("directory").await;
    upstream.events.send("/d", &note("a"));
    let message = all.next().await;
    let id = message["eventId"].as_str().unwrap();
    let expected =
        json!({ "type": "event", "payload": note("a"), "eventId": id, "directory": "/d" });
    assert_eq!(message, expected);
    assert_eq!(here.next().await, expected);
}

#[tokio::test]
async fn an_event_without_a_directory_is_global_or_where_the_client_is() {
    let (upstream, host) = host(|_| {}).await;
    let (mut all, mut here) = (open(&host, GLOBAL).await, open(&host, HERE).await);
    all.ready("global").await;
    here.ready("directory").await;
    upstream.events.send_bytes(format!("data: {}\n\n", json!({ "payload": note("a") })));
    let bare = json!({ "type": "note", "properties": { "text": "b", "directory": "/e" } });
    upstream.events.send_bytes(format!("data: {bare}\n\n"));
    upstream.events.send_bytes("data: nonsense\n\n: comment\n\nid: 1\n\n");
    upstream.events.send("/d", &note("c"));
    let all = all.take(3).await;
    let directories: Vec<_> = all.iter().map(|message| &message["directory"]).collect();
    assert_eq!(directories, ["global", "/e", "/d"]);
    let here = here.take(2).await;
    assert_eq!((&here[0]["directory"], &here[1]["directory"]), (&json!("/d"), &json!("/d")));
    assert_eq!((text(&here[0]), text(&here[1])), ("a", "c"));
}

#[tokio::test]
async fn two_sockets_share_one_reader_and_see_the_same() {
    let (upstream, host) = host(|_| {}).await;
    let (mut one, mut two) = (open(&host, GLOBAL).await, open(&host, GLOBAL).await);
    one.ready("global").await;
    two.ready("global").await;
    upstream.events.send("/d", &note("a"));
    assert_eq!(one.next().await, two.next().await);
    assert_eq!(upstream.events.requests().len(), 1);
}

#[tokio::test]
async fn the_order_is_the_same_over_both_wires() {
    let (upstream, host) = host(|_| {}).await;
    let mut socket = open(&host, GLOBAL).await;
    socket.ready("global").await;
    let mut sse = SseClient::open(&host.origin(), "/api/global/event").await;
    for number in 0..200 {
        upstream.events.send("/d", &note(&number.to_string()));
    }
    let messages = socket.take(200).await;
    let blocks = sse.take(200).await;
    for (number, (message, block)) in messages.iter().zip(&blocks).enumerate() {
        assert_eq!(text(message), number.to_string());
        assert_eq!(message["eventId"], block.id());
        assert_eq!(&message["payload"], block.payload());
    }
}

#[tokio::test]
async fn what_was_missed_comes_before_ready_and_the_rest_after() {
    let (upstream, host) = host(|_| {}).await;
    let mut client = open(&host, GLOBAL).await;
    client.ready("global").await;
    for text in ["a", "b", "c"] {
        upstream.events.send("/d", &note(text));
    }
    let seen = client.take(3).await;
    let last = seen[0]["eventId"].as_str().unwrap();
    for (target, scope) in [(GLOBAL, "global?"), (HERE, "directory&")] {
        let (scope, joint) = scope.split_at(scope.len() - 1);
        let mut again = open(&host, &format!("{target}{joint}lastEventId={last}")).await;
        assert_eq!(again.take(2).await, seen[1..3]);
        again.ready(scope).await;
    }
    let newest = seen[2]["eventId"].as_str().unwrap();
    let mut again = open(&host, &format!("{GLOBAL}?lastEventId={newest}")).await;
    again.ready("global").await;
    upstream.events.send("/d", &note("d"));
    assert_eq!(text(&again.next().await), "d");
}

#[tokio::test]
async fn a_client_that_cannot_go_on_is_told_so_before_ready() {
    let (upstream, host) = host(|_| {}).await;
    let mut first = open(&host, GLOBAL).await;
    first.ready("global").await;
    upstream.events.send("/d", &note("a"));
    let newest = first.next().await["eventId"].clone();
    for (target, directory) in [(format!("{GLOBAL}?"), "global"), (format!("{HERE}&"), "/d")] {
        let mut client = open(&host, &format!("{target}lastEventId=evt-unknown")).await;
        let payload =
            json!({ "type": "turnkeep.reset", "properties": { "reason": "unknown_epoch" } });
        assert_eq!(
            client.next().await,
            json!({ "type": "event", "payload": payload, "eventId": newest, "directory": directory })
        );
        assert_eq!(client.next().await["type"], "ready");
    }
}

#[tokio::test]
async fn a_stalled_upstream_is_asked_again_and_clients_are_ready_again() {
    let (upstream, host) =
        host(|options| options.event_timing.stall = Duration::from_millis(300)).await;
    let (mut all, mut here) = (open(&host, GLOBAL).await, open(&host, HERE).await);
    all.ready("global").await;
    here.ready("directory").await;
    upstream
        .events
        .send_bytes("id: evt-1\ndata: {\"type\":\"note\",\"properties\":{\"text\":\"a\"}}\n\n");
    all.next().await;
    here.next().await;
    let reset = all.next().await;
    assert_eq!(reset["payload"]["properties"]["reason"], "upstream_reconnected");
    all.ready("global").await;
    assert_eq!(here.next().await["payload"], reset["payload"]);
    upstream.events.send("/d", &note("b"));
    assert_eq!(text(&all.next().await), "b");
    assert_eq!(text(&here.next().await), "b");
    let requests = upstream.events.requests();
    assert!(requests[1].head.to_ascii_lowercase().contains("last-event-id: evt-1\r\n"));
    assert_eq!(host.host.hub().stats().upstream_stalls, requests.len() as u64 - 1);
}

#[tokio::test]
async fn large_patches_do_not_reach_a_client() {
    let (upstream, host) = host(|_| {}).await;
    let mut client = open(&host, GLOBAL).await;
    client.ready("global").await;
    let updated = |diffs: Value| {
        let info =
            json!({ "id": "m", "role": "user", "summary": { "title": "t", "diffs": diffs } });
        json!({ "type": "message.updated", "properties": { "info": info } })
    };
    let one = json!([{ "file": "a", "status": "modified", "additions": 1, "deletions": 2,
        "patch": "P".repeat(70_000) }]);
    let many: Vec<_> = (0..463)
        .map(
            |number| json!({ "file": format!("src/file_{number}.rs"), "before": "B".repeat(2000) }),
        )
        .collect();
    upstream.events.send("/d", &updated(one));
    upstream.events.send("/d", &updated(Value::from(many)));
    let (one, many) = (client.next().await, client.next().await);
    assert!(one.to_string().len() < 64 << 10);
    assert_eq!(one["payload"]["properties"]["info"]["summary"]["title"], "t");
    assert!(many.to_string().len() < 256 << 10);
    let files = &many["payload"]["properties"]["info"]["summary"]["diffs"];
    assert_eq!(files.as_array().unwrap().len(), 463);
}

#[tokio::test]
async fn reasoning_goes_to_those_who_want_it() {
    let (upstream, host) = host(|_| {}).await;
    let mut with = open(&host, GLOBAL).await;
    with.ready("global").await;
    let mut filtered = Vec::new();
    for (target, scope) in [
        (format!("{GLOBAL}?includeReasoning=false"), "global"),
        (format!("{HERE}&includeReasoning=false&includeReasoning=true"), "directory"),
    ] {
        let mut client = open(&host, &target).await;
        client.ready(scope).await;
        filtered.push(client);
    }
    for (id, kind) in [("r", "reasoning"), ("t", "text")] {
        let part =
            json!({ "id": id, "messageID": "m", "sessionID": "s", "type": kind, "text": "" });
        let updated = json!({ "type": "message.part.updated", "properties": { "part": part } });
        upstream.events.send("/d", &updated);
        upstream.events.send(
            "/d",
            &json!({ "type": "message.part.delta", "properties": { "sessionID": "s",
                "messageID": "m", "partID": id, "field": "text", "delta": "x" } }),
        );
    }
    let all = with.take(4).await;
    assert_eq!(all[0]["payload"]["properties"]["part"]["type"], "reasoning");
    for client in &mut filtered {
        assert_eq!(client.take(2).await, all[2..], "the same events under the same ids");
    }
    // What was missed passes the filter as well.
    let last = all[0]["eventId"].as_str().unwrap();
    let target = format!("{GLOBAL}?includeReasoning=false&lastEventId={last}");
    let mut again = open(&host, &target).await;
    assert_eq!(again.take(2).await, all[2..]);
    again.ready("global").await;
}

#[tokio::test]
async fn a_client_hears_a_heartbeat_and_is_pinged_while_the_upstream_is_there() {
    let (upstream, host) =
        host(|options| options.event_timing.socket_heartbeat = Duration::from_millis(30)).await;
    let mut client = open(&host, GLOBAL).await;
    client.ready("global").await;
    let beat = client.try_next().await.unwrap();
    assert_eq!(beat["payload"]["type"], "openchamber:heartbeat");
    assert!(beat["payload"]["timestamp"].as_u64().unwrap() > 1_600_000_000_000);
    assert_eq!((&beat["directory"], &beat["eventId"]), (&json!("global"), &Value::Null));
    client.try_next().await.unwrap();
    assert!(client.pings > 0);
    // Its own words mean nothing to us.
    client.say("hello").await;
    upstream.events.answer_with(answer(503, &[], "{}"));
    upstream.events.cut();
    wait_until("it is lost", || {
        host.host.hub().position(turnkeep_host::Origin::Upstream).is_none()
    })
    .await;
    // What was on its way may still come.
    let silence = async { while client.try_next().await.is_ok() {} };
    assert!(tokio::time::timeout(Duration::from_millis(500), silence).await.is_err());
    upstream.events.answer_with(Act::Stream);
    assert_eq!(client.next().await["payload"]["type"], "turnkeep.reset");
    client.ready("global").await;
    let pings = client.pings;
    let beat = client.try_next().await.unwrap();
    assert_eq!(beat["payload"]["type"], "openchamber:heartbeat");
    client.try_next().await.unwrap();
    assert!(client.pings > pings, "it goes on");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_warned_and_closed_and_nobody_waits_for_it() {
    let (upstream, host) = host(|options| {
        options.client_queue_bytes = 2 << 20;
        options.event_timing.farewell = Duration::from_millis(500);
    })
    .await;
    let address = host.origin().replace("http://", "").parse().unwrap();
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut deaf = deaf(address, GLOBAL, upgrade).await;
    let mut client = open(&host, GLOBAL).await;
    client.ready("global").await;
    let long = "x".repeat(100_000);
    let stats = || host.host.hub().stats();
    let mut sent = 0;
    while stats().clients_too_slow == 0 {
        upstream.events.send("/d", &note(&long));
        assert_eq!(text(&client.next().await), long);
        sent += 1;
        assert!(sent < 1000, "nobody is dropped: {:?}", stats());
    }
    assert_eq!(stats().socket_clients, 1);
    let mut read = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(10), deaf.read_to_end(&mut read)).await;
    let _ = end.expect("the connection is ended");
    let tail = String::from_utf8_lossy(&read[read.len() - 200..]).into_owned();
    assert!(tail.contains("Message stream client is too slow"), "{tail}");
    upstream.events.send("/d", &note("after it"));
    assert_eq!(text(&client.next().await), "after it");
}

#[tokio::test]
async fn a_client_that_is_slow_for_a_while_is_warned_once_each_time() {
    let (upstream, host) = host(|options| options.client_queue_bytes = 4 << 20).await;
    let mut client = open(&host, GLOBAL).await;
    client.ready("global").await;
    let long = "x".repeat(100_000);
    let stats = || host.host.hub().stats();
    for _ in 0..2 {
        while stats().queued_bytes < 7 << 19 {
            let sent = stats().events + 1;
            upstream.events.send("/d", &note(&long));
            wait_until("it is there", || stats().events == sent).await;
        }
        // It reads again.
        let mut warnings = Vec::new();
        upstream.events.send("/d", &note("end"));
        loop {
            let message = client.next().await;
            if message["type"] == "backpressure" {
                warnings.push(message);
            } else if text(&message) == "end" {
                break;
            }
        }
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0]["maxBytes"], 4 << 20);
        assert!(warnings[0]["bufferedBytes"].as_u64().unwrap() > 3 << 20);
    }
    assert_eq!(host.host.hub().stats().clients_too_slow, 0);
}

#[tokio::test]
async fn an_upstream_that_refuses_is_an_error_and_a_close() {
    for status in [503, 404, 401] {
        let (upstream, host) = host_without_stream(answer(status, &[], "{}"), |_| {}).await;
        let mut client = open(&host, GLOBAL).await;
        let message = format!("OpenCode event stream unavailable ({status})");
        assert_eq!(client.next().await, json!({ "type": "error", "message": message }));
        let closed = client.closed().await;
        assert_eq!(closed, (1011, "OpenCode event stream unavailable".to_owned()));
        assert!(upstream.probes() > 0, "its health is looked at");
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_an_error_and_a_close() {
    for target in [GLOBAL, HERE] {
        let (upstream, host) = host_without_stream(Act::Stall, |_| {}).await;
        let mut client = open(&host, target).await;
        let text = "Failed to connect to OpenCode event stream";
        assert_eq!(client.next().await, json!({ "type": "error", "message": text }));
        assert_eq!(client.closed().await, (1011, text.to_owned()));
        upstream.kill().await;
        let mut client = open(&host, target).await;
        assert_eq!(client.next().await, json!({ "type": "error", "message": text }));
        assert_eq!(client.closed().await, (1011, text.to_owned()));
    }
}

#[tokio::test]
async fn an_upstream_that_comes_in_time_is_waited_for() {
    let (upstream, host) = host_without_stream(answer(503, &[], "{}"), |options| {
        options.event_timing.hold = Duration::from_secs(8);
    })
    .await;
    let mut client = open(&host, GLOBAL).await;
    upstream.events.wait_for_requests(3).await;
    upstream.events.answer_with(Act::Stream);
    client.ready("global").await;
}

#[tokio::test]
async fn a_store_is_watched_whatever_the_upstream_does() {
    let store = TestStore::new();
    let (_upstream, host) = host_without_stream(Act::Stall, |options| {
        options.store = Some(store.store.clone());
    })
    .await;
    open(&host, GLOBAL).await.ready("global").await;
    open(&host, HERE).await.ready("directory").await;
}

#[tokio::test]
async fn a_host_with_nothing_to_watch_says_so() {
    let host = RunningHost::start(HostOptions::default()).await;
    let mut client = open(&host, GLOBAL).await;
    let text = "OpenCode service unavailable";
    assert_eq!(client.next().await, json!({ "type": "error", "message": text }));
    assert_eq!(client.closed().await, (1011, text.to_owned()));
}

#[tokio::test]
async fn what_is_no_websocket_is_told_to_be_one() {
    let (_upstream, host) = host(|_| {}).await;
    for target in [GLOBAL, HERE] {
        let told = host.get(target).await;
        assert_eq!((told.status, told.body.as_str()), (426, r#"{"error":"use a WebSocket here"}"#));
    }
    let told = host.request("POST", GLOBAL).send().await.unwrap();
    assert_eq!(told.status, 405);
}

#[tokio::test]
async fn pages_of_other_sites_get_no_socket() {
    let (_upstream, host) = host(|_| {}).await;
    let address = host.origin().replace("http://", "");
    let request = format!(
        "GET {GLOBAL} HTTP/1.1\r\nhost: {address}\r\norigin: https://evil.example\r\n\
         connection: upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    assert!(host.raw(request.as_bytes()).await.starts_with("HTTP/1.1 403 "));
}

#[tokio::test]
async fn a_host_that_stops_says_so_and_a_client_that_leaves_is_forgotten() {
    let (_upstream, host) = host(|_| {}).await;
    let mut client = open(&host, GLOBAL).await;
    client.ready("global").await;
    let leaving = open(&host, GLOBAL).await;
    let stats = || host.host.hub().stats();
    wait_until("both are there", || stats().socket_clients == 2).await;
    drop(leaving);
    wait_until("one has left", || stats().socket_clients == 1).await;
    let ((), closed) = tokio::join!(host.stop(), client.closed());
    assert_eq!(closed, (1001, "the host stops".to_owned()));
}
