//! Requests that are handed on to the upstream: what of them goes on, and what of the answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use support::{
    host::RunningHost,
    raw_upstream::{RawUpstream, Wire},
    store::{TestStore, turns},
};
use turnkeep_host::{HostOptions, UpstreamOptions};
use turnkeep_store::SessionStore;

async fn host_of(upstream: UpstreamOptions) -> RunningHost {
    let mut options = HostOptions::default();
    options.upstream = Some(upstream);
    RunningHost::start(options).await
}

/// Sends a request of these lines, and returns the answer's head and body.
async fn ask(host: &RunningHost, lines: &[&str]) -> (Wire, String) {
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(lines).await;
    assert!(wire.read_head().await, "{lines:?}");
    let body = if lines[0].starts_with("HEAD") { None } else { wire.body().await };
    (wire, body.unwrap_or_default())
}

/// An upstream that answers every request with these bytes.
async fn saying(answer: &'static str) -> RawUpstream {
    RawUpstream::start(move |mut wire| async move {
        wire.body().await;
        wire.send(answer).await;
        Some(wire)
    })
    .await
}

#[tokio::test]
async fn paths_and_queries_go_on_byte_for_byte() {
    let upstream = RawUpstream::quiet().await;
    let host = host_of(upstream.options()).await;
    for (asked, got) in [
        ("/api/session", "/session"),
        ("/api/api/session?limit=1", "/api/session?limit=1"),
        ("/API/Session", "/Session"),
        ("/api", "/"),
        ("/api/?", "/?"),
        (
            "/api/a%2Fb%20c/'(x)!$&*+,;=:@~?q=%zz'+&&=&q[]=1",
            "/a%2Fb%20c/'(x)!$&*+,;=:@~?q=%zz'+&&=&q[]=1",
        ),
        ("/api/x?u=http://evil.example/../..", "/x?u=http://evil.example/../.."),
        ("http://localhost:1/api/absolute", "/absolute"),
    ] {
        let (answer, body) = ask(&host, &[&format!("GET {asked} HTTP/1.1")]).await;
        assert_eq!((answer.status(), body.as_str()), (200, "{}"), "{asked}");
        assert_eq!(upstream.targets().last().unwrap(), got);
    }
}

#[tokio::test]
async fn a_path_cannot_leave_the_upstreams_part_of_its_server() {
    let upstream = RawUpstream::quiet().await;
    let base = UpstreamOptions::new(&format!("http://{}/base/", upstream.address)).unwrap();
    let host = host_of(base).await;
    for path in [
        "/api/../secret",
        "/api/./x",
        "/api/x/../../secret",
        "/api/%2e%2e/secret",
        "/api/%2E./secret",
        "/api/x/.%2e/%2e%2e/secret",
        "/api/x%2f..%2f..%2fsecret",
        "/api/x%00y",
        "/api/x%0d%0ax",
        "/api/%5c%5cevil.example",
        "/api/..%5csecret",
        "/api/%",
        "/api/%ff",
    ] {
        let (answer, body) = ask(&host, &[&format!("GET {path} HTTP/1.1")]).await;
        assert_eq!(
            (answer.status(), body.as_str()),
            (400, r#"{"error":"malformed path"}"#),
            "{path}"
        );
    }
    // What is no target at all never gets past the parser.
    let (answer, _) = ask(&host, &["GET /api/a\\b HTTP/1.1"]).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(upstream.targets(), Vec::<String>::new());

    let (answer, _) = ask(&host, &["GET /api//evil.example//x HTTP/1.1"]).await;
    assert_eq!(answer.status(), 200);
    let _ = ask(&host, &["GET /api HTTP/1.1"]).await;
    assert_eq!(upstream.targets(), ["/base/evil.example/x", "/base/"]);
}

#[tokio::test]
async fn our_logins_stay_with_us_and_the_upstream_gets_its_own() {
    let upstream = RawUpstream::quiet().await;
    let login = upstream.options().with_password(Some("open sesame".to_owned()));
    let host = host_of(login).await;
    let lines = [
        "POST /api/session HTTP/1.1",
        "authorization: Bearer tk_secret",
        "cookie: turnkeep=secret",
        "connection: keep-alive, x-hop",
        "x-hop: secret",
        "origin: http://localhost",
        "accept-encoding: gzip",
        "x-kept: one",
        "x-kept: two",
        "content-length: 2",
    ];
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(&lines).await;
    wire.send("{}").await;
    assert!(wire.read_head().await);
    assert_eq!(wire.status(), 200);
    let head = upstream.heads().remove(0);
    assert!(!head.contains("secret") && !head.contains("origin"), "{head}");
    let asked = |name: &str, value: &str| {
        assert!(head.contains(&format!("\r\n{name}: {value}\r\n")), "{name} in {head}");
    };
    asked("authorization", "Basic b3BlbmNvZGU6b3BlbiBzZXNhbWU=");
    asked("host", &upstream.address.to_string());
    asked("accept-encoding", "gzip");
    asked("x-kept", "one");
    asked("x-kept", "two");
    asked("content-length", "2");
}

#[tokio::test]
async fn what_the_upstream_says_to_a_browser_is_not_said_in_our_name() {
    let upstream = saying(
        "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nset-cookie: a=1\r\n\
         www-authenticate: Basic realm=\"x\"\r\naccess-control-allow-origin: *\r\n\
         connection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nx-next-cursor: abc\r\n\
         link: <http://127.0.0.1:9/elsewhere>; rel=\"next\"\r\n\r\n",
    )
    .await;
    let host = host_of(upstream.options()).await;
    let (answer, _) = ask(&host, &["GET /api/session HTTP/1.1"]).await;
    assert_eq!(answer.status(), 403);
    for name in
        ["set-cookie", "www-authenticate", "access-control-allow-origin", "x-hop", "keep-alive"]
    {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("x-next-cursor").as_deref(), Some("abc"));
    assert_eq!(answer.header("link").unwrap(), "<http://127.0.0.1:9/elsewhere>; rel=\"next\"");
    assert_eq!(answer.header("x-content-type-options").as_deref(), Some("nosniff"));
}

#[tokio::test]
async fn a_login_that_the_upstream_refuses_is_not_the_clients() {
    let upstream = saying("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await;
    let host = host_of(upstream.options()).await;
    let (answer, body) = ask(&host, &["GET /api/session HTTP/1.1"]).await;
    assert_eq!(answer.status(), 502);
    let expected = r#"{"error":"OpenCode refuses the login that this host has for it","code":"upstream_login"}"#;
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_upstreams_own_errors_pass() {
    let upstream = RawUpstream::start(|mut wire| async move {
        let status = wire.target().trim_start_matches('/').parse().unwrap();
        wire.json(status, r#"{"name":"UnknownError","data":{"message":"said upstream"}}"#).await;
        Some(wire)
    })
    .await;
    let host = host_of(upstream.options()).await;
    for status in [400, 404, 409, 418, 500, 502, 503, 504] {
        let (answer, body) = ask(&host, &[&format!("GET /api/{status} HTTP/1.1")]).await;
        assert_eq!(answer.status(), status);
        assert_eq!(body, r#"{"name":"UnknownError","data":{"message":"said upstream"}}"#);
    }
}

#[tokio::test]
async fn any_method_goes_on_but_those_that_would_tell_our_login() {
    let upstream = RawUpstream::quiet().await;
    let host = host_of(upstream.options()).await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "PROPFIND", "X-ODD"] {
        let (answer, _) =
            ask(&host, &[&format!("{method} /api/x HTTP/1.1"), "content-length: 0"]).await;
        assert_eq!(answer.status(), 200, "{method}");
        assert!(upstream.heads().last().unwrap().starts_with(&format!("{method} /x HTTP/1.1\r\n")));
    }
    let before = upstream.heads().len();
    let (answer, _) = ask(&host, &["TRACE /api/x HTTP/1.1"]).await;
    assert_eq!(answer.status(), 405);
    let (answer, _) = ask(&host, &["OPTIONS /api/x HTTP/1.1"]).await;
    assert_eq!(answer.status(), 204);
    assert_eq!(upstream.heads().len(), before);
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    let upstream = RawUpstream::start(|mut wire| async move {
        wire.send(match (wire.method(), wire.target()) {
            ("HEAD", "/length") => "HTTP/1.1 200 OK\r\ncontent-length: 500000\r\n\r\n",
            ("HEAD", _) => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            (_, "/204") => "HTTP/1.1 204 No Content\r\nx-told: yes\r\n\r\n",
            (_, "/304") => "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\ncontent-length: 77\r\n\r\n",
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        })
        .await;
        Some(wire)
    })
    .await;
    let host = host_of(upstream.options()).await;
    let mut wire = Wire::to(&host.origin()).await;
    // On one connection: a body that should not be there would be taken for the next head.
    let mut told = Vec::new();
    for line in
        ["HEAD /api/length", "HEAD /api/chunked", "GET /api/204", "GET /api/304", "GET /api/0"]
    {
        wire.ask(&[&format!("{line} HTTP/1.1")]).await;
        assert!(wire.read_head().await, "{line}");
        told.push((wire.status(), wire.header("content-length")));
    }
    let length = |bytes: &str| Some(bytes.to_owned());
    assert_eq!(told[0], (200, length("500000")));
    assert_eq!(told[1], (200, None));
    assert_eq!(told[2], (204, None));
    assert_eq!(told[3].0, 304);
    assert_eq!(told[4], (200, length("0")));
}

#[tokio::test]
async fn what_comes_before_and_after_an_answer_is_dropped() {
    let upstream = saying(
        "HTTP/1.1 103 Early Hints\r\nlink: </x.css>\r\n\r\nHTTP/1.1 200 OK\r\n\
         content-type: text/plain\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
         3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n",
    )
    .await;
    let host = host_of(upstream.options()).await;
    let (answer, body) = ask(&host, &["GET /api/x HTTP/1.1", "te: trailers"]).await;
    assert_eq!((answer.status(), body.as_str()), (200, "abc"));
    assert_eq!(answer.header("trailer"), None);
}

#[tokio::test]
async fn a_client_that_waits_for_leave_to_send_its_body_gets_it() {
    let upstream = RawUpstream::start(|mut wire| async move {
        let body = wire.body().await.unwrap();
        wire.json(200, &format!("{body:?}")).await;
        Some(wire)
    })
    .await;
    let host = host_of(upstream.options()).await;
    let mut wire = Wire::to(&host.origin()).await;
    wire.ask(&["POST /api/x HTTP/1.1", "expect: 100-continue", "content-length: 3"]).await;
    assert!(wire.read_head().await);
    assert_eq!(wire.status(), 100);
    wire.send("abc").await;
    assert!(wire.read_head().await);
    assert_eq!((wire.status(), wire.body().await.as_deref()), (200, Some(r#""abc""#)));
    assert!(!upstream.heads()[0].contains("expect"));
}

#[tokio::test]
async fn redirects_are_passed_and_lead_back_to_us() {
    let upstream = RawUpstream::start(|mut wire| async move {
        let location = match wire.target() {
            "/own" => format!("http://{}/there?a=1", wire.header("host").unwrap()),
            "/path" => "/there".to_owned(),
            _ => "https://elsewhere.example/x".to_owned(),
        };
        wire.send(format!(
            "HTTP/1.1 307 Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        Some(wire)
    })
    .await;
    let host = host_of(upstream.options()).await;
    for (path, location) in [
        ("/api/own", "/api/there?a=1"),
        ("/api/path", "/api/there"),
        ("/api/other", "https://elsewhere.example/x"),
    ] {
        let (answer, _) = ask(&host, &[&format!("GET {path} HTTP/1.1")]).await;
        assert_eq!((answer.status(), answer.header("location").as_deref()), (307, Some(location)));
    }
    assert_eq!(upstream.targets(), ["/own", "/path", "/other"]);
}

#[tokio::test]
async fn directories_go_on_by_their_real_paths() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let (real, link) = (base.join("real"), base.join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let upstream = RawUpstream::quiet().await;
    let host = host_of(upstream.options()).await;
    let (link, real) = (link.display().to_string(), real.display().to_string());
    let header = format!("x-opencode-directory: {}", link.replace('/', "%2F"));
    let first = format!("GET /api/session?roots=true&directory={link}&x HTTP/1.1");
    let _ = ask(&host, &[&first, &header, "x-opencode-directory-encoding: uri"]).await;
    let head = upstream.heads().remove(0);
    assert!(
        head.starts_with(&format!("GET /session?roots=true&directory={real}&x HTTP/1.1\r\n")),
        "{head}"
    );
    assert!(head.contains(&format!("\r\nx-opencode-directory: {real}\r\n")), "{head}");
    assert!(!head.contains("encoding"), "{head}");
}

#[tokio::test]
async fn without_an_upstream_there_is_nothing_to_hand_on_to() {
    let host = RunningHost::start(HostOptions::default()).await;
    let none = (404, r#"{"error":"no upstream configured"}"#);
    for line in ["GET /api/session", "POST /api/session/ses_1/abort", "GET /api/api/session"] {
        let (answer, body) = ask(&host, &[&format!("{line} HTTP/1.1"), "content-length: 0"]).await;
        assert_eq!((answer.status(), body.as_str()), none, "{line}");
    }
}

#[tokio::test]
async fn a_mistake_in_a_path_of_ours_is_no_page_of_the_upstreams() {
    let upstream = RawUpstream::quiet().await;
    let host = host_of(upstream.options()).await;
    let (answer, body) = ask(&host, &["GET /api/turnkeep/sesions HTTP/1.1"]).await;
    assert_eq!((answer.status(), body.as_str()), (404, r#"{"error":"not found"}"#));
    assert!(upstream.heads().is_empty());
}

#[tokio::test]
async fn a_stored_session_is_not_handed_on() {
    let store = TestStore::new();
    store.add_made("stored", &turns(1)).await;
    let upstream = RawUpstream::quiet().await;
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    let only_read = (409, r#"{"error":"a stored session is only read here"}"#);
    let not_there = (404, r#"{"error":"OpenCode does not have this session, turnkeep stores it"}"#);
    for (line, told) in [
        ("POST /api/session/stored/message", only_read),
        ("DELETE /api/session/stored", only_read),
        ("POST /api/api/session/stored/prompt", only_read),
        ("GET /api/session/stored/todo", not_there),
        ("GET /api/session/stored", not_there),
    ] {
        let (answer, body) = ask(&host, &[&format!("{line} HTTP/1.1"), "content-length: 0"]).await;
        assert_eq!((answer.status(), body.as_str()), told, "{line}");
    }
    assert!(upstream.heads().is_empty());
    let (answer, _) = ask(&host, &["GET /api/session/status HTTP/1.1"]).await;
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_mistake_below_names_of_our_own_is_not_answered_with_a_web_page() {
    let upstream = saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let host = host_of(upstream.options()).await;
    for path in ["/api/openchamber/nope", "/api/OpenChamber/session/x/messages", "/api/turnkeep/x"]
    {
        let (answer, body) = ask(&host, &[&format!("GET {path} HTTP/1.1")]).await;
        assert_eq!((answer.status(), body.as_str()), (404, r#"{"error":"not found"}"#), "{path}");
    }
}

#[tokio::test]
async fn a_client_that_takes_no_encoding_is_told_what_was_done_all_the_same() {
    let body = "x".repeat(4096);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let upstream = saying(answer.leak()).await;
    let host = host_of(upstream.options()).await;
    for refusal in ["identity;q=0", "*;q=0"] {
        let accept = format!("accept-encoding: {refusal}");
        let lines = ["POST /api/session/ses_1/message HTTP/1.1", "content-length: 0", &accept];
        let (answer, sent) = ask(&host, &lines).await;
        assert_eq!((answer.status(), sent), (200, body.clone()), "{refusal}");
        let (answer, _) = ask(&host, &["GET / HTTP/1.1", &accept]).await;
        assert_eq!(answer.status(), 200, "{refusal}");
    }
}
