//! Pages that are read in the middle of an answer.

use serde_json::{Value, json};
use turnkeep_log::Text;

use super::*;
use crate::{
    events::{LiveParts, LiveText},
    page::SourcePage,
};

const SLIM: Projection = Projection { parts: Parts::Slim, reasoning: true };
const NO_REASONING: Projection = Projection { parts: Parts::Slim, reasoning: false };

fn part(id: &str, kind: &str, text: &str, time: &Value) -> Value {
    json!({
        "id": id, "sessionID": SESSION, "messageID": "a1", "type": kind, "text": text, "time": time,
    })
}

/// A moment at which a reasoning part and a text part of `a1` are being written.
fn live() -> LiveText {
    let mut live = LiveParts::new(1 << 20);
    for (id, kind) in [("p1", "reasoning"), ("p2", "text")] {
        let part = part(id, kind, "so far", &json!({"start": 1}));
        let event = json!({"type": "message.part.updated", "properties": {"part": part}});
        live.apply(&Text::from(event.to_string()));
    }
    live.of_session(SESSION)
}

/// The page, made of a prompt and its answer with these parts.
fn page(parts: &Value, projection: Projection, live: LiveText) -> Vec<String> {
    let answer =
        json!({"info": {"id": "a1", "role": "assistant", "time": {"created": 2}}, "parts": parts});
    let body = Text::from(format!("[{},{answer}]", record("u1", Some(1))));
    let mut scan =
        TurnScan::new(SESSION, &query(1, 10, None), SourceKind::OpenCode, projection).unwrap();
    scan = scan.with_live(live);
    while scan.want().is_some() {
        scan.feed(Answer::Page(SourcePage::from_opencode(&body, None).unwrap())).unwrap();
    }
    scan.finish().unwrap().records
}

fn parts_of(record: &str) -> Value {
    serde_json::from_str::<Value>(record).unwrap()["parts"].clone()
}

#[test]
fn a_page_has_the_text_of_what_was_being_written() {
    let (open, ended) = (json!({"start": 1}), json!({"start": 1, "end": 2}));
    let listed =
        json!([part("p1", "reasoning", "so far and more", &ended), part("p2", "text", "", &open)]);
    let expected =
        json!([part("p1", "reasoning", "so far", &open), part("p2", "text", "so far", &open)]);
    for projection in [WHOLE, SLIM] {
        let records = page(&listed, projection, live());
        assert_eq!(records[0], record("u1", Some(1)), "no other record is touched");
        assert_eq!(parts_of(&records[1]), expected);
    }
    let records = page(&listed, NO_REASONING, live());
    assert_eq!(parts_of(&records[1]), json!([expected[1]]));
}

#[test]
fn reasoning_has_a_slim_form_once_it_is_no_longer_written() {
    let ended = json!({"start": 1, "end": 2});
    let listed = json!([part("p0", "reasoning", "done", &ended)]);
    let slim = json!({
        "id": "p0", "sessionID": SESSION, "messageID": "a1", "type": "reasoning",
        "time": ended, "slim": true,
    });
    let records = page(&listed, SLIM, live());
    assert_eq!(parts_of(&records[1])[0], slim);
    // Those that are not listed are there all the same, in the order of their ids.
    let open = json!({"start": 1});
    assert_eq!(parts_of(&records[1])[1], part("p1", "reasoning", "so far", &open));
    assert_eq!(parts_of(&records[1])[2], part("p2", "text", "so far", &open));
    let listed = json!([part("p1", "reasoning", "so far", &ended)]);
    assert_eq!(parts_of(&page(&listed, SLIM, LiveText::default())[1])[0]["slim"], true);
}

#[test]
fn nothing_open_changes_nothing() {
    let listed = json!([
        part("p1", "reasoning", "r", &json!({"start": 1})),
        part("p2", "text", "", &json!(null))
    ]);
    let mut ended = LiveParts::new(1 << 20);
    ended.apply(&Text::from(r#"{"type":"session.idle","properties":{"sessionID":"ses_1"}}"#));
    for projection in [WHOLE, SLIM, NO_REASONING] {
        let plain = page(&listed, projection, LiveText::default());
        assert_eq!(page(&listed, projection, ended.of_session(SESSION)), plain);
        assert_eq!(page(&listed, projection, ended.of_session("ses_2")), plain);
    }
}
