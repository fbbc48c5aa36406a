//! What a host promises about who gets in. `docs/security.md` names these tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use support::{
    door::{Door, PASSWORD, private, until_closed},
    host::RunningHost,
    logs::{self, Logs, SAID},
    store::{TestStore, prompt, turns},
    upstream::{ScriptedUpstream, answer},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use turnkeep_host::{Host, HostError, HostOptions, Scope};
use turnkeep_store::SessionStore;

const SESSIONS: &str = "/api/turnkeep/sessions";
const PAGE: &str = "/api/openchamber/sessions/s/messages";

/// Every kind of route that takes something, by method, path and what it takes.
const GUARDED: [(&str, &str, Scope); 32] = [
    ("GET", SESSIONS, Scope::Read),
    ("HEAD", SESSIONS, Scope::Read),
    ("GET", "/api/turnkeep/sessions/s", Scope::Read),
    ("GET", "/api/turnkeep/sessions/s/events", Scope::Read),
    ("GET", "/api/turnkeep/sessions/s/events/stream", Scope::Read),
    ("GET", PAGE, Scope::Read),
    ("GET", "/api/openchamber/sessions/s/messages/reconcile?anchor=u1", Scope::Read),
    ("GET", "/api/openchamber/sessions/s/changes?messageID=u1", Scope::Read),
    ("GET", "/api/session/s/message", Scope::Read),
    ("GET", "/api/session/s/message/u1", Scope::Read),
    ("GET", "/api/event", Scope::Read),
    ("GET", "/api/global/event", Scope::Read),
    ("GET", "/api/event/ws", Scope::Read),
    ("GET", "/api/session.export?sessionId=s", Scope::Read),
    ("GET", "/api/global/event/ws", Scope::Read),
    ("GET", "/api/openchamber/transcript-cache/session", Scope::Read),
    ("GET", "/api/openchamber/transcript-cache/message", Scope::Read),
    ("GET", "/metrics", Scope::Read),
    ("GET", "/api/config", Scope::Read),
    ("POST", "/api/session/s/message", Scope::Write),
    ("DELETE", "/api/session/s", Scope::Write),
    ("PUT", "/api/openchamber/transcript-cache/message", Scope::Write),
    ("DELETE", "/api/openchamber/transcript-cache/message", Scope::Write),
    ("DELETE", "/api/openchamber/transcript-cache/session", Scope::Write),
    ("DELETE", "/api/openchamber/transcript-cache/generation", Scope::Write),
    ("DELETE", "/api/openchamber/transcript-cache/all", Scope::Write),
    ("POST", "/api/openchamber/transcript-cache/evict", Scope::Write),
    ("POST", PAGE, Scope::Write),
    ("GET", "/api/pty", Scope::Admin),
    ("GET", "/api/pty/1/connect", Scope::Admin),
    ("POST", "/api/pty", Scope::Admin),
    ("GET", "/api/%70TY/1/connect", Scope::Admin),
];

#[tokio::test]
async fn nobody_gets_in_without_credentials() {
    let door = Door::new().await;
    for (method, path, _) in GUARDED {
        for lines in [
            "",
            "Authorization: Bearer tk_made-up\r\n",
            "Authorization: Basic b3BlbmNvZGU6eA==\r\n",
            "Cookie: turnkeep=made-up\r\n",
        ] {
            // Ten made-up tokens would be too many.
            let lines = format!("{lines}X-Forwarded-For: 10.0.0.{}\r\n", path.len() % 200);
            let seen = door.ask(method, path, &lines, "").await;
            assert_eq!(seen.status, 401, "{method} {path} {lines}: {seen:?}");
            assert_eq!(seen.header("www-authenticate"), Some("Bearer"));
            assert_eq!(seen.header("cache-control"), Some("no-store"));
            if method != "HEAD" {
                let expected = r#"{"error":"authentication required","locked":true}"#;
                assert_eq!(seen.body, expected, "{method} {path}");
            }
        }
    }
    let seen = door.get(SESSIONS, "Cookie: turnkeep=made-up\r\n").await;
    assert!(seen.header("set-cookie").unwrap().contains("Max-Age=0"), "{seen:?}");
    for path in ["/", "/assets/main.js", "/assets/login.js", "/health", "/auth/status"] {
        assert_eq!(door.get(path, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn scopes_are_kept_on_every_route() {
    let door = Door::new().await;
    let tokens = Scope::ALL.map(|scope| (scope, door.token(scope.as_str(), scope)));
    for (method, path, needed) in GUARDED {
        for (scope, line) in &tokens {
            let seen = door.ask(method, path, line, "").await;
            if *scope < needed {
                assert_eq!(seen.status, 403, "{method} {path} as {scope}: {seen:?}");
                assert_eq!(seen.code(), "insufficient_scope");
            } else {
                assert!(![401, 403].contains(&seen.status), "{method} {path} as {scope}: {seen:?}");
            }
        }
    }
    let cookie = door.cookie().await;
    let ours = format!("Host: localhost\r\nOrigin: http://localhost\r\n{cookie}");
    let seen = door.ask("POST", "/api/pty", &ours, "").await;
    assert!(![401, 403].contains(&seen.status), "a login may do everything: {seen:?}");
}

#[tokio::test]
async fn the_password_opens_a_session_and_logging_out_ends_it() {
    let door = Door::new().await;
    let status = async |lines: String| door.get("/auth/status", &lines).await;
    let seen = status(String::new()).await;
    let expected = r#"{"authenticated":false,"passwordRequired":true,"scope":null,"via":null}"#;
    assert_eq!((seen.body.as_str(), seen.header("cache-control")), (expected, Some("no-store")));

    let wrong = door.log_in("correct horse", "").await;
    assert_eq!((wrong.status, wrong.code().as_str()), (401, "wrong_password"));
    assert_eq!(wrong.header("set-cookie"), None);

    let seen = door.log_in(PASSWORD, "").await;
    assert_eq!(seen.body, r#"{"authenticated":true,"scope":"admin"}"#);
    let set = seen.header("set-cookie").unwrap();
    let (pair, flags) = set.split_once("; ").unwrap();
    assert_eq!(flags, "Path=/; HttpOnly; SameSite=Strict");
    let value = pair.strip_prefix("turnkeep=").unwrap();
    assert_eq!(value.len(), 43, "256 bits");

    let cookie = format!("Cookie: other=1; {pair}\r\n");
    assert_eq!(door.get(SESSIONS, &cookie).await.status, 200);
    let seen = status(cookie.clone()).await;
    assert!(seen.body.contains(r#""scope":"admin","via":"login""#), "{seen:?}");

    let ours = format!("{cookie}Sec-Fetch-Site: same-origin\r\n");
    let seen = door.ask("POST", "/auth/logout", &ours, "").await;
    assert_eq!((seen.status, seen.body.as_str()), (200, r#"{"authenticated":false}"#));
    assert!(seen.header("set-cookie").unwrap().contains("turnkeep=; "), "{seen:?}");
    assert_eq!(door.get(SESSIONS, &cookie).await.status, 401);
    for (method, path) in
        [("GET", "/auth/login"), ("GET", "/auth/logout"), ("POST", "/auth/status")]
    {
        assert_eq!(door.ask(method, path, "", "").await.status, 405, "{path}");
    }
    assert_eq!(door.get("/auth/nothing", "").await.status, 404);
}

#[tokio::test]
async fn ten_wrong_passwords_lock_an_address_out() {
    let door = Door::new().await;
    let from = |address: &str| format!("X-Forwarded-For: 198.51.100.9, {address}\r\n");
    let (one, other) = (from("203.0.113.7"), from("203.0.113.8"));
    for _ in 0..9 {
        assert_eq!(door.log_in("guess", &one).await.status, 401);
    }
    for password in ["guess", PASSWORD] {
        let locked = door.log_in(password, &one).await;
        assert_eq!((locked.status, locked.code().as_str()), (429, "locked_out"), "{password}");
        let wait: u64 = locked.header("retry-after").unwrap().parse().unwrap();
        assert!((890..=900).contains(&wait), "{wait}");
    }
    assert_eq!(door.log_in(PASSWORD, &other).await.status, 200);

    // Of an IPv6 network there are as many addresses as anyone likes.
    for number in 1..=10 {
        door.log_in("guess", &from(&format!("2001:db8::{number}"))).await;
    }
    assert_eq!(door.log_in(PASSWORD, &from("2001:db8::ffff")).await.status, 429);
    assert_eq!(door.log_in(PASSWORD, &from("2001:db8:0:1::1")).await.status, 200);
}

#[tokio::test]
async fn guessing_with_all_at_once_gains_nothing() {
    let door = Door::new().await;
    let line = "X-Forwarded-For: 203.0.113.9\r\n";
    let guesses = (0..30).map(|number| {
        let door = &door;
        async move { door.log_in(&format!("guess {number}"), line).await.status }
    });
    let seen = futures_util::future::join_all(guesses).await;
    let looked_at = seen.iter().filter(|status| **status == 401).count();
    assert!(looked_at < 10, "{seen:?}");
    assert!(seen.iter().all(|status| [401, 429].contains(status)), "{seen:?}");
    assert_eq!(door.log_in(PASSWORD, line).await.status, 429);
}

#[tokio::test]
async fn made_up_tokens_count_as_failed_logins() {
    let door = Door::new().await;
    let guess = "Authorization: Bearer tk_guess\r\nX-Forwarded-For: 203.0.113.7\r\n";
    for _ in 0..9 {
        assert_eq!(door.get(SESSIONS, guess).await.status, 401);
    }
    assert_eq!(door.get(SESSIONS, guess).await.status, 429);
    assert_eq!(door.log_in(PASSWORD, "X-Forwarded-For: 203.0.113.7\r\n").await.status, 429);
}

#[tokio::test]
async fn an_address_is_taken_from_trusted_proxies_only() {
    let door = Door::with(|options| options.auth.trusted_proxies.clear()).await;
    for number in 0..10 {
        door.log_in("guess", &format!("X-Forwarded-For: 203.0.113.{number}\r\n")).await;
    }
    assert_eq!(door.log_in(PASSWORD, "X-Forwarded-For: 203.0.113.99\r\n").await.status, 429);
    let seen = door.get("/health", "X-Forwarded-Proto: https\r\n").await;
    assert_eq!(seen.header("strict-transport-security"), None);
}

#[tokio::test]
async fn expired_and_revoked_tokens_stop_at_once() {
    let door = Door::new().await;
    let live = door.token("live", Scope::Read);
    let expired = door.tokens.create("expired", Scope::Admin, Some(1)).unwrap();
    let expired = format!("Authorization: Bearer {}\r\n", expired.reveal());
    assert_eq!(door.get(SESSIONS, &live).await.status, 200);
    assert_eq!(door.get(SESSIONS, &expired).await.status, 401);
    let seen = door.get("/auth/status", &live).await;
    assert!(seen.body.contains(r#""scope":"read","via":"token""#), "{seen:?}");
    door.tokens.revoke("live").unwrap();
    assert_eq!(door.get(SESSIONS, &live).await.status, 401);
}

#[tokio::test]
async fn a_login_with_a_token_is_worth_no_more_than_it() {
    let door = Door::new().await;
    let token = door.tokens.create("phone", Scope::Read, None).unwrap();
    let seen = door.log_in(token.reveal(), "").await;
    assert_eq!(seen.body, r#"{"authenticated":true,"scope":"read"}"#);
    let pair = seen.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let cookie = format!("Sec-Fetch-Site: same-origin\r\nCookie: {pair}\r\n");
    assert_eq!(door.get(SESSIONS, &cookie).await.status, 200);
    assert_eq!(door.ask("POST", "/api/session", &cookie, "").await.status, 403);
    door.tokens.revoke("phone").unwrap();
    assert_eq!(door.get(SESSIONS, &cookie).await.status, 401);
}

#[tokio::test]
async fn a_locked_host_has_any_name_and_lets_in_no_foreign_page() {
    let door = Door::new().await;
    let cookie = door.cookie().await;
    let named = |host: &str, origin: &str| format!("Host: {host}\r\nOrigin: {origin}\r\n{cookie}");
    let name = "keep.example";
    assert_eq!(door.get(SESSIONS, &named(name, "http://keep.example")).await.status, 200);
    for origin in ["http://evil.example", "null", "https://keep.example", "http://keep.example:1"] {
        let seen = door.get(SESSIONS, &named(name, origin)).await;
        assert_eq!((seen.status, seen.code().as_str()), (403, "forbidden origin"), "{origin}");
        assert_eq!(seen.header("access-control-allow-origin"), None);
    }
    let secure = named(name, "https://keep.example") + "X-Forwarded-Proto: https\r\n";
    let seen = door.get(SESSIONS, &secure).await;
    assert_eq!(seen.status, 401, "a cookie of plain HTTP is none over HTTPS: {seen:?}");
    assert!(seen.header("strict-transport-security").is_some());
}

#[tokio::test]
async fn a_change_by_cookie_needs_a_page_of_ours() {
    let door = Door::new().await;
    let cookie = door.cookie().await;
    let post = |lines: &'static str| {
        let lines = format!("{lines}{cookie}");
        let door = &door;
        async move { door.ask("POST", "/api/session", &lines, "{}").await.status }
    };
    for refused in [
        "",
        "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: none\r\n",
        "Origin: http://localhost:3000\r\n",
    ] {
        assert_eq!(post(refused).await, 403, "{refused}");
    }
    for allowed in ["Origin: http://localhost\r\n", "Sec-Fetch-Site: same-origin\r\n"] {
        assert_eq!(post(allowed).await, 404, "there is no upstream: {allowed}");
    }
    let logout = door.ask("POST", "/auth/logout", &cookie, "").await;
    assert_eq!(logout.status, 403, "nor may others log anyone out");
    let token = door.token("ci", Scope::Write);
    assert_eq!(
        door.ask("POST", "/api/session", &token, "{}").await.status,
        404,
        "no page, no fear"
    );
}

#[tokio::test]
async fn what_other_pages_embed_is_refused() {
    let host = RunningHost::start(HostOptions::default()).await;
    for site in ["cross-site", "same-site"] {
        let request = host.request("GET", SESSIONS).header("sec-fetch-site", site);
        assert_eq!(request.send().await.unwrap().status, 403, "{site}");
        let page = host.request("GET", "/").header("sec-fetch-site", site);
        assert_eq!(page.send().await.unwrap().status, 200, "a link to the reader works");
    }
}

#[tokio::test]
async fn an_open_host_takes_nothing_from_elsewhere_through_a_proxy() {
    let host = RunningHost::start(HostOptions::default()).await;
    let from = |address: &'static str| host.request("GET", "/").header("x-forwarded-for", address);
    assert_eq!(from("203.0.113.7").send().await.unwrap().status, 403);
    assert_eq!(from("127.0.0.1").send().await.unwrap().status, 200);
}

#[tokio::test]
async fn preflights_need_no_credentials_and_an_allowed_origin() {
    let door = Door::new().await;
    let ask = |origin: &'static str| {
        let door = &door;
        async move { door.ask("OPTIONS", SESSIONS, &format!("Origin: {origin}\r\n"), "").await }
    };
    let allowed = ask("capacitor://localhost").await;
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("capacitor://localhost"));
    assert_eq!(ask("https://evil.example").await.status, 403);
    // Such a page learns that it has to log in.
    let seen = door.get(SESSIONS, "Origin: capacitor://localhost\r\n").await;
    assert_eq!(seen.status, 401);
    assert_eq!(seen.header("access-control-allow-origin"), Some("capacitor://localhost"));
}

#[tokio::test]
async fn a_web_socket_needs_credentials_and_a_page_of_ours() {
    let door = Door::new().await;
    let cookie = door.cookie().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let token = door.token("ci", Scope::Read);
    for (path, admin_only) in [("/api/event/ws", false), ("/api/pty/1/connect", true)] {
        let open = |lines: String| {
            let lines = format!("{lines}{upgrade}");
            let door = &door;
            async move { door.get(path, &lines).await.status }
        };
        assert_eq!(open(String::new()).await, 401, "{path}");
        assert_eq!(open(cookie.clone()).await, 403, "{path}: a cookie, and no page");
        assert_eq!(open(format!("Origin: http://evil.example\r\n{cookie}")).await, 403, "{path}");
        let ours = open(format!("Origin: http://localhost\r\n{cookie}")).await;
        assert!(![401, 403].contains(&ours), "{path}: {ours}");
        let with_token = open(token.clone()).await;
        assert_eq!(with_token == 403, admin_only, "{path}: {with_token}");
    }
}

#[tokio::test]
async fn tricks_with_paths_reach_nothing() {
    let folder = TempDir::new().unwrap();
    let upstream = ScriptedUpstream::start(|_| None).await;
    let door = Door::with(|options| options.upstream = Some(upstream.options())).await;
    let token = door.token("ci", Scope::Write);
    let long = "a".repeat(20_000);
    let ids = [
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e%2f%2e%2e",
        "..%5c..%5cx",
        "%2fetc%2fpasswd",
        "a%00b",
        "%00",
        "a%0d%0ab",
        "%c0%ae%c0%ae%2f",
        "turn.lock%00.jsonl",
        "%F0%9F%92%A9",
        &long,
    ];
    for id in ids {
        for path in [
            format!("/api/openchamber/sessions/{id}/messages"),
            format!("/api/openchamber/sessions/{id}/changes?messageID={id}"),
            format!("/api/turnkeep/sessions/{id}"),
            format!("/api/turnkeep/sessions/{id}/events"),
            format!("/api/session/{id}/message/{id}"),
            format!("/api/session.export?sessionId={id}"),
            format!("/assets/{id}"),
        ] {
            let seen = door.get(&path, &token).await;
            assert!([400, 404].contains(&seen.status), "{path}: {seen:?}");
            assert!(!seen.body.contains("passwd"), "{seen:?}");
        }
    }
    for path in [
        "/api/../pty",
        "/api/session/%2e%2e/pty",
        "/api/session/..%2f..%2fpty",
        "/api/session/..%5cpty",
        "/api/%00",
        "/api/./config",
    ] {
        let seen = door.get(path, &token).await;
        assert_eq!((seen.status, seen.code().as_str()), (400, "malformed path"), "{path}");
    }
    for directory in ["..%2f..", "%00", "%2fetc%2fpasswd", "..%5c", &long] {
        let seen = door.get(&format!("{PAGE}?directory={directory}"), &token).await;
        assert_eq!(seen.status, 200, "a stored session has the one it has: {seen:?}");
    }
    let read: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(read.is_empty(), "nothing was made anywhere");
    let forwarded = upstream.requests();
    assert!(forwarded.iter().all(|request| !request.path.contains("..")), "{forwarded:?}");
}

#[tokio::test]
async fn other_addresses_than_loopback_need_something_to_show() {
    let folder = TempDir::new().unwrap();
    let mut options = HostOptions::default();
    options.listen = "0.0.0.0:0".parse().unwrap();
    let error = Host::new(options.clone()).unwrap_err();
    assert!(matches!(error, HostError::Unprotected { .. }));
    for advice in ["--password-file", "turnkeep token create", "127.0.0.1"] {
        assert!(error.to_string().contains(advice), "{error}");
    }
    options.auth.password_file = Some(private(&folder, "password", PASSWORD));
    let host = Host::new(options).unwrap();
    assert!(!host.is_open());
}

#[tokio::test]
async fn no_log_line_repeats_what_is_secret_or_said() {
    const CANARY: &str = "canary4711";
    let logs = Logs::start();
    let upstream = ScriptedUpstream::start(|request| {
        let body = format!(r#"{{"name":"{CANARY}","data":{{"message":"{CANARY}"}}}}"#);
        request
            .path
            .contains("ses_")
            .then(|| answer(200, &[("content-type", "application/json")], &body))
    })
    .await;
    let folder = TempDir::new().unwrap();
    let store = TestStore::new();
    store.add_made("s", &turns(2)).await;
    store.add_made("said", &[prompt("u1", CANARY)]).await;
    let door = Door::with(|options| {
        options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
        options.upstream = Some(upstream.options());
        options.auth.password_file = Some(private(&folder, "pw", &format!("{CANARY}-password")));
    })
    .await;
    let admin = door.token(CANARY, Scope::Admin);
    let logged_in = door.log_in(&format!("{CANARY}-password"), "").await;
    let cookie = logged_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let secrets = [
        CANARY,
        admin.trim_end().rsplit(' ').next().unwrap(),
        cookie.split('=').next_back().unwrap(),
    ];
    let noise = format!(
        "User-Agent: {CANARY}\r\nReferer: http://x/{CANARY}\r\nX-Forwarded-For: {CANARY}\r\n\
         X-Opencode-Directory: /{CANARY}\r\nLast-Event-ID: {CANARY}\r\n"
    );
    let shown = [
        admin.clone(),
        format!("Cookie: {cookie}\r\nSec-Fetch-Site: same-origin\r\n"),
        format!("Authorization: Bearer {CANARY}\r\n"),
        format!("Cookie: turnkeep={CANARY}\r\n"),
        format!("Origin: http://{CANARY}\r\n"),
        format!("Host: {CANARY}@x\r\n"),
        String::new(),
    ];
    for (method, path, _) in GUARDED {
        for path in [path.to_owned(), path.replace("/s", "/said"), path.replace("/s/", "/ses_1/")] {
            let mark = if path.contains('?') { '&' } else { '?' };
            let path = format!("{path}{mark}directory=/{CANARY}&before={CANARY}&q={CANARY}");
            for line in &shown {
                let lines = if line.starts_with("Host") {
                    format!("{line}{noise}")
                } else {
                    format!("Host: localhost\r\n{line}{noise}")
                };
                door.ask(method, &path, &lines, CANARY).await;
            }
        }
    }
    for path in [format!("/{CANARY}"), format!("/api/{CANARY}/%00"), format!("/auth/{CANARY}")] {
        door.get(&path, &admin).await;
    }
    door.log_in(CANARY, "X-Forwarded-For: 203.0.113.5\r\n").await;
    for _ in 0..12 {
        door.log_in(CANARY, "X-Forwarded-For: 203.0.113.6\r\n").await;
    }
    let text = logs.text();
    assert!(text.lines().count() > 300, "it has said something");
    for secret in secrets {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}

/// Every test that starts a host is watched. This one is, in a process of its own, by what it logs.
#[test]
fn a_log_line_that_repeats_what_was_said_ends_any_test() {
    const IN_CHILD: &str = "TURNKEEP_TEST_SAYS_TOO_MUCH";
    if std::env::var_os(IN_CHILD).is_some() {
        logs::watch();
        tracing::trace!("somebody said {SAID}");
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["a_log_line_that_repeats_what_was_said_ends_any_test", "--exact", "--nocapture"])
        .env(IN_CHILD, "")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success() && told.contains("repeats what it must not"), "{told}");
    assert!(!told.contains(SAID), "nor is it repeated then");
}

#[tokio::test]
async fn streams_end_when_their_token_is_revoked() {
    let door = Door::with(|options| options.limits.recheck = Duration::from_millis(50)).await;
    for (path, lines, expected) in [
        ("/api/turnkeep/sessions/s/events/stream", "Connection: close\r\n", "HTTP/1.1 200"),
        ("/api/global/event", "Connection: close\r\n", "HTTP/1.1 200"),
        (
            "/api/global/event/ws",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            "HTTP/1.1 101",
        ),
    ] {
        let token = door.token("stream", Scope::Read);
        let mut stream = TcpStream::connect(door.address()).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}{lines}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = [0; 12];
        timeout(Duration::from_secs(5), stream.read_exact(&mut bytes)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), expected, "{path}");
        assert!(
            timeout(Duration::from_millis(300), until_closed(&mut stream)).await.is_err(),
            "{path}"
        );
        door.tokens.revoke("stream").unwrap();
        assert!(until_closed(&mut stream).await < Duration::from_secs(5), "{path}");
    }
}

/// The names of all test functions below a folder.
fn tests_below(folder: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                tests_below(&path, names);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    is_test = true;
                } else if let Some((_, rest)) = line.split_once("fn ") {
                    if is_test {
                        names.push(rest.split('(').next().unwrap().to_owned());
                    }
                    is_test = false;
                }
            }
        }
    }
}

#[test]
fn every_test_that_the_security_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let mut known = Vec::new();
    tests_below(&root.join("crates"), &mut known);
    let is_name = |word: &&str| {
        word.matches('_').count() >= 3
            && word
                .chars()
                .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
    };
    let named: Vec<_> = page.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(named.len() >= 30, "{named:?}");
    for name in named {
        assert!(known.iter().any(|test| test == name), "there is no test {name}");
    }
}
