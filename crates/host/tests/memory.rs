//! How much memory a host takes for a message of hundreds of megabytes, measured on a host in a
//! process of its own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Lines},
    net::SocketAddr,
    process::{Child, ChildStdout, Command, Stdio},
};

use support::{
    host::{Client, RunningHost},
    logs::Logs,
    raw_upstream::{RawUpstream, Wire},
    upstream::{Act, Request, ScriptedUpstream, answer},
};
use tokio::io::AsyncReadExt as _;
use turnkeep_host::{HostOptions, UpstreamOptions};

/// Names the upstream to the process that is to be the host.
const UPSTREAM: &str = "TURNKEEP_TEST_UPSTREAM";

/// The one large string of the message.
const LARGE: usize = 300 << 20;

const MIB: u64 = 1 << 20;

/// What a host takes besides the bodies it holds: itself, its threads, its buffers.
const BESIDES: u64 = 40 * MIB;

/// Not a test by itself: the host that is measured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_by_itself() {
    let Ok(address) = env::var(UPSTREAM) else { return };
    let mut options = HostOptions::default();
    options.upstream = Some(UpstreamOptions::new(&address).unwrap());
    let logs = Logs::start();
    let host = RunningHost::start(options).await;
    println!("serving at {}", host.origin());
    // Until the test is done with it.
    tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await.unwrap();
    assert!(!logs.text().contains("panicked"), "{}", logs.text());
}

/// A host in a process of its own; it ends with its standard input.
struct Measured {
    child: Child,
    /// Kept, so that what the process prints in the end has somewhere to go.
    _output: Lines<BufReader<ChildStdout>>,
    client: Client,
}

impl Measured {
    fn start(upstream: &ScriptedUpstream) -> Self {
        Self::in_front_of(upstream.address)
    }

    fn in_front_of(upstream: SocketAddr) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "a_host_by_itself", "--nocapture"])
            .env(UPSTREAM, format!("http://{upstream}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = output.by_ref().map(Result::unwrap).find_map(|line| {
            let (_, address) = line.split_once("serving at http://")?;
            Some(address.parse().unwrap())
        });
        Self { child, _output: output, client: Client::of(address.unwrap()) }
    }

    /// The most memory it had at any time, in bytes.
    fn peak(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// A session of one message with a large string in it, and what the server has on that message.
fn huge(request: &Request) -> Option<Act> {
    let part = r#"{"info":{"id":"msg_1","role":"assistant","time":{"created":1}},"parts":[{"type":"reasoning","text":""#;
    let (before, after) = match request.path.as_str() {
        "/session/ses_1/message" if request.query.contains("before=") => {
            return Some(answer(200, &[], "[]"));
        }
        "/session/ses_1/message" => (format!("[{part}"), "\"}]}]"),
        "/big" => (String::new(), ""),
        "/session/ses_1/message/msg_1" => (part.to_owned(), "\"}]}"),
        "/session/ses_1/diff" => (r#"[{"file":"a","patch":""#.to_owned(), "\"},{\"file\":\"b\"}]"),
        _ => return None,
    };
    let length = before.len() + LARGE + after.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{before}"
    );
    Some(Act::SendFilled(head.into_bytes(), b'x', LARGE, after.as_bytes().to_vec()))
}

/// Asks a new host, and says how much it took at most.
async fn peak_of(method: &str, target: &str, expected: &str) -> u64 {
    let upstream = ScriptedUpstream::start(huge).await;
    let host = Measured::start(&upstream);
    let told = host.client.request(method, target).send().await.unwrap();
    assert_eq!(told.status, 200, "{target}: {}", told.body);
    if method == "HEAD" {
        let length: usize = told.header("content-length").unwrap().parse().unwrap();
        assert!((LARGE..LARGE + 1000).contains(&length), "{length}");
    } else {
        assert_eq!(told.body, expected, "{target}");
    }
    let peak = host.peak();
    println!("{method} {target}: {} MiB", peak / MIB);
    peak
}

/// The message without its large part.
const RECORD: &str =
    r#"{"info":{"id":"msg_1","role":"assistant","time":{"created":1}},"parts":[]}"#;

const PAGE: &str = "/api/openchamber/sessions/ses_1/messages";
const ROUND: &str = "/api/openchamber/sessions/ses_1/messages/reconcile?anchor=msg_1";
const FILES: &str = "/api/openchamber/sessions/ses_1/changes?messageID=msg_1";
const MESSAGE: &str = "/api/session/ses_1/message/msg_1";

/// What is left out of a response takes the room of the body that it came in, and no more.
async fn is_held_once(target: &str, expected: &str) {
    let peak = peak_of("GET", target, expected).await;
    assert!(peak < LARGE as u64 + BESIDES, "{target}: {} MiB", peak / MIB);
}

/// What is sent is held once more while it is taken out of the body that it came in.
async fn is_held_twice(target: &str) {
    let peak = peak_of("HEAD", target, "").await;
    assert!(peak < 2 * LARGE as u64 + BESIDES, "{target}: {} MiB", peak / MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_page() {
    let record = RECORD.replace("[]", r#"[{"type":"reasoning","slim":true}]"#);
    let page = format!(
        r#"{{"records":[{record}],"turnCount":0,"cursor":null,"complete":true,"partsProjection":"slim-v1"}}"#
    );
    is_held_once(PAGE, &page).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_of_reconciling() {
    let round = format!(
        r#"{{"records":[{RECORD}],"anchorFound":true,"capturedHeadMessageID":"msg_1","latestHeadMessageID":"msg_1","continuation":null,"complete":true,"resetRequired":false,"scannedRecords":1,"responseBytes":{}}}"#,
        RECORD.len()
    );
    is_held_once(&format!("{ROUND}&includeReasoning=false"), &round).await;
    is_held_twice(ROUND).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_changes() {
    is_held_once(FILES, r#"{"files":[]}"#).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change() {
    is_held_once(&format!("{FILES}&file=b"), r#"{"diff":{"file":"b"}}"#).await;
    is_held_twice(&format!("{FILES}&file=a")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_message() {
    is_held_once(&format!("{MESSAGE}?includeReasoning=false"), RECORD).await;
    is_held_twice(MESSAGE).await;
}

/// Reads this many bytes and lets go of them.
async fn swallow(wire: &mut Wire, count: usize) {
    let mut buffer = vec![0; 1 << 20];
    let mut left = count;
    while left > 0 {
        let most = left.min(buffer.len());
        let read = wire.stream.read(&mut buffer[..most]).await.unwrap();
        assert!(read > 0, "{left} bytes are missing");
        left -= read;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_download_passes_through() {
    let upstream = ScriptedUpstream::start(huge).await;
    let host = Measured::start(&upstream);
    for target in ["/api/big", "/api/session/ses_1/message"] {
        let mut wire = Wire::to(&host.client.origin()).await;
        wire.ask(&[&format!("GET {target} HTTP/1.1")]).await;
        assert!(wire.read_head().await);
        let length = wire.header("content-length").unwrap().parse().unwrap();
        assert!(length >= LARGE);
        swallow(&mut wire, length).await;
    }
    assert!(host.peak() < BESIDES, "{} MiB", host.peak() / MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_passes_through() {
    let upstream = RawUpstream::start(|mut wire| async move {
        swallow(&mut wire, LARGE).await;
        wire.json(200, "{}").await;
        Some(wire)
    })
    .await;
    let host = Measured::in_front_of(upstream.address);
    let mut wire = Wire::to(&host.client.origin()).await;
    wire.ask(&["POST /api/big HTTP/1.1", &format!("content-length: {LARGE}")]).await;
    let block = vec![b'x'; 1 << 20];
    for _ in 0..LARGE / block.len() {
        wire.send(&block).await;
    }
    assert!(wire.read_head().await);
    assert_eq!(wire.status(), 200);
    assert!(host.peak() < BESIDES, "{} MiB", host.peak() / MIB);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_official_list_without_reasoning() {
    let target = "/api/session/ses_1/message?includeReasoning=false";
    is_held_once(target, &format!("[{RECORD}]")).await;
}
