//! Stored sessions on the event channels.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{Stream, StreamExt as _};
use serde_json::{Value, json};
use support::{
    host::RunningHost,
    logs::SAID,
    store::{TestStore, WatchedStore, golden, header, made, prompt, turns},
    upstream::wait_until,
};
use turnkeep_host::HostOptions;
use turnkeep_log::{Event, SessionId};
use turnkeep_store::{
    Access, Cancel, SessionStore,
    jsonl::{JsonlOptions, JsonlStore},
};
use turnkeep_turns::Fold;

fn options(store: Arc<dyn SessionStore>) -> HostOptions {
    let mut options = HostOptions::default();
    options.store = Some(store);
    options.event_timing.store_poll = Duration::from_millis(10);
    options.event_timing.store_grace = Duration::from_millis(200);
    options
}

/// A client of the channel of all directories.
struct Channel {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    rest: String,
    /// What came, with the ids.
    events: Vec<(String, Value)>,
}

impl Channel {
    async fn open(host: &RunningHost, last: Option<&str>) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.get(host.origin() + "/api/global/event");
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: Box::pin(response.bytes_stream()), rest: String::new(), events: Vec::new() }
    }

    async fn more(&mut self) {
        let piece = tokio::time::timeout(Duration::from_secs(10), self.body.next()).await;
        let piece = piece.expect("something comes").expect("the stream goes on").unwrap();
        self.rest.push_str(std::str::from_utf8(&piece).unwrap());
        while let Some((block, rest)) = self.rest.split_once("\n\n") {
            if let Some((id, data)) = block.split_once("\ndata: ")
                && let Some(id) = id.strip_prefix("id: ")
            {
                self.events.push((id.to_owned(), serde_json::from_str(data).unwrap()));
            }
            let rest = rest.to_owned();
            self.rest = rest;
        }
    }

    /// Reads until an event of this type about this session has come.
    async fn until(&mut self, kind: &str, session: &str) {
        // Heartbeats are more, too.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.kinds(session).contains(&kind.to_owned()) {
            assert!(Instant::now() < deadline, "no {kind} in {:?}", self.kinds(session));
            self.more().await;
        }
    }

    fn of(&self, session: &str) -> impl Iterator<Item = (&str, &Value)> {
        let events = self.events.iter().map(|(id, event)| (id.as_str(), event));
        events.filter(move |(_, event)| event["payload"]["properties"]["sessionID"] == session)
    }

    fn kinds(&self, session: &str) -> Vec<String> {
        let kind = |(_, event): (_, &Value)| event["payload"]["type"].as_str().unwrap().to_owned();
        self.of(session).map(kind).collect()
    }
}

impl Channel {
    /// How many turns of a session have ended.
    fn idle(&self, session: &str) -> usize {
        self.kinds(session).iter().filter(|kind| *kind == "session.idle").count()
    }
}

/// The records of one session, as a client has them that applies events.
#[derive(Clone, Debug, Default, PartialEq)]
struct Records(Vec<Value>);

impl Records {
    fn apply(&mut self, payload: &Value) {
        let properties = &payload["properties"];
        match payload["type"].as_str().unwrap() {
            "message.updated" => {
                let info = &properties["info"];
                match self.0.iter_mut().find(|record| record["info"]["id"] == info["id"]) {
                    Some(record) => record["info"] = info.clone(),
                    None => self.0.push(json!({ "info": info, "parts": [] })),
                }
            }
            "message.removed" => {
                self.0.retain(|record| record["info"]["id"] != properties["messageID"]);
            }
            "message.part.updated" => {
                let part = &properties["part"];
                let parts = self.parts(&part["messageID"]);
                match parts.iter_mut().find(|old| old["id"] == part["id"]) {
                    Some(old) => *old = part.clone(),
                    None => parts.push(part.clone()),
                }
            }
            "message.part.removed" => {
                let parts = self.parts(&properties["messageID"]);
                parts.retain(|part| part["id"] != properties["partID"]);
            }
            "message.part.delta" => {
                let parts = self.parts(&properties["messageID"]);
                let part = parts.iter_mut().find(|part| part["id"] == properties["partID"]);
                let part = part.expect("what grows is there");
                let delta = properties["delta"].as_str().unwrap();
                part["text"] = Value::from(part["text"].as_str().unwrap().to_owned() + delta);
            }
            _ => {}
        }
    }

    fn parts(&mut self, message: &Value) -> &mut Vec<Value> {
        let record = self.0.iter_mut().find(|record| record["info"]["id"] == *message);
        record.expect("a part has a message")["parts"].as_array_mut().unwrap()
    }
}

fn folded(id: &str, events: &[Event]) -> Records {
    let mut fold = Fold::new(&SessionId::new(id).unwrap());
    for event in events {
        fold.push(event);
    }
    let rows = fold.page(None, usize::MAX).rows;
    Records(rows.iter().map(|(_, row)| serde_json::from_str(row.text()).unwrap()).collect())
}

/// A page of a session, and its date.
async fn page(host: &RunningHost, session: &str) -> (Records, Option<String>) {
    let path = format!("/api/openchamber/sessions/{session}/messages?turns=10");
    let answer = host.get(&path).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let records = answer.json()["records"].as_array().unwrap().clone();
    (Records(records), answer.header("x-turnkeep-event-id").map(str::to_owned))
}

/// Waits until pages are dated, which they are once the store is watched.
async fn watched(host: &RunningHost, session: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while page(host, session).await.1.is_none() {
        assert!(Instant::now() < deadline, "the store is watched");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until nobody looks at the store any more.
async fn left_alone(host: &RunningHost, session: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while page(host, session).await.1.is_some() {
        assert!(Instant::now() < deadline, "the store is left alone");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A turn whose answer streams in, word by word.
fn streaming(turn: usize, words: usize) -> Vec<(&'static str, Value)> {
    let place =
        |chunk: Value| ("assistant/chunk", json!({ "turn": turn, "step": 1, "chunk": chunk }));
    let text = (0..words).fold(String::new(), |text, at| text + "word" + &at.to_string() + " ");
    let block = json!({ "type": "text", "text": text });
    let mut events = vec![
        ("turn/start", json!({ "turn": turn })),
        prompt(&format!("p{turn}"), "say something"),
        ("step/start", json!({ "turn": turn, "step": 1 })),
        place(json!({ "type": "block-start", "index": 0, "blockType": "text" })),
    ];
    events.extend((0..words).map(|at| {
        place(json!({ "type": "text-delta", "index": 0, "text": format!("word{at} ") }))
    }));
    let source = json!({ "kind": "model", "provider": "p", "model": "m" });
    let message = json!({ "role": "assistant", "id": format!("a{turn}"), "content": [block],
        "source": source });
    events.extend([
        place(json!({ "type": "block-end", "index": 0, "block": block })),
        place(json!({ "type": "finish", "reason": { "kind": "end-turn" } })),
        ("assistant/message", json!({ "turn": turn, "step": 1, "message": message })),
        ("step/end", json!({ "turn": turn, "step": 1 })),
        ("turn/end", json!({ "turn": turn, "reason": { "kind": "completed" } })),
    ]);
    events
}

#[tokio::test]
async fn what_another_process_writes_is_seen_as_it_comes() {
    let store = TestStore::new();
    let anchor = store.add_made("anchor", &turns(1)).await;
    let host = RunningHost::start(options(Arc::clone(&store.store) as _)).await;
    let mut channel = Channel::open(&host, None).await;
    watched(&host, &anchor).await;

    // A store of its own shares nothing with the host's but the files.
    let other = JsonlStore::open(JsonlOptions::new(store.folder.path())).unwrap();
    let (header, events) = golden("web-goal-multi-turn");
    let id = header.id.as_str().to_owned();
    let writer = other.create(header.clone(), &Cancel::never()).await.unwrap();
    for batch in events.chunks(events.len() / 7 + 1) {
        writer.append(batch.to_vec(), &Cancel::never()).await.unwrap();
        channel.more().await;
    }
    let expected = folded(&id, &events);
    let mut records = Records::default();
    let mut seen = 0;
    while records != expected {
        if channel.of(&id).count() == seen {
            channel.more().await;
        }
        for (_, event) in channel.of(&id).skip(seen) {
            assert_eq!(event["directory"].as_str(), header.cwd.as_deref());
            assert!(event["payload"]["id"].as_str().unwrap().starts_with("evt_"));
            records.apply(&event["payload"]);
            seen += 1;
        }
    }
    while channel.idle(&id) < 2 {
        channel.more().await;
    }
    assert_eq!(channel.kinds(&id).first().map(String::as_str), Some("session.created"));
    let states: Vec<_> = channel
        .of(&id)
        .filter_map(|(_, event)| event["payload"]["properties"]["status"]["type"].as_str())
        .collect();
    assert_eq!(states, ["busy", "idle", "busy", "idle"]);
    assert_eq!(channel.of(&anchor).count(), 0, "what was there is not told again");
}

#[tokio::test]
async fn a_page_and_the_events_after_its_date_fit_together() {
    let store = TestStore::new();
    let id = store.add_made("live", &turns(1)).await;
    let host = RunningHost::start(options(Arc::clone(&store.store) as _)).await;
    assert_eq!(page(&host, &id).await.1, None, "nobody watches, so there is no date");
    let mut channel = Channel::open(&host, None).await;
    watched(&host, &id).await;

    let session = SessionId::new(&id).unwrap();
    let writer = store.store.open(&session, Access::Write, &Cancel::never()).await.unwrap();
    let mut events = made(0, |at| 1000 + at, &turns(1));
    let mut pages = vec![page(&host, &id).await];
    // How many times an answer's part was told of.
    let told = |channel: &Channel| {
        let is_answer = |payload: &Value| {
            let message = payload["properties"]["part"]["messageID"].as_str();
            payload["type"] == "message.part.updated"
                && message.is_some_and(|id| id.starts_with("asst:"))
        };
        channel.of(&id).filter(|(_, event)| is_answer(&event["payload"])).count()
    };
    for (turn, words) in [(2, 25), (3, 12)] {
        let before = told(&channel);
        for (at, event) in streaming(turn, words).into_iter().enumerate() {
            // However slow the machine: what comes from here on finds the part told of.
            while at == 10 && told(&channel) == before {
                channel.more().await;
            }
            let event = made(events.len(), |at| 1000 + at, &[event]);
            writer.append(event.clone(), &Cancel::never()).await.unwrap();
            events.extend(event);
            // Sometimes before it was published, sometimes after.
            if events.len() % 3 == 0 {
                tokio::time::sleep(Duration::from_millis(12)).await;
            }
            pages.push(page(&host, &id).await);
        }
    }
    let expected = folded(&id, &events);
    while channel.idle(&id) < 2 {
        channel.more().await;
    }
    let (newest, _) = page(&host, &id).await;
    assert_eq!(newest.0.len(), expected.0.len());
    let mut deltas = 0;
    for (at, (records, date)) in pages.into_iter().enumerate() {
        let date = date.expect("the store is watched");
        let mut records = records;
        let number = |id: &str| id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
        for (id, event) in channel.of(&id) {
            if number(id) > number(&date) {
                deltas += usize::from(event["payload"]["type"] == "message.part.delta");
                records.apply(&event["payload"]);
            }
        }
        assert_eq!(records, newest, "page {at} of {date}");
    }
    assert!(deltas > 0, "some text came in pieces");
    writer.close().await.unwrap();
}

#[tokio::test]
async fn who_comes_back_with_a_page_has_missed_nothing() {
    let store = TestStore::new();
    let id = store.add_made("quiet", &turns(2)).await;
    let host = RunningHost::start(options(Arc::clone(&store.store) as _)).await;
    let first = Channel::open(&host, None).await;
    watched(&host, &id).await;
    let (mut records, date) = page(&host, &id).await;
    store.append(&id, made(10, |at| 1000 + at, &streaming(3, 4))).await;
    let mut back = Channel::open(&host, date.as_deref()).await;
    back.until("session.idle", &id).await;
    back.of(&id).for_each(|(_, event)| records.apply(&event["payload"]));
    assert_eq!(records, page(&host, &id).await.0);

    // When nobody has watched for long, who comes back is told that something may be missing.
    drop((first, back));
    left_alone(&host, &id).await;
    let mut late = Channel::open(&host, date.as_deref()).await;
    while late.events.is_empty() {
        late.more().await;
    }
    assert_eq!(late.events[0].1["payload"]["type"], "turnkeep.reset");
}

#[tokio::test]
async fn a_deleted_session_is_told_of() {
    let store = TestStore::new();
    let id = store.add_made("short-lived", &turns(1)).await;
    let host = RunningHost::start(options(Arc::clone(&store.store) as _)).await;
    let mut channel = Channel::open(&host, None).await;
    watched(&host, &id).await;
    store.store.delete(&SessionId::new(&id).unwrap(), &Cancel::never()).await.unwrap();
    channel.until("session.deleted", &id).await;
    // Another one under its name is a new one.
    store.add(header(&id), made(0, |at| at, &turns(1))).await;
    channel.until("session.created", &id).await;
    channel.until("session.idle", &id).await;
    let info = |(_, event): (_, &Value)| event["payload"]["properties"]["info"].clone();
    let infos: Vec<_> = channel.of(&id).map(info).filter(|info| info["slug"].is_string()).collect();
    assert_eq!((&infos[0]["id"], &infos[0]["directory"]), (&json!(id), &json!("/work/demo")));
    let titled = infos.iter().any(|info| info["title"] == format!("question 1 {SAID}"));
    assert!(titled, "{infos:?}");
}

#[tokio::test]
async fn a_session_without_events_is_told_of_whatever_its_date() {
    let store = TestStore::new();
    let anchor = store.add_made("anchor", &turns(1)).await;
    let host = RunningHost::start(options(Arc::clone(&store.store) as _)).await;
    let mut channel = Channel::open(&host, None).await;
    watched(&host, &anchor).await;
    // It says to have been created in 1970.
    let writer = store.store.create(header("old"), &Cancel::never()).await.unwrap();
    channel.until("session.created", "old").await;
    writer.append(made(0, |at| 1000 + at, &turns(1)), &Cancel::never()).await.unwrap();
    channel.until("session.idle", "old").await;
    let kinds = channel.kinds("old");
    assert_eq!(kinds.iter().filter(|kind| *kind == "session.created").count(), 1, "{kinds:?}");
    assert_eq!((kinds[0].as_str(), kinds[1].as_str()), ("session.created", "session.status"));
    writer.close().await.unwrap();
}

#[tokio::test]
async fn the_store_is_looked_at_only_while_somebody_watches() {
    let store = TestStore::new();
    for name in ["a", "b", "c"] {
        store.add_made(name, &turns(2)).await;
    }
    let watched_store = WatchedStore::new(Arc::clone(&store.store) as _);
    let host = RunningHost::start(options(Arc::clone(&watched_store) as _)).await;
    host.get("/health").await;
    assert_eq!(watched_store.listed(), 0);

    let mut channel = Channel::open(&host, None).await;
    wait_until("the store is watched", || watched_store.listed() > 2).await;
    assert_eq!(watched_store.opened(), 0, "a list reads no log");
    store.append("b", made(10, |at| 5000 + at, &streaming(3, 2))).await;
    channel.until("session.idle", "b").await;
    assert_eq!(watched_store.opened(), 1, "only what has changed is read, and once");
    store.append("b", made(21, |at| 5000 + at, &[prompt("more", "and more")])).await;
    while !channel
        .events
        .iter()
        .any(|(_, event)| event["payload"]["properties"]["info"]["id"] == "more")
    {
        channel.more().await;
    }
    assert_eq!(watched_store.opened(), 1, "it is read on from where it was");

    drop(channel);
    left_alone(&host, "a").await;
    let listed = watched_store.listed();
    for _ in 0..20 {
        assert_eq!(page(&host, "a").await.1, None);
    }
    assert_eq!(watched_store.listed(), listed);
}
