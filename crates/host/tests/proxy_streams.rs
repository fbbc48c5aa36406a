//! Bodies on their way through the proxy: as they come, and to whatever end they come to.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use support::{
    host::RunningHost,
    raw_upstream::{RawUpstream, Wire},
    upstream::wait_until,
};
use turnkeep_host::{HostOptions, ProxyOptions, UpstreamOptions};

async fn host_with(upstream: UpstreamOptions, set: impl Fn(&mut ProxyOptions)) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(upstream);
    set(&mut options.proxy);
    RunningHost::start(options).await
}

async fn host_of(upstream: &RawUpstream) -> RunningHost {
    host_with(upstream.options(), |_| {}).await
}

async fn asked(host: &RunningHost, lines: &[&str]) -> Wire {
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(lines).await;
    wire
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// Counts the connections whose other side went away while `serve` was with them.
fn counter() -> (Arc<AtomicUsize>, impl Fn() -> Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&count);
    (count, move || Arc::clone(&shared))
}

#[tokio::test]
async fn each_piece_arrives_before_the_next_is_sent_in_both_directions() {
    // The upstream answers every piece before it reads the next one.
    let upstream = RawUpstream::start(|mut wire| async move {
        assert_eq!(wire.header("transfer-encoding").as_deref(), Some("chunked"));
        wire.send(CHUNKED).await;
        loop {
            let piece = wire.chunk().await.unwrap();
            if piece.is_empty() {
                wire.send("0\r\n\r\n").await;
                return Some(wire);
            }
            wire.send(chunk(&piece.to_uppercase())).await;
        }
    })
    .await;
    let host = host_of(&upstream).await;
    let mut wire = asked(&host, &["POST /api/x HTTP/1.1", "transfer-encoding: chunked"]).await;
    wire.send(chunk("one")).await;
    assert!(wire.read_head().await);
    assert_eq!(wire.chunk().await.as_deref(), Some("ONE"));
    for piece in ["two", "three"] {
        wire.send(chunk(piece)).await;
        assert_eq!(wire.chunk().await, Some(piece.to_uppercase()));
    }
    wire.send("0\r\n\r\n").await;
    assert_eq!(wire.chunk().await.as_deref(), Some(""));
}

#[tokio::test]
async fn a_known_length_stays_known() {
    let upstream = RawUpstream::start(|mut wire| async move {
        assert_eq!(wire.header("content-length").as_deref(), Some("5"));
        assert_eq!(wire.header("transfer-encoding"), None);
        wire.body().await;
        wire.json(200, "[1,2]").await;
        Some(wire)
    })
    .await;
    let host = host_of(&upstream).await;
    let mut wire = asked(&host, &["PUT /api/x HTTP/1.1", "content-length: 5"]).await;
    wire.send("12345").await;
    assert!(wire.read_head().await);
    assert_eq!(wire.header("content-length").as_deref(), Some("5"));
    assert_eq!(wire.body().await.as_deref(), Some("[1,2]"));
}

#[tokio::test]
async fn events_pass_at_once_and_uncompressed() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.send(EVENTS).await;
        wire.send(chunk("data: 1\n\n")).await;
        // No second event before the client has the first: it never closes.
        wire.rest().await;
        None
    })
    .await;
    let host = host_of(&upstream).await;
    let mut wire =
        asked(&host, &["GET /api/api/session/x/event HTTP/1.1", "accept-encoding: gzip, br"]).await;
    assert!(wire.read_head().await);
    assert_eq!(wire.header("content-encoding"), None);
    assert_eq!(wire.header("x-accel-buffering").as_deref(), Some("no"));
    assert_eq!(wire.header("cache-control").as_deref(), Some("no-cache"));
    assert_eq!(wire.chunk().await.as_deref(), Some("data: 1\n\n"));
}

#[tokio::test]
async fn what_the_upstream_sends_is_not_compressed_again() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.json(200, &format!("\"{}\"", "x".repeat(10_000))).await;
        Some(wire)
    })
    .await;
    let host = host_of(&upstream).await;
    let mut wire = asked(&host, &["GET /api/x HTTP/1.1", "accept-encoding: gzip"]).await;
    assert!(wire.read_head().await);
    assert_eq!(
        (wire.header("content-encoding"), wire.header("content-length")),
        (None, Some("10002".to_owned()))
    );
}

#[tokio::test]
async fn an_upstream_that_dies_in_the_middle_breaks_the_body() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.send(match wire.target() {
            "/chunked" => format!("{CHUNKED}{}", chunk("half")),
            "/events" => format!("{EVENTS}{}", chunk("data: 1\n\n")),
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf".to_owned(),
        })
        .await;
        None
    })
    .await;
    let host = host_of(&upstream).await;
    for path in ["chunked", "events", "length"] {
        let mut wire = asked(&host, &[&format!("GET /api/{path} HTTP/1.1")]).await;
        assert!(wire.read_head().await);
        assert_eq!(wire.body().await, None, "{path}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_request_wherever_it_is() {
    let (gone, count) = counter();
    let upstream = RawUpstream::start(move |mut wire| {
        let gone = count();
        async move {
            match wire.target() {
                "/body" => wire.send(format!("{CHUNKED}{}", chunk("half"))).await,
                "/upload" => assert_eq!(wire.chunk().await.as_deref(), Some("half")),
                _ => {}
            }
            wire.rest().await;
            gone.fetch_add(1, Ordering::SeqCst);
            None
        }
    })
    .await;
    let host = host_of(&upstream).await;
    let waiting = asked(&host, &["GET /api/head HTTP/1.1"]).await;
    let prompting = asked(&host, &["POST /api/head HTTP/1.1", "content-length: 0"]).await;
    let mut reading = asked(&host, &["GET /api/body HTTP/1.1"]).await;
    assert!(reading.read_head().await);
    let mut writing =
        asked(&host, &["POST /api/upload HTTP/1.1", "transfer-encoding: chunked"]).await;
    writing.send(chunk("half")).await;
    wait_until("all have come", || upstream.heads().len() == 4).await;
    assert_eq!(gone.load(Ordering::SeqCst), 0);
    drop((waiting, prompting, reading, writing));
    wait_until("the upstream is told", || gone.load(Ordering::SeqCst) == 4).await;
}

#[tokio::test]
async fn an_upload_that_stops_is_given_up() {
    let upstream = RawUpstream::start(|mut wire| async move {
        assert_eq!(wire.body().await, None);
        None
    })
    .await;
    let short = Duration::from_millis(50);
    let host = host_with(upstream.options(), |options| options.idle = short).await;
    let mut wire = asked(&host, &["POST /api/x HTTP/1.1", "content-length: 8"]).await;
    wire.send("half").await;
    assert!(wire.read_head().await);
    assert_eq!(wire.status(), 408);
    assert_eq!(wire.body().await.unwrap(), r#"{"error":"the request's body stopped coming"}"#);
}

#[tokio::test]
async fn a_download_that_stops_is_broken_off_and_a_stream_of_events_ends() {
    let upstream = RawUpstream::start(|mut wire| async move {
        let head = if wire.target() == "/events" { EVENTS } else { CHUNKED };
        wire.send(format!("{head}{}", chunk("data: 1\n\n"))).await;
        wire.rest().await;
        None
    })
    .await;
    let short = Duration::from_millis(50);
    let host = host_with(upstream.options(), |options| {
        options.idle = short;
        options.stall = short;
    })
    .await;
    for (path, whole) in [("/api/download", None), ("/api/events", Some("data: 1\n\n".to_owned()))]
    {
        let mut wire = asked(&host, &[&format!("GET {path} HTTP/1.1")]).await;
        assert!(wire.read_head().await);
        assert_eq!(wire.body().await, whole, "{path}");
    }
}

#[tokio::test]
async fn an_answer_may_come_before_the_body_was_sent() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.json(413, r#"{"too":"large"}"#).await;
        wire.rest().await;
        None
    })
    .await;
    let host = host_of(&upstream).await;
    let mut wire = asked(&host, &["POST /api/x HTTP/1.1", "content-length: 1000000"]).await;
    wire.send("begun").await;
    assert!(wire.read_head().await);
    assert_eq!((wire.status(), wire.body().await.as_deref()), (413, Some(r#"{"too":"large"}"#)));
}

#[tokio::test]
async fn get_has_a_deadline_for_its_head_and_a_prompt_has_none() {
    let upstream = RawUpstream::start(|mut wire| async move {
        if wire.method() == "GET" {
            wire.rest().await;
            return None;
        }
        wire.body().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        wire.json(200, "{}").await;
        Some(wire)
    })
    .await;
    let short = Duration::from_millis(100);
    let host = host_with(upstream.options(), |options| {
        options.head_deadline = short;
        options.idle = short;
    })
    .await;
    let mut wire = asked(&host, &["GET /api/x HTTP/1.1"]).await;
    assert!(wire.read_head().await);
    let body = wire.body().await.unwrap();
    assert_eq!((wire.status(), body.as_str()), (504, r#"{"error":"OpenCode upstream timed out"}"#));
    let mut wire =
        asked(&host, &["POST /api/session/ses_1/message HTTP/1.1", "content-length: 0"]).await;
    assert!(wire.read_head().await);
    assert_eq!(wire.status(), 200);
}
