//! What a stranger can cost a host, and what HTTPS promises. `docs/security.md` names these tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{sync::Arc, time::Duration};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use support::{
    door::{Door, PASSWORD, ask_over, private, until_closed},
    host::RunningHost,
    store::{TestStore, prompt},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, version},
};
use turnkeep_host::{HostOptions, TlsOptions};
use turnkeep_store::SessionStore;

const SESSIONS: &str = "/api/turnkeep/sessions";

#[tokio::test]
async fn bodies_that_are_too_large_are_refused_before_they_come() {
    let door = Door::new().await;
    let long = door.log_in(&"x".repeat(5000), "").await;
    assert_eq!((long.status, long.code().as_str()), (413, "request body too large"));
    let login = "/auth/login";
    let mut stream = TcpStream::connect(door.address()).await.unwrap();
    let head = format!("POST {login} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4097\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    timeout(Duration::from_secs(5), stream.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    // Without a length the bytes are counted.
    let mut stream = TcpStream::connect(door.address()).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let body = format!(
        "POST {login} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
         {chunk}{chunk}0\r\n\r\n"
    );
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    for body in ["", "{}", "[]", r#"{"password":7}"#, "canary"] {
        let seen = door.ask("POST", login, "", body).await;
        assert_eq!(seen.status, 400, "{body}");
        assert!(!seen.body.contains("canary"), "{seen:?}");
    }
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let door = Door::new().await;
    let many = "X-A: 1\r\n".repeat(200);
    assert_eq!(door.get("/health", &many).await.status, 431);
    // It may have hung up before all of it was sent, which hides what it said.
    let large = format!("X-A: {}\r\n", "a".repeat(1_000_000));
    assert!([431, 0].contains(&door.get("/health", &large).await.status));
}

#[tokio::test]
async fn a_head_that_comes_slowly_is_not_waited_for() {
    let limit = Duration::from_millis(300);
    let door = Door::with(|options| options.limits.head = limit).await;
    let mut silent = TcpStream::connect(door.address()).await.unwrap();
    assert!(until_closed(&mut silent).await < Duration::from_secs(5));

    let slow = TcpStream::connect(door.address()).await.unwrap();
    let (mut reading, mut writing) = slow.into_split();
    let dripping = tokio::spawn(async move {
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ".iter().chain([b'a'; 500].iter()) {
            if writing.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    let mut bytes = Vec::new();
    let _ = timeout(Duration::from_secs(5), reading.read_to_end(&mut bytes)).await.unwrap();
    dripping.abort();
}

#[tokio::test]
async fn a_body_that_stops_coming_is_not_waited_for() {
    let door = Door::with(|options| {
        options.limits.body_idle = Duration::from_millis(200);
    })
    .await;
    let mut stream = TcpStream::connect(door.address()).await.unwrap();
    let head = "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(until_closed(&mut stream).await < Duration::from_secs(5));
    assert_eq!(door.get("/health", "").await.status, 200);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped() {
    let store = TestStore::new();
    let text = "x".repeat(24 << 20);
    store.add_made("large", &[prompt("u1", &text)]).await;
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    options.limits.write_idle = Duration::from_millis(300);
    let host = RunningHost::start(options).await;
    let address = host.origin().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let path = "/api/session/large/message/u1";
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    // By the time it begins to read, it has been given up: what is left is what was on its way.
    sleep(Duration::from_secs(2)).await;
    let mut bytes = Vec::new();
    let _ = timeout(Duration::from_secs(8), stream.read_to_end(&mut bytes)).await.unwrap();
    assert!(!bytes.is_empty() && bytes.len() < text.len(), "{}", bytes.len());
}

/// A host that speaks HTTPS, and a connector that trusts it.
async fn tls_door(
    versions: &[&'static tokio_rustls::rustls::SupportedProtocolVersion],
) -> (Door, TlsConnector) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = TempDir::new().unwrap();
    let certificate = private(&folder, "cert.pem", &cert.pem());
    let key = private(&folder, "key.pem", &signing_key.serialize_pem());
    let door = Door::with(|options| {
        options.tls = Some(TlsOptions { certificate: certificate.clone(), key });
        options.limits.head = Duration::from_millis(500);
    })
    .await;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (door, TlsConnector::from(Arc::new(config)))
}

#[tokio::test]
async fn https_is_served_with_cookies_that_stay_on_it() {
    for versions in [[&version::TLS13], [&version::TLS12]] {
        let (door, connector) = tls_door(&versions).await;
        let ask = async |method: &str, path: &str, lines: &str, body: &str| {
            let stream = TcpStream::connect(door.address()).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let stream = connector.connect(name, stream).await.unwrap();
            ask_over(stream, method, path, lines, body).await
        };
        let host = "Host: localhost\r\n";
        let seen = ask("GET", "/health", host, "").await;
        assert_eq!((seen.status, seen.body.as_str()), (200, r#"{"status":"ok"}"#));
        assert_eq!(seen.header("strict-transport-security"), None, "others are on localhost too");
        let seen = ask("GET", "/health", "Host: keep.example\r\n", "").await;
        assert_eq!(seen.header("strict-transport-security"), Some("max-age=31536000"));
        let body = format!(r#"{{"password":"{PASSWORD}"}}"#);
        let seen = ask("POST", "/auth/login", host, &body).await;
        let set = seen.header("set-cookie").unwrap();
        assert!(set.starts_with("__Host-turnkeep=") && set.ends_with("; Secure"), "{set}");
        let pair = set.split(';').next().unwrap();
        let ours = format!("{host}Origin: https://localhost\r\nCookie: {pair}\r\n");
        assert_eq!(ask("GET", SESSIONS, &ours, "").await.status, 200);
        let plain = format!("{host}Origin: http://localhost\r\nCookie: {pair}\r\n");
        assert_eq!(ask("GET", SESSIONS, &plain, "").await.status, 403);
    }
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_not_waited_for() {
    let (door, _) = tls_door(&[&version::TLS13]).await;
    let mut silent = TcpStream::connect(door.address()).await.unwrap();
    assert!(until_closed(&mut silent).await < Duration::from_secs(5));
    let mut plain = TcpStream::connect(door.address()).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(until_closed(&mut plain).await < Duration::from_secs(5));
}
