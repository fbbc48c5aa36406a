//! The HTTP surface: who is let in, what every response carries, and what is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use support::{
    host::{Answer, RunningHost},
    logs::Logs,
    store::{TestStore, prompt, turns},
    upstream::{ScriptedUpstream, list, rows},
};
use turnkeep_host::{Host, HostError, HostOptions};
use turnkeep_store::SessionStore;

const PAGE: &str = "/api/openchamber/sessions/s/messages";

async fn host() -> (TestStore, RunningHost) {
    let store = TestStore::new();
    store.add_made("s", &turns(20)).await;
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    options.allow_origins = vec!["https://reader.example".to_owned()];
    let host = RunningHost::start(options).await;
    (store, host)
}

async fn ask(host: &RunningHost, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = headers
        .iter()
        .fold(host.request(method, path), |request, (name, value)| request.header(name, value));
    request.send().await.unwrap()
}

#[tokio::test]
async fn parameters_are_checked_in_order_with_exact_answers() {
    let logs = Logs::start();
    let (_store, host) = host().await;
    let turns = r#"{"error":"turns must be an integer between 1 and 10"}"#;
    let scan_limit = r#"{"error":"scanLimit must be an integer between 10 and 200"}"#;
    let cursor = r#"{"error":"invalid cursor"}"#;
    for (query, body) in [
        ("turns=0", turns),
        ("turns=11&scanLimit=1", turns),
        ("turns=", turns),
        ("turns=3.0", turns),
        ("turns=3&turns=3", turns),
        ("turns=%zz", turns),
        ("scanLimit=9", scan_limit),
        ("scanLimit=201&before=oc1.x", scan_limit),
        ("scanLimit=10&scanLimit=10", scan_limit),
        ("before=oc1.x", cursor),
        ("before=canary-4711&directory=/canary-4711", cursor),
    ] {
        let answer = host.get(&format!("{PAGE}?{query}")).await;
        assert_eq!((answer.status, answer.body.as_str()), (400, body), "{query}");
        let line = logs.requests().pop().unwrap();
        assert!(line.contains("status=400 ") && line.contains(r#"session="s""#), "{line}");
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
    }
    for query in ["turns=+3", "turns=03%20&scanLimit=%0910", "before=&before=", "unknown=1", "&&"] {
        assert_eq!(host.get(&format!("{PAGE}?{query}")).await.status, 200, "{query}");
    }
    assert!(!logs.text().contains("canary-4711"), "what a client sends is not logged");
}

#[tokio::test]
async fn ids_are_capped() {
    let (_store, host) = host().await;
    let page = |id: &str| format!("/api/openchamber/sessions/{id}/messages");
    let too_long = host.get(&page(&"a".repeat(513))).await;
    assert_eq!(
        (too_long.status, too_long.body.as_str()),
        (400, r#"{"error":"sessionID is required"}"#)
    );
    assert_eq!(host.get(&page(&"a".repeat(512))).await.status, 404);
    // Two UTF-16 units each.
    assert_eq!(host.get(&page(&"%F0%9F%98%80".repeat(257))).await.status, 400);
    let malformed = host.get(&page("%ff")).await;
    assert_eq!((malformed.status, malformed.body.as_str()), (400, r#"{"error":"malformed path"}"#));
}

#[tokio::test]
async fn paths_are_tolerant_and_methods_are_not() {
    let (_store, host) = host().await;
    let expected = host.get(PAGE).await.body;
    assert_eq!(host.get("/API/OpenChamber/SESSIONS/s/Messages/").await.body, expected);
    assert_eq!(
        host.get("/api/openchamber/sessions/S/messages").await.status,
        404,
        "ids keep their case"
    );
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = ask(&host, method, "/api/turnkeep/sessions", &[]).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"));
        // With another method the path of a turn page is the upstream's business.
        let answer = ask(&host, method, PAGE, &[]).await;
        let expected = r#"{"error":"no upstream configured"}"#;
        assert_eq!((answer.status, answer.body.as_str()), (404, expected), "{method}");
    }
}

#[tokio::test]
async fn a_head_is_a_get_without_its_body() {
    let (_store, host) = host().await;
    let (get, head) = (host.get(PAGE).await, ask(&host, "HEAD", PAGE, &[]).await);
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    for name in ["etag", "content-type", "content-length"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
}

#[tokio::test]
async fn other_api_paths_say_why_there_is_nothing() {
    let (_store, host) = host().await;
    let answer = host.get("/api/session").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (404, r#"{"error":"no upstream configured"}"#)
    );
    assert_eq!(ask(&host, "POST", "/api/session/nobody/prompt", &[]).await.status, 404);
    // A stored session is only read here, upstream or not.
    assert_eq!(ask(&host, "POST", "/api/session/s/prompt", &[]).await.status, 409);
}

#[tokio::test]
async fn every_response_carries_what_protects_the_reader() {
    let (_store, host) = host().await;
    for path in ["/", "/health", PAGE, "/api/turnkeep/sessions", "/nope", "/api/nope"] {
        let answer = host.get(path).await;
        assert_eq!(answer.header("x-robots-tag"), Some("noindex, nofollow"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("content-security-policy").is_some(), "{path}");
        assert_eq!(answer.header("x-powered-by"), None, "{path}");
        assert_eq!(answer.header("server"), None, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
    let health = host.get("/health").await;
    assert_eq!((health.status, health.body.as_str()), (200, r#"{"status":"ok"}"#));
}

#[tokio::test]
async fn pages_that_are_held_are_not_sent_again() {
    let (store, host) = host().await;
    let first = host.get(PAGE).await;
    let tag = first.header("etag").unwrap().to_owned();
    let length = format!("W/\"{:x}-", first.body.len());
    assert!(tag.starts_with(&length) && tag.len() == length.len() + 28, "{tag}");

    let held = ask(&host, "GET", PAGE, &[("if-none-match", &tag)]).await;
    assert_eq!((held.status, held.body.as_str()), (304, ""));
    assert_eq!(held.header("etag"), Some(tag.as_str()));
    assert_eq!(held.header("content-type"), None);
    let forced = [("if-none-match", tag.as_str()), ("cache-control", "no-cache")];
    assert_eq!(ask(&host, "GET", PAGE, &forced).await.status, 200);

    store.append("s", support::store::made(100, |at| at, &[prompt("new", "more")])).await;
    assert_eq!(ask(&host, "GET", PAGE, &[("if-none-match", &tag)]).await.status, 200);
}

#[tokio::test]
async fn large_bodies_are_compressed_for_those_who_take_it() {
    let (_store, host) = host().await;
    let plain = host.get(PAGE).await;
    assert_eq!(plain.header("content-encoding"), None);
    for encoding in ["gzip", "br"] {
        let path = format!("{PAGE}?turns=10");
        let answer = host.request("GET", &path).header("accept-encoding", encoding);
        let answer = answer.send().await.unwrap();
        assert_eq!(answer.headers["content-encoding"], encoding);
        let vary = answer.headers.get_all("vary").iter().map(|value| value.to_str().unwrap());
        let vary: Vec<_> =
            vary.flat_map(|value| value.split(", ")).map(str::to_lowercase).collect();
        assert!(
            vary.contains(&"accept-encoding".to_owned()) && vary.contains(&"origin".to_owned())
        );
        let plain = host.get(&path).await;
        assert_eq!(answer.header("etag"), plain.header("etag"));
        assert_eq!(answer.body, plain.body);
        assert!(answer.sent_bytes < 1500);
    }
    let small = ask(&host, "GET", "/health", &[("accept-encoding", "gzip")]).await;
    assert_eq!(small.header("content-encoding"), None);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_before_anything_is_done() {
    let logs = Logs::start();
    let (_store, host) = host().await;
    let rebound = ask(&host, "GET", PAGE, &[("host", "evil.example:7420")]).await;
    assert_eq!((rebound.status, rebound.body.as_str()), (403, r#"{"error":"forbidden host"}"#));
    for method in ["GET", "POST", "OPTIONS"] {
        let foreign = ask(&host, method, PAGE, &[("origin", "https://evil.example")]).await;
        assert_eq!(
            (foreign.status, foreign.body.as_str()),
            (403, r#"{"error":"forbidden origin"}"#)
        );
        assert_eq!(foreign.header("access-control-allow-origin"), None);
    }
    assert!(!logs.text().contains("evil.example"), "what strangers send is not repeated");
}

#[tokio::test]
async fn allowed_origins_may_read() {
    let (_store, host) = host().await;
    for origin in ["openchamber-ui://app", "capacitor://localhost", "https://reader.example"] {
        let answer = ask(&host, "GET", PAGE, &[("origin", origin)]).await;
        assert_eq!(answer.status, 200, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"));
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert_eq!(exposed, "x-next-cursor, x-openchamber-file-exists, x-turnkeep-event-id");

        let asked = [("origin", origin), ("access-control-request-headers", "x-a")];
        let preflight = ask(&host, "OPTIONS", PAGE, &asked).await;
        assert_eq!((preflight.status, preflight.body.as_str()), (204, ""));
        assert_eq!(preflight.header("access-control-allow-headers"), Some("x-a"));
        assert_eq!(preflight.header("access-control-allow-origin"), Some(origin));
    }
    let ours = host.origin();
    let answer = ask(&host, "GET", PAGE, &[("origin", &ours)]).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
}

#[tokio::test]
async fn addresses_that_others_can_reach_are_refused() {
    for address in ["0.0.0.0:7420", "[::]:0", "192.168.1.2:7420"] {
        let mut options = HostOptions::default();
        options.listen = address.parse().unwrap();
        let error = Host::new(options).unwrap_err();
        assert!(matches!(error, HostError::Unprotected { .. }), "{address}");
        assert_eq!(error.kind(), "usage");
    }
    // The listener counts, whatever the options say.
    let host = Arc::new(Host::new(HostOptions::default()).unwrap());
    let open = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = host.serve(open, std::future::pending()).await.unwrap_err();
    assert!(matches!(error, HostError::Unprotected { .. }));
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = HostOptions::default();
    options.listen = taken.local_addr().unwrap();
    let error = Host::new(options).unwrap().bind().await.unwrap_err();
    assert!(error.to_string().contains(&taken.local_addr().unwrap().to_string()), "{error}");
}

#[tokio::test]
async fn oversized_heads_and_bodies_are_cut_off() {
    let (_store, host) = host().await;
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(1 << 20));
    let answer = host.raw(long.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    let many = "x-a: 1\r\n".repeat(200);
    let many = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{many}\r\n");
    assert!(host.raw(many.as_bytes()).await.starts_with("HTTP/1.1 431"));
    // A body that no route reads is not waited for.
    let body =
        format!("POST {PAGE} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\nx");
    assert!(host.raw(body.as_bytes()).await.starts_with("HTTP/1.1 404"));
    // A cursor of the longest kind fits.
    let cursor = "%61".repeat(8192);
    assert_eq!(host.get(&format!("{PAGE}?before={cursor}")).await.status, 400);
}

#[tokio::test]
async fn one_line_a_request_says_what_happened() {
    let logs = Logs::start();
    let (_store, host) = host().await;
    host.get(&format!("{PAGE}?directory=/secret/canary-4711&before=eyJzZXEiOjV9")).await;
    host.get("/assets/canary-4711.js?token=canary-4711").await;
    let lines = logs.requests();
    assert_eq!(lines.len(), 2);
    for part in [
        r#"method="GET""#,
        r#"route="turn_page""#,
        "status=200",
        r#"session="s""#,
        r#"source="store""#,
        "has_before=true",
        "has_directory=true",
    ] {
        assert!(lines[0].contains(part), "{part} in {}", lines[0]);
    }
    assert!(lines[1].contains("status=404") && lines[1].contains("DEBUG"), "{}", lines[1]);
    assert!(lines[0].contains(" INFO "), "{}", lines[0]);
    host.get(PAGE).await;
    let line = logs.requests().pop().unwrap();
    assert!(
        !line.contains("has_") && !line.contains("kind"),
        "what does not apply is left out: {line}"
    );
    assert!(!logs.text().contains("canary-4711"), "{}", logs.text());
}

#[tokio::test]
async fn the_scan_width_is_the_hosts_unless_asked_for() {
    let upstream = ScriptedUpstream::start(|request| {
        request.path.starts_with("/session/").then(|| list(&rows(1), request))
    })
    .await;
    let mut options = HostOptions::default().with_environment(|name| {
        (name == "OPENCHAMBER_SESSION_TURN_SCAN_LIMIT").then(|| "42".to_owned())
    });
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    host.get("/api/openchamber/sessions/ses_1/messages").await;
    host.get("/api/openchamber/sessions/ses_1/messages?scanLimit=17").await;
    let queries: Vec<_> = upstream.requests().into_iter().map(|request| request.query).collect();
    assert_eq!(queries, ["limit=42", "limit=17"]);
}
