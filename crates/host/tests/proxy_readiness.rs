//! Requests to an upstream that is away, comes back, or goes in the middle.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use support::{
    host::RunningHost,
    raw_upstream::{RawUpstream, Wire},
};
use tokio::net::TcpListener;
use turnkeep_host::{HostOptions, UpstreamOptions};

const RESTARTING: (u16, &str) = (503, r#"{"error":"OpenCode is restarting","restarting":true}"#);
const UNAVAILABLE: (u16, &str) = (503, r#"{"error":"OpenCode service unavailable"}"#);

async fn host_of(upstream: SocketAddr, hold: Duration) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(UpstreamOptions::new(&format!("http://{upstream}")).unwrap());
    options.proxy.hold = hold;
    RunningHost::start(options).await
}

async fn ask(host: &RunningHost, line: &str) -> (u16, String) {
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(&[&format!("{line} HTTP/1.1"), "content-length: 0"]).await;
    assert!(wire.read_head().await);
    let body = wire.body().await.unwrap();
    (wire.status(), body)
}

/// An address where nobody listens, and where somebody can later.
async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

async fn quiet_on(address: SocketAddr) -> RawUpstream {
    RawUpstream::start_on(address, |mut wire| async move {
        wire.json(200, "{}").await;
        Some(wire)
    })
    .await
}

#[tokio::test]
async fn a_request_waits_for_an_upstream_that_starts() {
    let address = nowhere().await;
    let host = host_of(address, Duration::from_secs(6)).await;
    for line in ["GET /api/session", "POST /api/session"] {
        let asking = ask(&host, line);
        let starting = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            quiet_on(address).await
        };
        let (told, upstream) = tokio::join!(asking, starting);
        assert_eq!((told.0, told.1.as_str()), (200, "{}"), "{line}");
        assert_eq!(upstream.heads().len(), 1);
        upstream.kill().await;
    }
}

#[tokio::test]
async fn one_that_does_not_start_is_told_of() {
    let host = host_of(nowhere().await, Duration::from_millis(200)).await;
    for line in ["GET /api/session", "POST /api/session", "GET /api/session/ses_1/message"] {
        let start = Instant::now();
        let (status, body) = ask(&host, line).await;
        assert_eq!((status, body.as_str()), RESTARTING, "{line}");
        assert!(start.elapsed() >= Duration::from_millis(100), "it was waited for");
    }
}

#[tokio::test]
async fn one_that_takes_probes_and_never_answers_them_is_told_of() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = host_of(listener.local_addr().unwrap(), Duration::from_millis(200)).await;
    let (status, body) = ask(&host, "POST /api/session").await;
    assert_eq!((status, body.as_str()), RESTARTING);
}

#[tokio::test]
async fn a_restart_between_two_requests_loses_neither() {
    let address = nowhere().await;
    let host = host_of(address, Duration::from_secs(6)).await;
    let upstream = quiet_on(address).await;
    assert_eq!(ask(&host, "GET /api/session").await.0, 200);
    upstream.kill().await;
    let upstream = quiet_on(address).await;
    assert_eq!(ask(&host, "GET /api/session").await.0, 200);
    assert_eq!(ask(&host, "POST /api/session").await.0, 200);
    assert_eq!(upstream.heads().len(), 2);
    upstream.kill().await;
    let short = host_of(address, Duration::from_millis(100)).await;
    let upstream = quiet_on(address).await;
    assert_eq!(ask(&short, "POST /api/session").await.0, 200);
    upstream.kill().await;
    let (status, body) = ask(&short, "POST /api/session").await;
    assert_eq!((status, body.as_str()), RESTARTING);
}

/// An upstream that closes the first so many connections when a request has come.
async fn closing(times: usize) -> RawUpstream {
    let left = Arc::new(AtomicUsize::new(times));
    RawUpstream::start(move |mut wire| {
        let left = Arc::clone(&left);
        async move {
            if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
                return None;
            }
            wire.json(200, "{}").await;
            Some(wire)
        }
    })
    .await
}

#[tokio::test]
async fn what_changes_something_is_never_sent_twice() {
    for method in ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"] {
        let upstream = closing(1).await;
        let host = host_of(upstream.address, Duration::from_secs(1)).await;
        let (status, body) = ask(&host, &format!("{method} /api/session")).await;
        assert_eq!((status, body.as_str()), UNAVAILABLE, "{method}");
        assert_eq!(upstream.heads().len(), 1, "{method}");
        assert_eq!(ask(&host, &format!("{method} /api/session")).await.0, 200);
    }
}

#[tokio::test]
async fn what_asks_is_sent_a_second_time_and_not_a_third() {
    for (times, told) in [(1, (200, "{}")), (2, UNAVAILABLE)] {
        let upstream = closing(times).await;
        let host = host_of(upstream.address, Duration::from_secs(1)).await;
        let (status, body) = ask(&host, "GET /api/session").await;
        assert_eq!((status, body.as_str()), told);
        assert_eq!(upstream.heads().len(), 2);
    }
}

#[tokio::test]
async fn what_changes_something_does_not_depend_on_an_old_connection() {
    // Every connection is closed after one answer, as if it had been idle for too long.
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.json(200, "{}").await;
        None
    })
    .await;
    let host = host_of(upstream.address, Duration::from_secs(1)).await;
    for _ in 0..20 {
        assert_eq!(ask(&host, "GET /api/session").await.0, 200);
        assert_eq!(ask(&host, "POST /api/session").await.0, 200);
    }
    assert_eq!(upstream.heads().iter().filter(|head| head.starts_with("POST")).count(), 20);
}

#[tokio::test]
async fn what_is_no_http_is_no_answer() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.send("this is not HTTP\r\n\r\n").await;
        None
    })
    .await;
    let host = host_of(upstream.address, Duration::from_secs(1)).await;
    for line in ["GET /api/session", "POST /api/session"] {
        let (status, body) = ask(&host, line).await;
        assert_eq!((status, body.as_str()), UNAVAILABLE, "{line}");
    }
}
