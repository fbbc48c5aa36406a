//! The events of stored sessions, whole and as they come.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, io::Write as _, path::Path, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use serde_json::json;
use support::{
    contract::{Told, check_event_blocks},
    host::RunningHost,
    store::{TestStore, golden, made, prompt, turns},
    upstream::ScriptedUpstream,
};
use turnkeep_host::HostOptions;
use turnkeep_log::{Event, SessionId};
use turnkeep_store::{Cancel, SessionStore};

fn options(store: &TestStore) -> HostOptions {
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    options
}

/// Adds bytes to a file, as a writer does: nobody sees it shorter meanwhile.
fn append(file: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().append(true).open(file).unwrap().write_all(bytes).unwrap();
}

/// The lines that the command prints.
fn printed(events: &[Event]) -> String {
    let lines: Vec<_> = events.iter().map(|event| format!("{}\n", event.text())).collect();
    lines.concat()
}

/// A stream of events, as it is read.
struct Stream {
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    headers: reqwest::header::HeaderMap,
    text: String,
}

impl Stream {
    async fn open(host: &RunningHost, target: &str, last: Option<&str>) -> Self {
        let mut request =
            reqwest::Client::builder().no_proxy().build().unwrap().get(host.origin() + target);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let headers = response.headers().clone();
        Self { body: Box::pin(response.bytes_stream()), headers, text: String::new() }
    }

    /// Reads until the text has this in it; or, without it, until the end.
    async fn until(&mut self, wanted: &str) {
        let reading = async {
            // The end of a block is looked at, so that what was found is whole.
            while wanted.is_empty() || !self.text.contains(wanted) || !self.text.ends_with("\n\n") {
                let Some(piece) = self.body.next().await else {
                    assert_eq!(wanted, "", "the stream ended");
                    return;
                };
                self.text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
            }
        };
        tokio::time::timeout(Duration::from_secs(10), reading).await.expect("it comes");
        let told = Told { status: 200, headers: &self.headers, body: self.text.as_bytes() };
        check_event_blocks(told);
    }

    /// The ids so far.
    fn ids(&self) -> Vec<u64> {
        let ids = self.text.lines().filter_map(|line| line.strip_prefix("id: "));
        ids.map(|id| id.parse().unwrap()).collect()
    }
}

#[tokio::test]
async fn a_log_is_served_as_the_command_prints_it() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    for name in ["text-turn", "packed-chunks", "web-goal-multi-turn"] {
        let (_, events) = golden(name);
        let id = store.add_golden(name).await;
        let path = format!("/api/turnkeep/sessions/{id}/events");
        let answer = host.get(&path).await;
        assert_eq!((answer.status, &answer.body), (200, &printed(&events)), "{name}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        for (offset, length) in [(0, 1), (3, 4), (events.len() - 1, 9), (events.len(), 1), (0, 0)] {
            let answer = host.get(&format!("{path}?offset={offset}&length={length}")).await;
            let end = (offset + length).min(events.len());
            assert_eq!(answer.body, printed(&events[offset..end]), "{name} {offset} {length}");
        }
        let head = host.request("HEAD", &path).send().await.unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("application/x-ndjson")));
    }
}

#[tokio::test]
async fn a_long_log_comes_in_pieces_and_whole() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let text = "x".repeat(900);
    let events: Vec<_> = (0..9000).map(|at| prompt(&format!("p{at}"), &text)).collect();
    let events = made(0, |at| at, &events);
    let id = store.add(support::store::header("long"), events.clone()).await;
    let answer = host.get(&format!("/api/turnkeep/sessions/{id}/events")).await;
    assert!(answer.body == printed(&events), "every event");
    assert_eq!(answer.header("content-length"), None, "it is not collected first");
}

#[tokio::test]
async fn what_is_not_a_number_is_refused() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let id = store.add_made("s", &turns(1)).await;
    for (query, text) in [
        ("offset=-1", "offset must be a non-negative integer"),
        ("offset=1.5", "offset must be a non-negative integer"),
        ("offset=", "offset must be a non-negative integer"),
        ("offset=9007199254740992", "offset must be a non-negative integer"),
        ("offset=1&offset=2", "offset must be a non-negative integer"),
        ("length=x", "length must be a non-negative integer"),
        ("length=+1", "length must be a non-negative integer"),
    ] {
        let answer = host.get(&format!("/api/turnkeep/sessions/{id}/events?{query}")).await;
        assert_eq!((answer.status, answer.json()), (400, json!({ "error": text })), "{query}");
    }
    for query in ["after=-2", "after=x", "after=", "after=1&after=2"] {
        let answer = host.get(&format!("/api/turnkeep/sessions/{id}/events/stream?{query}")).await;
        let text = "after must be -1 or the seq of an event";
        assert_eq!((answer.status, answer.json()), (400, json!({ "error": text })), "{query}");
    }
    let answer = host.get(&format!("/api/turnkeep/sessions/{id}/events/stream?after=5")).await;
    let text = "the session has no such event";
    assert_eq!((answer.status, answer.json()), (400, json!({ "error": text })));
}

#[tokio::test]
async fn only_stored_sessions_have_a_log() {
    let store = TestStore::new();
    let upstream = ScriptedUpstream::start(|_| None).await;
    let mut options = options(&store);
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    for route in ["events", "events/stream"] {
        let answer = host.get(&format!("/api/turnkeep/sessions/ses_theirs/{route}")).await;
        let text = "the session is not in the store: its log is not kept here";
        assert_eq!((answer.status, answer.json()), (404, json!({ "error": text })));
        let answer = host.get(&format!("/api/turnkeep/sessions/nobody/{route}")).await;
        assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("session_not_found")));
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_log_has_a_status_or_breaks_the_body() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let id = store.add_made("small", &turns(3)).await;
    let log = store.log(&id);
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&log, &bytes).unwrap();
    for route in ["events", "events/stream"] {
        let answer = host.get(&format!("/api/turnkeep/sessions/{id}/{route}")).await;
        assert_eq!((answer.status, &answer.json()["code"]), (422, &json!("corrupt")), "{route}");
        assert_eq!(answer.json()["session"], "small");
    }

    // Damaged far behind what is read first: what is missing is not passed over.
    let text = "y".repeat(900);
    let events: Vec<_> = (0..2000).map(|at| prompt(&format!("p{at}"), &text)).collect();
    let id = store.add_made("large", &events).await;
    for at in 1..5 {
        let more: Vec<_> = (0..1000).map(|n| prompt(&format!("p{at}-{n}"), &text)).collect();
        store.append(&id, made(1000 + 1000 * at, |at| at, &more)).await;
    }
    let log = store.log(&id);
    let mut bytes = fs::read(&log).unwrap();
    let near_end = bytes.len() - 20;
    bytes[near_end] ^= 0xff;
    fs::write(&log, &bytes).unwrap();
    let path = format!("/api/turnkeep/sessions/{id}/events");
    let refused = host.request("GET", &path).send().await;
    assert!(refused.is_err() || refused.unwrap().status == 422, "never a silently shorter body");
}

#[tokio::test]
async fn ids_are_as_long_as_on_every_other_route() {
    let store = TestStore::new();
    let upstream = ScriptedUpstream::start(|_| None).await;
    let mut options = options(&store);
    options.upstream = Some(upstream.options());
    let host = RunningHost::start(options).await;
    // A character of two UTF-16 units.
    for (id, status) in
        [("%F0%9F%98%80".repeat(256), 404), (format!("ses_{}", "x".repeat(509)), 400)]
    {
        for path in [
            format!("/api/turnkeep/sessions/{id}"),
            format!("/api/turnkeep/sessions/{id}/events"),
            format!("/api/turnkeep/sessions/{id}/events/stream"),
            format!("/api/session/{id}/message"),
        ] {
            assert_eq!(host.get(&path).await.status, status, "{path}");
        }
    }
    assert!(upstream.requests().is_empty(), "nobody is asked for what is too long");
}

#[tokio::test]
async fn a_stream_begins_where_its_client_is_and_goes_on() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let id = store.add_made("live", &turns(2)).await;
    let path = format!("/api/turnkeep/sessions/{id}/events/stream");
    let mut all = Stream::open(&host, &path, None).await;
    let mut from = Stream::open(&host, &format!("{path}?after=-1"), None).await;
    let mut rest = Stream::open(&host, &format!("{path}?after=7"), None).await;
    // The header is newer than the query, which a browser repeats.
    let mut back = Stream::open(&host, &format!("{path}?after=2"), Some("8")).await;
    for stream in [&mut all, &mut from, &mut rest, &mut back] {
        assert_eq!(stream.headers["cache-control"], "no-cache, no-transform");
        stream.until("id: 9\n").await;
    }
    assert_eq!(all.ids(), (0..10).collect::<Vec<_>>());
    assert_eq!(from.ids(), all.ids());
    assert_eq!(rest.ids(), [8, 9]);
    assert_eq!(back.ids(), [9]);

    let more = made(10, |at| at, &[prompt("late", "one more")]);
    store.append(&id, more.clone()).await;
    for stream in [&mut all, &mut rest, &mut back] {
        stream.until("id: 10\n").await;
        assert!(stream.text.contains(&format!("data: {}\n\n", more[0].text())));
    }
    let head = host.request("HEAD", &path).send().await.unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
}

#[tokio::test]
async fn a_torn_tail_reaches_nobody() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let id = store.add_made("torn", &turns(1)).await;
    let log = store.log(&id);
    let whole = fs::read(&log).unwrap();
    store.append(&id, made(5, |at| at, &[prompt("late", "one more")])).await;
    let longer = fs::read(&log).unwrap();
    fs::write(&log, &longer[..whole.len() + 9]).unwrap();
    let path = format!("/api/turnkeep/sessions/{id}/events/stream");
    let mut stream = Stream::open(&host, &path, None).await;
    stream.until("id: 4\n").await;
    assert_eq!(stream.ids(), [0, 1, 2, 3, 4]);
    // Another process ends its write.
    append(&log, &longer[whole.len() + 9..]);
    stream.until("id: 5\n").await;
}

#[tokio::test]
async fn the_end_of_a_session_is_told() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let deleted = store.add_made("deleted", &turns(1)).await;
    let damaged = store.add_made("damaged", &turns(1)).await;
    let path = |id: &str| format!("/api/turnkeep/sessions/{id}/events/stream");
    let mut one = Stream::open(&host, &path(&deleted), None).await;
    let mut two = Stream::open(&host, &path(&damaged), None).await;
    one.until("id: 4\n").await;
    two.until("id: 4\n").await;
    let id = SessionId::new(&deleted).unwrap();
    store.store.delete(&id, &Cancel::never()).await.unwrap();
    one.until("").await;
    let expected = r#"event: error
data: {"error":"session not found","code":"session_not_found"}"#;
    assert!(one.text.trim_end().ends_with(expected), "{}", one.text);

    let log = store.log(&damaged);
    let bytes = fs::read(&log).unwrap();
    append(&log, &[b"not a frame at all, and long enough to be none", &*bytes].concat());
    two.until("").await;
    assert!(two.text.contains("event: error\ndata: {"), "{}", two.text);
    assert!(two.text.contains(r#""session":"damaged""#), "{}", two.text);
}

#[tokio::test]
async fn a_session_made_anew_under_its_name_is_another_one() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let id = store.add_made("again", &turns(1)).await;
    let path = format!("/api/turnkeep/sessions/{id}/events/stream");
    let mut stream = Stream::open(&host, &path, None).await;
    stream.until("id: 4\n").await;
    store.store.delete(&SessionId::new(&id).unwrap(), &Cancel::never()).await.unwrap();
    store.add(support::store::header(&id), made(0, |at| 77 + at, &turns(3))).await;
    stream.until("").await;
    assert_eq!(stream.ids(), [0, 1, 2, 3, 4], "nothing of the other one");
    assert!(stream.text.contains("event: error\n"));
}

#[tokio::test]
async fn a_quiet_stream_is_heard_of_and_ends_with_the_host() {
    let store = TestStore::new();
    let mut options = options(&store);
    options.event_timing.heartbeat = Duration::from_millis(50);
    let host = RunningHost::start(options).await;
    let id = store.add_made("quiet", &turns(1)).await;
    let path = format!("/api/turnkeep/sessions/{id}/events/stream?after=4");
    let mut stream = Stream::open(&host, &path, None).await;
    stream.until(": heartbeat\n\n: heartbeat\n\n").await;
    assert!(stream.text.starts_with(": connected\n\n"));
    let stopping = tokio::spawn(host.stop());
    stream.until("").await;
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_long_log_comes_whole_over_a_stream() {
    let store = TestStore::new();
    let host = RunningHost::start(options(&store)).await;
    let text = "z".repeat(3000);
    let events: Vec<_> = (0..4000).map(|at| prompt(&format!("p{at}"), &text)).collect();
    let id = store.add_made("large", &events).await;
    let path = format!("/api/turnkeep/sessions/{id}/events/stream");
    let mut stream = Stream::open(&host, &path, None).await;
    stream.until("id: 3999\n").await;
    assert_eq!(stream.ids(), (0..4000).collect::<Vec<_>>());
}
