//! The one reader of the upstream's events: when it asks, when it gives up, and what clients are
//! told meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use support::{
    events::{SseClient, deaf},
    host::RunningHost,
    store::TestStore,
    upstream::{Act, ScriptedUpstream, answer, response, wait_until},
};
use tokio::io::AsyncReadExt as _;
use turnkeep_host::{HostOptions, Origin};

const GLOBAL: &str = "/api/global/event";

async fn start(upstream: &ScriptedUpstream, set: impl FnOnce(&mut HostOptions)) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    options.event_timing.retry = Duration::from_millis(10);
    options.event_timing.retry_at_most = Duration::from_millis(40);
    options.event_timing.hold = Duration::from_millis(100);
    set(&mut options);
    RunningHost::start(options).await
}

async fn upstream(act: Act) -> ScriptedUpstream {
    let upstream = ScriptedUpstream::start(|_| None).await;
    upstream.events.answer_with(act);
    upstream
}

fn is_followed(host: &RunningHost) -> bool {
    host.host.hub().position(Origin::Upstream).is_some()
}

#[tokio::test]
async fn there_is_one_reader_whoever_watches_or_nobody() {
    let upstream = upstream(Act::Stream).await;
    let host = start(&upstream, |_| {}).await;
    upstream.events.wait_for_open(1).await;
    let mut clients = Vec::new();
    for target in [GLOBAL, "/api/event?directory=/a", "/api/event?directory=/b"] {
        clients.push(SseClient::open(&host.origin(), target).await);
    }
    // A second address of the same host.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let second = tokio::spawn(Arc::clone(&host.host).serve(listener, std::future::pending()));
    upstream.events.send("/a", &json!({ "type": "note", "properties": {} }));
    clients[0].next().await;
    assert_eq!((upstream.events.requests().len(), upstream.events.open()), (1, 1));
    second.abort();
    let _ = second.await;
    upstream.events.send("/a", &json!({ "type": "note", "properties": {} }));
    clients[0].next().await;
    host.stop().await;
    upstream.events.wait_for_open(0).await;
}

#[tokio::test]
async fn a_host_that_does_not_serve_reads_nothing() {
    let upstream = upstream(Act::Stream).await;
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options());
    let host = turnkeep_host::Host::new(options).unwrap();
    assert_eq!(host.hub().position(Origin::Upstream), None);
    assert_eq!(host.hub().stats().upstream_connects, 0);
    assert!(upstream.events.requests().is_empty());
}

#[tokio::test]
async fn nothing_is_asked_before_the_upstream_is_ready() {
    let is_ready = Arc::new(AtomicBool::new(false));
    let ready = Arc::clone(&is_ready);
    let upstream = ScriptedUpstream::start(move |request| {
        let starting = request.path == "/global/health" && !ready.load(Ordering::SeqCst);
        starting.then(|| answer(503, &[], "{}"))
    })
    .await;
    upstream.events.answer_with(Act::Stream);
    let host = start(&upstream, |_| {}).await;
    wait_until("it is probed", || upstream.probes() > 3).await;
    assert!(upstream.events.requests().is_empty());
    is_ready.store(true, Ordering::SeqCst);
    upstream.events.wait_for_open(1).await;
    assert_eq!(upstream.events.requests().len(), 1);
    wait_until("it is followed", || is_followed(&host)).await;
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_is_asked_again() {
    let upstream = upstream(Act::Stall).await;
    let host = start(&upstream, |options| {
        options.event_timing.connect = Duration::from_millis(80);
    })
    .await;
    upstream.events.wait_for_requests(2).await;
    upstream.wait_for_hangups(1).await;
    let told = host.get(GLOBAL).await;
    assert_eq!(
        (told.status, told.body.as_str()),
        (504, r#"{"error":"OpenCode upstream timed out"}"#)
    );
    upstream.events.answer_with(Act::Stream);
    upstream.events.wait_for_open(1).await;
    SseClient::open(&host.origin(), GLOBAL).await;
}

#[tokio::test]
async fn a_refusal_is_not_read_and_the_upstream_is_asked_again() {
    let endless = b"HTTP/1.1 503 Whatever\r\ncontent-length: 1000000000\r\n\r\nx".to_vec();
    let upstream = upstream(Act::SendAndStall(endless)).await;
    let host = start(&upstream, |_| {}).await;
    upstream.events.wait_for_requests(3).await;
    upstream.wait_for_hangups(2).await;
    let told = host.get(GLOBAL).await;
    assert_eq!(
        (told.status, told.body.as_str()),
        (503, r#"{"error":"OpenCode service unavailable"}"#)
    );
    let head = host.request("HEAD", GLOBAL).send().await.unwrap();
    assert_eq!(head.status, 503);
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_none() {
    let page = response(200, &[("content-type", "text/html")], "<html>");
    let upstream = upstream(Act::Send(page)).await;
    let host = start(&upstream, |_| {}).await;
    upstream.events.wait_for_requests(2).await;
    assert!(!is_followed(&host));
    assert_eq!(host.get(GLOBAL).await.status, 503);
}

#[tokio::test]
async fn a_refused_login_is_told_at_once_and_tried_slowly() {
    let upstream = upstream(answer(401, &[], "{}")).await;
    let host = start(&upstream, |options| {
        options.event_timing.hold = Duration::from_secs(60);
        options.event_timing.retry_login = Duration::from_secs(60);
    })
    .await;
    let started = Instant::now();
    assert_eq!(host.get(GLOBAL).await.status, 503);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(upstream.events.requests().len(), 1);
}

#[tokio::test]
async fn a_starting_upstream_is_waited_for() {
    let upstream = upstream(answer(503, &[], "{}")).await;
    let host = start(&upstream, |options| {
        options.event_timing.hold = Duration::from_secs(8);
    })
    .await;
    let origin = host.origin();
    let opening = SseClient::open(&origin, GLOBAL);
    let starting = async {
        upstream.events.wait_for_requests(4).await;
        upstream.events.answer_with(Act::Stream);
    };
    let (mut client, ()) = tokio::join!(opening, starting);
    upstream.events.wait_for_open(1).await;
    upstream.events.send("/d", &json!({ "type": "note", "properties": {} }));
    assert_eq!(client.next().await.kind(), "note");
}

#[tokio::test]
async fn one_that_was_there_is_expected_back() {
    let upstream = upstream(Act::Stream).await;
    let host = start(&upstream, |_| {}).await;
    wait_until("it is followed", || is_followed(&host)).await;
    upstream.events.answer_with(answer(503, &[], "{}"));
    upstream.events.cut();
    wait_until("it is lost", || !is_followed(&host)).await;
    let mut client = SseClient::open(&host.origin(), GLOBAL).await;
    upstream.events.answer_with(Act::Stream);
    assert_eq!(client.next().await.kind(), "turnkeep.reset");
}

#[tokio::test]
async fn a_store_is_watched_whatever_the_upstream_does() {
    let upstream = upstream(Act::Stall).await;
    let store = TestStore::new();
    let host = start(&upstream, |options| options.store = Some(store.store.clone())).await;
    let mut client = SseClient::open(&host.origin(), GLOBAL).await;
    upstream.kill().await;
    client.is_silent_for(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn a_host_that_stops_leaves_no_request_behind() {
    let upstream = upstream(Act::Stall).await;
    let host = start(&upstream, |_| {}).await;
    upstream.events.wait_for_requests(1).await;
    let started = Instant::now();
    host.stop().await;
    upstream.wait_for_hangups(1).await;
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_stream_that_says_nothing_is_given_up() {
    let upstream = upstream(Act::Stream).await;
    let host = start(&upstream, |options| {
        options.event_timing.stall = Duration::from_millis(150);
    })
    .await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(600) {
        upstream.events.send_bytes(": still here\n\n");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(upstream.events.requests().len(), 1, "a comment is a sign of life");
    upstream.events.wait_for_requests(2).await;
    assert!(host.host.hub().stats().upstream_stalls >= 1);
}

#[tokio::test]
async fn a_block_that_comes_in_pieces_is_one_event() {
    let upstream = upstream(Act::Stream).await;
    let host = start(&upstream, |_| {}).await;
    upstream.events.wait_for_open(1).await;
    let mut client = SseClient::open(&host.origin(), GLOBAL).await;
    let event = json!({ "directory": "/d", "payload": { "type": "note", "properties": { "text": "é🦀" } } });
    let block = format!("id: evt-1\r\ndata: {event}\r\n\r\n");
    for byte in block.as_bytes() {
        upstream.events.send_bytes([*byte]);
    }
    assert_eq!(client.next().await.data, event);
}

/// A stream of events of a reasoning and of a text part, whose lines end in any way.
fn thinking_and_saying() -> (String, Vec<String>) {
    let (mut stream, mut said) = (String::new(), Vec::new());
    let mut ends = ["\n", "\r\n", "\r"].iter().cycle();
    let mut tell = |payload: &str| {
        let end = ends.next().unwrap();
        stream += &["event: message", end, "data: ", payload, end, end].concat();
    };
    for (id, kind) in [("r", "reasoning"), ("t", "text")] {
        // As nobody would spell it anew.
        let event = format!(
            r#"{{"type":"message.part.updated.1", "properties":{{"part":{{"id":"{id}","messageID":"m","type":"{kind}","n":1.0e0,"s":"\u0041\/"}} }} }}"#
        );
        tell(&event);
        said.extend((id == "t").then_some(event));
    }
    for number in 0..40 {
        for (id, word) in [("r", "SECRET"), ("t", "said")] {
            let event = format!(
                r#"{{"properties":{{"messageID":"m","partID":"{id}","field":"text","delta":"{word} é🦀 {number}"}},"type":"message.part.delta"}}"#
            );
            tell(&event);
            said.extend((id == "t").then_some(event));
        }
    }
    tell(r#"{"type":"end"}"#);
    (stream + "\n", said)
}

#[tokio::test]
async fn however_a_stream_is_cut_the_rest_keeps_its_order_and_bytes_without_reasoning() {
    let (stream, said) = thinking_and_saying();
    let bytes = stream.as_bytes();
    let at_returns = || bytes.split_inclusive(|byte| *byte == b'\r').collect::<Vec<_>>();
    for pieces in [vec![bytes], bytes.chunks(1).collect(), bytes.chunks(7).collect(), at_returns()]
    {
        let upstream = upstream(Act::Stream).await;
        let host = start(&upstream, |_| {}).await;
        upstream.events.wait_for_open(1).await;
        let address = host.origin().replace("http://", "").parse().unwrap();
        let mut client = deaf(address, &format!("{GLOBAL}?includeReasoning=false"), "").await;
        for piece in pieces {
            upstream.events.send_bytes(piece);
        }
        let mut got = Vec::new();
        while !String::from_utf8_lossy(&got).contains(r#"{"type":"end"}"#) {
            let reading = client.read_buf(&mut got);
            let read = tokio::time::timeout(Duration::from_secs(10), reading).await;
            assert_ne!(read.expect("more comes").unwrap(), 0, "it ended");
        }
        let text = String::from_utf8(got).unwrap();
        assert!(!text.contains("SECRET") && !text.contains("reasoning"), "{text}");
        let mut rest = text.as_str();
        for event in &said {
            let at = rest.find(&format!(r#""payload":{event}}}"#));
            rest = &rest[at.unwrap_or_else(|| panic!("{event} in {rest}"))..];
        }
        assert_eq!(text.matches("id: ").count(), said.len() + 1, "dropped events have no ids");
    }
}
