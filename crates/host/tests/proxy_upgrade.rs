//! Connections that become WebSockets on their way through the proxy.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use support::{
    host::RunningHost,
    raw_upstream::{RawUpstream, Wire},
    upstream::wait_until,
};
use tokio::io::AsyncWriteExt as _;
use turnkeep_host::HostOptions;

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
     upgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

const OPENING: [&str; 5] = [
    "GET /api/pty/pty_1/connect?cursor=0 HTTP/1.1",
    "connection: keep-alive, Upgrade",
    "upgrade: websocket",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version: 13",
];

async fn host_of(upstream: &RawUpstream) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(upstream.options().with_password(Some("x".to_owned())));
    RunningHost::start(options).await
}

/// Switches, says so, and sends back in capitals whatever comes until nothing comes any more.
async fn echoing() -> RawUpstream {
    RawUpstream::start(|mut wire| async move {
        wire.send(SWITCHED).await;
        wire.send("hello").await;
        let mut buffer = [0; 64];
        while let Ok(read @ 1..) =
            tokio::io::AsyncReadExt::read(&mut wire.stream, &mut buffer).await
        {
            wire.send(buffer[..read].to_ascii_uppercase()).await;
        }
        wire.send("bye").await;
        None
    })
    .await
}

async fn opened(host: &RunningHost) -> Wire {
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(&OPENING).await;
    assert!(wire.read_head().await);
    assert_eq!(wire.status(), 101, "{}", wire.head);
    wire
}

#[tokio::test]
async fn bytes_go_both_ways() {
    let upstream = echoing().await;
    let host = host_of(&upstream).await;
    let mut wire = opened(&host).await;
    assert_eq!(wire.header("upgrade").as_deref(), Some("websocket"));
    assert_eq!(wire.header("connection").unwrap().to_lowercase(), "upgrade");
    assert_eq!(
        wire.header("sec-websocket-accept").as_deref(),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    assert_eq!(wire.take(5).await, "hello");
    for _ in 0..3 {
        wire.send("ping").await;
        assert_eq!(wire.take(4).await, "PING");
    }
    let head = upstream.heads().remove(0);
    assert!(head.starts_with("GET /pty/pty_1/connect?cursor=0 HTTP/1.1\r\n"), "{head}");
    let head = head.to_ascii_lowercase();
    for line in
        ["connection: upgrade", "upgrade: websocket", "sec-websocket-key: dghlihnhbxbszsbub25jzq=="]
    {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line} in {head}");
    }
    assert!(head.contains("authorization: basic"), "{head}");
}

#[tokio::test]
async fn a_side_that_has_said_everything_still_hears_the_rest() {
    let upstream = echoing().await;
    let host = host_of(&upstream).await;
    let mut wire = opened(&host).await;
    wire.send("last").await;
    wire.stream.shutdown().await.unwrap();
    assert_eq!(wire.rest().await, "helloLASTbye");
}

#[tokio::test]
async fn the_end_of_the_upstream_ends_the_client() {
    let upstream = echoing().await;
    let host = host_of(&upstream).await;
    let mut wire = opened(&host).await;
    assert_eq!(wire.take(5).await, "hello");
    upstream.kill().await;
    assert_eq!(wire.rest().await, "");
}

#[tokio::test]
async fn the_end_of_the_client_ends_the_upstream() {
    let (done, is_done) = tokio::sync::oneshot::channel();
    let done = std::sync::Mutex::new(Some(done));
    let upstream = RawUpstream::start(move |mut wire| {
        let done = done.lock().unwrap().take().unwrap();
        async move {
            wire.send(SWITCHED).await;
            let _ = done.send(wire.rest().await);
            None
        }
    })
    .await;
    let host = host_of(&upstream).await;
    let mut wire = opened(&host).await;
    wire.send("then gone").await;
    drop(wire);
    assert_eq!(is_done.await.unwrap(), "then gone");
}

#[tokio::test]
async fn a_shutdown_ends_both() {
    let upstream = echoing().await;
    let host = host_of(&upstream).await;
    let mut wire = opened(&host).await;
    assert_eq!(wire.take(5).await, "hello");
    let stopping = tokio::spawn(host.stop());
    assert_eq!(wire.rest().await, "");
    drop(wire);
    stopping.await.unwrap();
}

#[tokio::test]
async fn an_upstream_that_does_not_switch_answers_as_ever() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.json(404, r#"{"name":"NotFoundError"}"#).await;
        Some(wire)
    })
    .await;
    let host = host_of(&upstream).await;
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(&OPENING).await;
    assert!(wire.read_head().await);
    assert_eq!(
        (wire.status(), wire.body().await.unwrap().as_str()),
        (404, r#"{"name":"NotFoundError"}"#)
    );
}

#[tokio::test]
async fn only_websockets_are_asked_for_and_only_what_was_asked_for_is_taken() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.send(SWITCHED).await;
        wire.rest().await;
        None
    })
    .await;
    let host = host_of(&upstream).await;
    for upgrade in
        [&[][..], &["connection: upgrade, http2-settings", "upgrade: h2c", "http2-settings: x"]]
    {
        let mut wire = Wire::to(&host.origin()).await;
        wire.ask(&[&["GET /api/x HTTP/1.1"], upgrade].concat()).await;
        assert!(wire.read_head().await);
        assert_eq!(wire.status(), 503, "{}", wire.head);
    }
    wait_until("both came", || upstream.heads().len() >= 2).await;
    for head in upstream.heads() {
        assert!(!head.contains("upgrade") && !head.contains("http2-settings"), "{head}");
    }
}
