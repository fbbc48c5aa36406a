//! A client that applies every event by the same few rules has what the fold has.

use proptest::prelude::*;
use serde_json::{Value, json};
use turnkeep_log::{Event, SessionId};

use super::{Change, LiveFold};
use crate::fold::{
    Fold,
    tests::{Log, all, call, chaos::data, golden, id_of, text, value},
};

/// What a client does with events, without knowing where they come from.
#[derive(Default)]
struct Client {
    records: Vec<Value>,
    kinds: Vec<&'static str>,
}

impl Client {
    fn holding(fold: &Fold) -> Self {
        Self { records: all(fold), kinds: Vec::new() }
    }

    fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            let event = value(&change.payload("evt_1"));
            assert_eq!((&event["id"], &event["type"]), (&json!("evt_1"), &json!(change.kind)));
            let properties = &event["properties"];
            assert!(properties["sessionID"].is_string());
            self.kinds.push(change.kind);
            match change.kind {
                "message.updated" => self.message(&properties["info"]),
                "message.removed" => {
                    self.records.retain(|record| record["info"]["id"] != properties["messageID"]);
                }
                "message.part.updated" => self.part(&properties["part"]),
                "message.part.removed" => {
                    let parts = self.parts(&properties["messageID"]);
                    parts.retain(|part| part["id"] != properties["partID"]);
                }
                "message.part.delta" => {
                    assert_eq!(properties["field"], "text");
                    let parts = self.parts(&properties["messageID"]);
                    let part = parts.iter_mut().find(|part| part["id"] == properties["partID"]);
                    let part = part.expect("a part grows that is there");
                    assert!(part["time"]["end"].is_null(), "a part grows until its end");
                    let delta = properties["delta"].as_str().unwrap();
                    part["text"] = Value::from(part["text"].as_str().unwrap().to_owned() + delta);
                }
                kind => panic!("no client knows {kind}"),
            }
        }
    }

    fn message(&mut self, info: &Value) {
        match self.records.iter_mut().find(|record| record["info"]["id"] == info["id"]) {
            Some(record) => record["info"] = info.clone(),
            None => self.records.push(json!({ "info": info, "parts": [] })),
        }
    }

    fn part(&mut self, part: &Value) {
        let parts = self.parts(&part["messageID"]);
        match parts.iter_mut().find(|old| old["id"] == part["id"]) {
            Some(old) => *old = part.clone(),
            None => parts.push(part.clone()),
        }
    }

    fn parts(&mut self, message: &Value) -> &mut Vec<Value> {
        let record = self.records.iter_mut().find(|record| record["info"]["id"] == *message);
        record.expect("a part has a message")["parts"].as_array_mut().unwrap()
    }
}

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn live() -> LiveFold {
    LiveFold::from(Fold::new(&session()))
}

#[track_caller]
fn assert_same(client: &Client, live: &LiveFold, what: &str) {
    let records = all(live.fold());
    for (has, wanted) in client.records.iter().zip(&records) {
        assert_eq!(has.to_string(), wanted.to_string(), "{what}");
    }
    assert_eq!(client.records.len(), records.len(), "{what}");
}

/// Feeds events in batches of these sizes, over and over, and compares after each.
fn follow(events: &[Event], batches: &[usize], what: &str) -> Client {
    let (mut live, mut client) = (live(), Client::default());
    let (mut rest, mut sizes) = (events, batches.iter().cycle());
    while !rest.is_empty() {
        let (batch, after) = rest.split_at((*sizes.next().unwrap()).clamp(1, rest.len()));
        rest = after;
        let mut told = Vec::new();
        for event in batch {
            live.push(event, &mut told);
        }
        live.tell(&mut told);
        client.apply(&told);
        assert_same(&client, &live, what);
    }
    client
}

#[test]
fn a_client_of_real_logs_has_what_the_fold_has_after_every_event() {
    for (name, _) in golden::LOGS {
        let (_, events) = golden::read(name);
        // Comparing costs as much as the transcript is long.
        let size = if events.len() > 1000 { 7 } else { 1 };
        let client = follow(&events, &[size], name);
        assert!(!client.records.is_empty(), "{name}");
        assert!(!client.kinds.contains(&"message.removed"), "{name}: nothing is told twice");
    }
}

#[test]
fn a_client_that_comes_in_the_middle_of_a_real_log_catches_up() {
    for (name, _) in golden::LOGS {
        let (_, events) = golden::read(name);
        let step = events.len().div_ceil(40);
        for base in (0..events.len()).step_by(step) {
            // Its page may be newer than where the followers begin.
            for page in [base, base + step / 2 + 1, base + 3 * step] {
                let page = page.min(events.len());
                let mut client = Client::holding(&fold(&events[..page]));
                let mut live = LiveFold::from(fold(&events[..base]));
                let mut told = Vec::new();
                events[base..].iter().for_each(|event| live.push(event, &mut told));
                live.tell(&mut told);
                client.apply(&told);
                assert_same(&client, &live, name);
            }
        }
    }
}

fn fold(events: &[Event]) -> Fold {
    crate::fold::tests::fold(&session(), events)
}

#[test]
fn a_text_begins_empty_grows_by_deltas_and_ends_whole() {
    let log = Log::new()
        .turn()
        .block(0, "text")
        .text(0, "Hel")
        .text(0, r"lo \ world")
        .end_block(0, &text(r"Hello \ world"))
        .answer(&json!([text(r"Hello \ world")]));
    let (mut live, mut told) = (live(), Vec::new());
    for event in &log.events {
        live.push(event, &mut told);
        live.tell(&mut told);
    }
    let said: Vec<_> = told
        .iter()
        .map(|change| {
            let properties: Value = serde_json::from_str(&change.properties).unwrap();
            let text = properties["delta"].as_str().or(properties["part"]["text"].as_str());
            (change.kind, text.unwrap_or_default().to_owned())
        })
        .collect();
    let part = "message.part.updated";
    let expected = [
        ("message.updated", ""),
        (part, ""),
        ("message.part.delta", "Hel"),
        ("message.part.delta", r"lo \ world"),
        (part, r"Hello \ world"),
        ("message.updated", ""),
    ];
    assert_eq!(said, expected.map(|(kind, text)| (kind, text.to_owned())));
    let last: Value = serde_json::from_str(&told[4].properties).unwrap();
    assert_eq!(last["part"]["time"], json!({"start": 1001, "end": 1004}));
    assert_eq!(last["time"], 1004);
}

#[test]
fn who_comes_in_the_middle_of_a_text_gets_it_whole_before_it_grows() {
    let log = Log::new().turn().block(0, "text").text(0, "a").text(0, "b").text(0, "c");
    let mut live = LiveFold::from(fold(&log.events[..3]));
    let mut told = Vec::new();
    for event in &log.events[3..] {
        live.push(event, &mut told);
        live.tell(&mut told);
    }
    let kinds: Vec<_> = told.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, ["message.part.updated", "message.part.delta"]);
}

#[test]
fn a_part_that_the_message_leaves_out_is_taken_back() {
    let log = Log::new()
        .turn()
        .block(0, "text")
        .text(0, "lost")
        .block(1, "tool-call")
        .end_block(1, &call("x", "{}"))
        .answer(&json!([call("x", "{}")]));
    for batch in [1, 100] {
        let client = follow(&log.events, &[batch], "left out");
        assert_eq!(client.kinds.iter().filter(|kind| **kind == "message.part.removed").count(), 1);
    }
}

#[test]
fn what_comes_up_in_a_place_that_was_passed_has_what_follows_sent_again() {
    let id = json!({"compactionId": "z", "turn": 1});
    let log = Log::new()
        .turn()
        .prompt("one", "1")
        .add("compaction/start", &id)
        .prompt("two", "2")
        .add("compaction/end", &id);
    let client = follow(&log.events, &[1], "passed");
    let ids: Vec<_> = client.records.iter().map(id_of).collect();
    assert_eq!(ids, ["one", "compaction:z", "two"]);
    assert!(client.kinds.contains(&"message.removed"));
}

#[test]
fn a_record_that_goes_away_is_taken_back_from_those_who_came_between() {
    let checkpoint = json!({"id": "k", "role": "user", "content": [text("k")],
        "source": {"kind": "plugin", "plugin": "compact", "compactionId": "z"}});
    let failed = json!({"compactionId": "z", "turn": 1, "error": "no"});
    let log = Log::new()
        .turn()
        .prompt("one", "1")
        .add("compaction/start", &json!({"compactionId": "z", "turn": 1}))
        .add("user/message", &checkpoint)
        .add("compaction/end", &failed);
    let mut client = Client::holding(&fold(&log.events[..4]));
    assert_eq!(client.records.len(), 2);
    let (mut live, mut told) = (LiveFold::from(fold(&log.events[..2])), Vec::new());
    log.events.iter().for_each(|event| live.push(event, &mut told));
    live.tell(&mut told);
    client.apply(&told);
    assert_same(&client, &live, "taken back");
    assert_eq!(client.records.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_client_has_what_the_fold_has_whatever_happens(
        events in prop::collection::vec(data(), 0..60),
        batches in prop::collection::vec(1..6_usize, 1..8),
        base in 0..60_usize,
        page in 0..60_usize,
    ) {
        let mut log = Log::new();
        for (kind, data) in &events {
            log = log.add(kind, data);
        }
        let events = &log.events;
        follow(events, &[1], "one by one");
        follow(events, &batches, "in batches");
        // One that has a page, behind followers that began at or before it.
        let base = base.min(events.len());
        let page = page.clamp(base, events.len().max(base));
        let mut client = Client::holding(&fold(&events[..page]));
        let (mut live, mut told) = (LiveFold::from(fold(&events[..base])), Vec::new());
        events[base..].iter().for_each(|event| live.push(event, &mut told));
        live.tell(&mut told);
        client.apply(&told);
        assert_same(&client, &live, "from a page");
    }

    #[test]
    fn a_client_of_real_logs_has_what_the_fold_has_in_any_batches(
        at in 0..golden::LOGS.len(),
        batches in prop::collection::vec(1..200_usize, 1..8),
    ) {
        let (name, _) = golden::LOGS[at];
        let (_, events) = golden::read(name);
        follow(&events, &batches, name);
    }
}
