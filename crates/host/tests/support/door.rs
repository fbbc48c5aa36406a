//! A host that wants to see something, and requests as bytes.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use turnkeep_host::{HostOptions, Scope, TokenFile};
use turnkeep_store::SessionStore;

use super::{
    host::RunningHost,
    store::{TestStore, turns},
};

pub const PASSWORD: &str = "correct horse canary-0815 battery";

/// What any answer takes at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// A host with a password, API tokens and one stored session, `s`.
#[derive(Debug)]
pub struct Door {
    pub host: RunningHost,
    pub tokens: TokenFile,
    pub folder: TempDir,
    _store: TestStore,
}

/// An answer, its body only when its length is told beforehand: a stream is left alone.
#[derive(Clone, Debug)]
pub struct Seen {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Door {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut HostOptions)) -> Self {
        let folder = TempDir::new().unwrap();
        let store = TestStore::new();
        store.add_made("s", &turns(3)).await;
        let mut options = HostOptions::default();
        options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
        options.auth.password_file = Some(private(&folder, "password", PASSWORD));
        options.auth.token_file = Some(folder.path().join("tokens.json"));
        options.auth.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        change(&mut options);
        let tokens = TokenFile::new(folder.path().join("tokens.json"));
        Self { host: RunningHost::start(options).await, tokens, folder, _store: store }
    }

    pub fn address(&self) -> String {
        self.host.origin().trim_start_matches("http://").to_owned()
    }

    /// A header line with a new token.
    pub fn token(&self, name: &str, scope: Scope) -> String {
        let token = self.tokens.create(name, scope, None).unwrap();
        format!("Authorization: Bearer {}\r\n", token.reveal())
    }

    /// A request with these header lines, each ended, and a body.
    pub async fn ask(&self, method: &str, path: &str, lines: &str, body: &str) -> Seen {
        let stream = TcpStream::connect(self.address()).await.unwrap();
        ask_over(stream, method, path, &with_host(lines), body).await
    }

    pub async fn get(&self, path: &str, lines: &str) -> Seen {
        self.ask("GET", path, lines, "").await
    }

    pub async fn log_in(&self, password: &str, lines: &str) -> Seen {
        let body = serde_json::json!({ "password": password }).to_string();
        self.ask("POST", "/auth/login", lines, &body).await
    }

    /// A header line with the cookie of a new login.
    pub async fn cookie(&self) -> String {
        let seen = self.log_in(PASSWORD, "").await;
        assert_eq!(seen.status, 200, "{seen:?}");
        let cookie = seen.header("set-cookie").unwrap();
        format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
    }
}

/// A file for its owner only.
pub fn private(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn with_host(lines: &str) -> String {
    let has_host = lines.to_ascii_lowercase().starts_with("host:");
    if has_host { lines.to_owned() } else { format!("Host: localhost\r\n{lines}") }
}

/// One request over a connection of any kind.
pub async fn ask_over(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    lines: &str,
    body: &str,
) -> Seen {
    let length = body.len();
    let request =
        format!("{method} {path} HTTP/1.1\r\n{lines}Content-Length: {length}\r\n\r\n{body}");
    let _ = stream.write_all(request.as_bytes()).await;
    timeout(PATIENCE, answer(&mut stream, method)).await.expect("an answer comes")
}

async fn answer(stream: &mut (impl AsyncRead + Unpin), method: &str) -> Seen {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => break,
        }
    }
    let head = String::from_utf8(bytes).unwrap();
    let status = head.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
    let mut seen = Seen { status, head, body: String::new() };
    let length = seen.header("content-length").and_then(|length| length.parse().ok());
    if let Some(length) = length.filter(|_| method != "HEAD") {
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        seen.body = String::from_utf8(body).unwrap();
    }
    seen
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).into_iter().next()
    }

    pub fn headers(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The word that a failure has for programs, or its text.
    pub fn code(&self) -> String {
        let json = self.json();
        json["code"].as_str().or(json["error"].as_str()).unwrap_or_default().to_owned()
    }
}

/// Reads until the other side ends the connection; how long that took.
pub async fn until_closed(stream: &mut TcpStream) -> Duration {
    let start = Instant::now();
    let mut bytes = Vec::new();
    let _ = timeout(Duration::from_secs(8), stream.read_to_end(&mut bytes))
        .await
        .expect("it is closed");
    start.elapsed()
}
