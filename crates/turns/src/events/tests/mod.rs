mod captures;
mod live;
mod overlay;
mod random;
mod reasoning;
mod reduce;

use serde_json::{Value, json};
use turnkeep_log::Text;

use super::*;

fn text(value: &Value) -> Text {
    Text::from(value.to_string())
}

fn event(kind: &str, properties: &Value) -> Text {
    text(&json!({"id": "evt_1", "type": kind, "properties": properties}))
}

/// The second telling of a durable event.
fn synced(kind: &str, data: &Value) -> Text {
    let inner =
        json!({"id": "evt_1", "type": kind, "seq": 1, "aggregateID": "ses_1", "data": data});
    text(&json!({"type": "sync", "syncEvent": inner, "id": "evt_1"}))
}

fn part(id: &str, kind: &str, words: &str) -> Value {
    json!({
        "id": id, "sessionID": "ses_1", "messageID": "msg_1",
        "type": kind, "text": words, "time": {"start": 1},
    })
}

fn updated(part: &Value) -> Text {
    event("message.part.updated", &json!({"sessionID": "ses_1", "part": part, "time": 1}))
}

fn delta_of(message: &str, part: &str, words: &str) -> Text {
    event(
        "message.part.delta",
        &json!({
            "sessionID": "ses_1", "messageID": message, "partID": part,
            "field": "text", "delta": words,
        }),
    )
}

fn delta(part: &str, words: &str) -> Text {
    delta_of("msg_1", part, words)
}

#[test]
fn what_is_no_event_passes() {
    for text in ["", "nonsense", "[]", "7", r#""message.updated""#, "{}", r#"{"type":7}"#] {
        let text = Text::from(text);
        assert_eq!(reduce(&text), None);
        assert_eq!(ReasoningFilter::default().pass(&text), Passed::Kept);
        let mut live = LiveParts::new(1 << 20);
        live.apply(&text);
        assert!(live.is_empty());
    }
}
