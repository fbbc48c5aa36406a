//! Events over SSE: who gets which, in which form, from where on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{os::unix::fs::symlink, time::Duration};

use serde_json::{Value, json};
use support::{
    events::{Block, SseClient, deaf},
    host::RunningHost,
    logs::SAID,
    store::TestStore,
    upstream::{Act, ScriptedUpstream, answer, wait_until},
};
use tokio::io::AsyncReadExt as _;
use turnkeep_host::{HostOptions, Origin, Published};

const GLOBAL: &str = "/api/global/event";
const DIRECTORY: &str = "/api/event";

/// A host in front of an upstream that streams.
async fn host(set: impl FnOnce(&mut HostOptions)) -> (ScriptedUpstream, RunningHost) {
    let upstream = ScriptedUpstream::start(|request| {
        let path = json!({ "home": "/", "directory": "/own", "worktree": "/" }).to_string();
        (request.path == "/path").then(|| answer(200, &[], &path))
    })
    .await;
    upstream.events.answer_with(Act::Stream);
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.event_timing.retry = Duration::from_millis(10);
    set(&mut options);
    let host = RunningHost::start(options).await;
    upstream.events.wait_for_open(1).await;
    (upstream, host)
}

async fn open(host: &RunningHost, target: &str) -> SseClient {
    SseClient::open(&host.origin(), target).await
}

fn note(text: &str) -> Value {
    json!({ "id": "evt_1", "type": "note", "properties": { "text": text, "said": SAID } })
}

fn texts(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(|block| block.payload()["properties"]["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_client_gets_what_the_one_reader_reads() {
    let (upstream, host) = host(|_| {}).await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(open(&host, GLOBAL).await);
    }
    for text in ["a", "b", "c"] {
        upstream.events.send("/d", &note(text));
    }
    let first = clients[0].take(3).await;
    assert_eq!(texts(&first), ["a", "b", "c"]);
    let wrapped = json!({ "directory": "/d", "project": "p", "payload": note("a") });
    assert_eq!(first[0].data, wrapped, "as the upstream wraps it");
    for client in &mut clients[1..] {
        assert_eq!(client.take(3).await, first);
    }
    assert_eq!(upstream.events.requests().len(), 1);
    let head = upstream.events.requests()[0].head.to_ascii_lowercase();
    assert!(head.contains("accept: text/event-stream\r\n"), "{head}");
}

#[tokio::test]
async fn the_head_of_a_stream_keeps_proxies_from_holding_it_back() {
    let (_upstream, host) = host(|_| {}).await;
    for target in [GLOBAL, "/api/event?directory=/d"] {
        let compressing = [("accept-encoding", "gzip, br")];
        let client = SseClient::open_with(&host.origin(), target, &compressing).await;
        let header = |name: &str| client.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("content-type"), Some("text/event-stream"));
        assert_eq!(header("cache-control"), Some("no-cache"));
        assert_eq!(header("x-accel-buffering"), Some("no"));
        assert_eq!(header("content-encoding"), None);
        let head = host.request("HEAD", target).send().await.unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    }
    wait_until("a look at the head is no client", || host.host.hub().stats().sse_clients == 0)
        .await;
}

#[tokio::test]
async fn a_directory_stream_is_a_view_with_the_same_ids() {
    let (upstream, host) = host(|_| {}).await;
    let mut all = open(&host, GLOBAL).await;
    let mut here = open(&host, "/api/event?directory=/here/").await;
    let named = [("x-opencode-directory", "%2Fhere"), ("x-opencode-directory-encoding", "uri")];
    let mut also_here = SseClient::open_with(&host.origin(), DIRECTORY, &named).await;
    upstream.events.send("/here", &note("a"));
    upstream.events.send("/there", &note("b"));
    upstream.events.send_bytes(format!("data: {}\n\n", json!({ "payload": note("c") })));
    let sync =
        json!({ "type": "sync", "syncEvent": { "type": "t", "aggregateID": "s", "data": {} } });
    upstream.events.send("/here", &sync);
    upstream.events.send("/here", &note("d"));
    let all = all.take(5).await;
    let seen = here.take(3).await;
    assert_eq!(texts(&seen), ["a", "c", "d"]);
    assert_eq!(seen[0].data, note("a"), "without a wrapper");
    let ids: Vec<_> = [0, 2, 4].iter().map(|at| all[*at].id()).collect();
    assert_eq!(seen.iter().map(Block::id).collect::<Vec<_>>(), ids);
    assert_eq!(also_here.take(3).await, seen);
}

#[tokio::test]
async fn directories_are_compared_by_where_they_are() {
    let (upstream, host) = host(|_| {}).await;
    let root = tempfile::tempdir().unwrap();
    let real = root.path().canonicalize().unwrap().join("real");
    std::fs::create_dir(&real).unwrap();
    let link = root.path().join("link");
    symlink(&real, &link).unwrap();
    let mut client = open(&host, &format!("/api/event?directory={}", link.display())).await;
    upstream.events.send(real.to_str().unwrap(), &note("a"));
    upstream.events.send(link.to_str().unwrap(), &note("b"));
    assert_eq!(texts(&client.take(2).await), ["a", "b"]);
}

#[tokio::test]
async fn without_a_directory_it_is_the_one_the_upstream_was_started_in() {
    let (upstream, host) = host(|_| {}).await;
    for _ in 0..3 {
        let mut client = open(&host, DIRECTORY).await;
        upstream.events.send("/other", &note("a"));
        upstream.events.send("/own", &note("b"));
        assert_eq!(texts(&client.take(1).await), ["b"]);
    }
    let asked = upstream.requests().iter().filter(|request| request.path == "/path").count();
    assert_eq!(asked, 1, "it is asked once");
}

#[tokio::test]
async fn a_client_that_comes_back_gets_exactly_what_it_missed() {
    let (upstream, host) = host(|_| {}).await;
    let mut client = open(&host, GLOBAL).await;
    upstream.events.send("/d", &note("a"));
    let last = client.next().await.id().to_owned();
    drop(client);
    for text in ["b", "c", "d"] {
        upstream.events.send("/d", &note(text));
    }
    wait_until("it is all there", || host.host.hub().stats().events == 4).await;
    for (target, header) in [
        (GLOBAL.to_owned(), last.as_str()),
        (format!("{GLOBAL}?lastEventId={last}"), ""),
        (format!("{GLOBAL}?lastEventId=0123456789abcdef-7"), last.as_str()),
        (format!("/api/event?directory=/d&lastEventId={last}"), ""),
    ] {
        let header = [("last-event-id", header)];
        let mut client = SseClient::open_with(&host.origin(), &target, &header).await;
        assert_eq!(texts(&client.take(3).await), ["b", "c", "d"], "{target}");
        upstream.events.send("/d", &note("e"));
        assert_eq!(texts(&client.take(1).await), ["e"]);
    }
}

#[tokio::test]
async fn nobody_misses_an_event_or_gets_it_twice_by_coming_back_all_the_time() {
    let (upstream, host) = host(|_| {}).await;
    let mut client = open(&host, GLOBAL).await;
    upstream.events.send("/d", &note("0"));
    let mut last = client.next().await;
    let sending = async {
        for number in 1..400 {
            upstream.events.send("/d", &note(&number.to_string()));
            tokio::task::yield_now().await;
        }
    };
    let coming_back = async {
        let mut got = 1;
        while got < 400 {
            let header = [("last-event-id", last.id())];
            let mut client = SseClient::open_with(&host.origin(), GLOBAL, &header).await;
            for _ in 0..(got % 7 + 1).min(400 - got) {
                last = client.next().await;
                assert_eq!(texts(std::slice::from_ref(&last)), [got.to_string()]);
                got += 1;
            }
        }
    };
    tokio::join!(sending, coming_back);
}

#[tokio::test]
async fn a_client_that_cannot_go_on_is_told_so_first() {
    let (upstream, host) = host(|options| options.replay_buffer_bytes = 16 << 10).await;
    let mut client = open(&host, GLOBAL).await;
    upstream.events.send("/d", &note("a"));
    let first = client.next().await.id().to_owned();
    for _ in 0..100 {
        upstream.events.send("/d", &note(&"x".repeat(1000)));
    }
    client.take(100).await;
    upstream.events.send("/d", &note("last"));
    let last = client.next().await.id().to_owned();
    for target in [GLOBAL, "/api/event?directory=/elsewhere"] {
        for (asked, reason) in [
            (first.as_str(), "too_old"),
            ("0123456789abcdef-1", "unknown_epoch"),
            ("evt_12", "unknown_epoch"),
        ] {
            let header = [("last-event-id", asked)];
            let mut client = SseClient::open_with(&host.origin(), target, &header).await;
            let reset = client.next().await;
            let expected = json!({ "type": "turnkeep.reset", "properties": { "reason": reason } });
            assert_eq!((reset.payload(), reset.id()), (&expected, last.as_str()));
        }
    }
    // From where it is then it can go on.
    let header = [("last-event-id", last.as_str())];
    let mut client = SseClient::open_with(&host.origin(), GLOBAL, &header).await;
    upstream.events.send("/d", &note("new"));
    assert_eq!(texts(&client.take(1).await), ["new"]);
}

#[tokio::test]
async fn everyone_is_told_when_the_upstream_was_lost() {
    let (upstream, host) = host(|_| {}).await;
    let mut all = open(&host, GLOBAL).await;
    let mut here = open(&host, "/api/event?directory=/d").await;
    upstream.events.send("/d", &note("a"));
    let before = all.next().await.id().to_owned();
    here.next().await;
    upstream.events.cut();
    upstream.events.wait_for_requests(2).await;
    upstream.events.wait_for_open(1).await;
    upstream.events.send("/d", &note("b"));
    let expected =
        json!({ "type": "turnkeep.reset", "properties": { "reason": "upstream_reconnected" } });
    for client in [&mut all, &mut here] {
        let told = client.take(3).await;
        assert_eq!(told[0].payload(), &expected);
        // Clients that know nothing of resets take this for a new connection.
        assert_eq!((told[1].kind(), told[1].id.as_deref()), ("server.connected", None));
        assert_eq!(texts(&told[2..]), ["b"]);
        let (old, new) =
            (before.split_once('-').unwrap().0, told[2].id().split_once('-').unwrap().0);
        assert_ne!(old, new, "a new epoch");
        assert!(told[0].id().starts_with(new));
        let header = [("last-event-id", told[0].id())];
        let mut again = SseClient::open_with(&host.origin(), GLOBAL, &header).await;
        assert_eq!(texts(&again.take(1).await), ["b"]);
    }
    let header = [("last-event-id", before.as_str())];
    let mut late = SseClient::open_with(&host.origin(), GLOBAL, &header).await;
    assert_eq!(late.next().await.payload()["properties"]["reason"], "unknown_epoch");
}

#[tokio::test]
async fn patches_are_reduced_and_reasoning_goes_to_those_who_want_it() {
    let (upstream, host) = host(|_| {}).await;
    let mut with = open(&host, GLOBAL).await;
    let mut without = open(&host, &format!("{GLOBAL}?includeReasoning=false")).await;
    let part = |kind: &str, id: &str| {
        json!({ "type": "message.part.updated", "properties": { "part": {
            "id": id, "messageID": "m", "sessionID": "s", "type": kind, "text": "" } } })
    };
    let delta = |id: &str| {
        json!({ "type": "message.part.delta", "properties": {
            "sessionID": "s", "messageID": "m", "partID": id, "field": "text", "delta": "x" } })
    };
    let diffs = json!([{ "file": "a", "patch": "P".repeat(70_000), "additions": 1 }]);
    let updated = |kind: &str, key: &str| {
        json!({ "type": kind, key: { "sessionID": "s",
            "info": { "id": "m", "role": "user", "summary": { "diffs": diffs } } } })
    };
    upstream.events.send("/d", &updated("message.updated", "properties"));
    let sync = json!({ "type": "sync", "syncEvent": {
        "type": "message.updated.1", "aggregateID": "s", "data": updated("x", "data")["data"] } });
    upstream.events.send("/d", &sync);
    upstream.events.send("/d", &part("reasoning", "r"));
    upstream.events.send("/d", &part("text", "t"));
    upstream.events.send("/d", &delta("r"));
    upstream.events.send("/d", &delta("t"));
    upstream.events.send("/d", &note("end"));
    let with = with.take(7).await;
    for block in &with[..2] {
        assert!(block.data.to_string().len() < 2000, "{}", block.data);
        assert!(block.data.to_string().contains(r#""additions":1"#));
    }
    let without = without.take(5).await;
    let kept: Vec<_> = [0, 1, 3, 5, 6].iter().map(|at| with[*at].clone()).collect();
    assert_eq!(without, kept, "the same events under the same ids");
    // What has been, passes the filter as well.
    let header = [("last-event-id", with[0].id())];
    let target = format!("{GLOBAL}?includeReasoning=false");
    let mut again = SseClient::open_with(&host.origin(), &target, &header).await;
    assert_eq!(again.take(4).await, kept[1..]);
    // One that comes midway knows what kind of part is being written.
    let mut midway = open(&host, &target).await;
    upstream.events.send("/d", &delta("r"));
    upstream.events.send("/d", &delta("t"));
    assert_eq!(midway.next().await.payload()["properties"]["partID"], "t");
}

#[tokio::test]
async fn a_client_hears_a_heartbeat_as_comment_and_as_event() {
    let (upstream, host) =
        host(|options| options.event_timing.heartbeat = Duration::from_millis(30)).await;
    upstream
        .events
        .send_bytes("data: {\"payload\":{\"type\":\"server.heartbeat\",\"properties\":{}}}\n\n");
    let mut client = open(&host, GLOBAL).await;
    for _ in 0..3 {
        let comment = client.try_next().await.unwrap().unwrap();
        assert_eq!(comment, Block { id: None, data: Value::Null });
        let event = client.try_next().await.unwrap().unwrap();
        assert_eq!((event.kind(), event.id.as_deref()), ("server.heartbeat", None));
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped_and_nobody_waits_for_it() {
    let (upstream, host) = host(|options| {
        options.client_queue_bytes = 1 << 20;
        options.replay_buffer_bytes = 1 << 20;
        options.event_timing.farewell = Duration::from_millis(200);
    })
    .await;
    let address = host.origin().replace("http://", "").parse().unwrap();
    let mut deaf = deaf(address, GLOBAL, "").await;
    let mut client = open(&host, GLOBAL).await;
    let text = "x".repeat(100_000);
    let mut sent = 0;
    let stats = || host.host.hub().stats();
    while stats().clients_too_slow == 0 {
        upstream.events.send("/d", &note(&text));
        assert_eq!(texts(&client.take(1).await), [text.as_str()]);
        sent += 1;
        assert!(sent < 1000, "nobody is dropped: {:?}", stats());
    }
    assert_eq!(stats().sse_clients, 1);
    upstream.events.send("/d", &note("after it"));
    assert_eq!(texts(&client.take(1).await), ["after it"]);
    assert!(stats().replay_bytes < 4 << 20, "{:?}", stats());
    // When it reads at last it finds why, and that its stream is broken off.
    let mut read = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(10), deaf.read_to_end(&mut read)).await;
    let _ = end.expect("the connection is ended");
    let read = String::from_utf8_lossy(&read);
    let tail = &read[read.len().saturating_sub(300)..];
    assert!(tail.contains(r#"{"type":"turnkeep.reset","properties":{"reason":"slow"}}"#), "{tail}");
    assert!(!read.ends_with("0\r\n\r\n"), "a body that ends well would be taken for whole");
}

#[tokio::test]
async fn a_host_that_stops_ends_its_streams() {
    let (upstream, host) = host(|_| {}).await;
    let mut client = open(&host, GLOBAL).await;
    let started = std::time::Instant::now();
    let stopping = host.stop();
    let ((), end) = tokio::join!(stopping, client.try_next());
    assert_eq!(end.unwrap(), None);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    upstream.events.wait_for_open(0).await;
}

#[tokio::test]
async fn a_program_can_publish_events_of_its_own() {
    let (_upstream, host) = host(|_| {}).await;
    let mut client = open(&host, GLOBAL).await;
    let id = host.host.hub().publish(Published {
        directory: None,
        project: None,
        payload: note("own").to_string().as_str().into(),
        origin: Origin::Store,
    });
    let event = client.next().await;
    assert_eq!((event.id(), event.data["directory"].as_str()), (&*id.unwrap().to_string(), None));
}

#[tokio::test]
async fn without_an_upstream_the_store_can_be_watched() {
    let store = TestStore::new();
    let mut options = HostOptions::default();
    options.store = Some(store.store.clone());
    let host = RunningHost::start(options).await;
    let mut client = open(&host, GLOBAL).await;
    let mut here = open(&host, "/api/event?directory=/d").await;
    let mut nowhere = open(&host, DIRECTORY).await;
    for (directory, text) in [(Some("/d"), "a"), (None, "b")] {
        host.host.hub().publish(Published {
            directory: directory.map(str::to_owned),
            project: None,
            payload: note(text).to_string().as_str().into(),
            origin: Origin::Store,
        });
    }
    assert_eq!(texts(&client.take(2).await), ["a", "b"]);
    assert_eq!(texts(&here.take(2).await), ["a", "b"]);
    assert_eq!(texts(&nowhere.take(1).await), ["b"]);
}

#[tokio::test]
async fn without_anything_to_watch_there_is_no_stream() {
    let host = RunningHost::start(HostOptions::default()).await;
    for target in [GLOBAL, DIRECTORY] {
        let told = host.get(target).await;
        assert_eq!(
            (told.status, told.body.as_str()),
            (404, r#"{"error":"no upstream configured"}"#)
        );
    }
}
