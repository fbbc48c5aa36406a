use serde_json::{Value, json};

use super::{GateError, check, check_event};
use crate::{
    event::{Event, EventDraft},
    id::{Seq, SessionId},
    json::JsonText,
    vocabulary::Vocabulary,
};

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn event(event_type: &str, seq: u64, data: &Value) -> Event {
    let data = JsonText::parse(&data.to_string().into()).unwrap();
    EventDraft::new(event_type, &data).complete(Seq(seq), 0).unwrap()
}

fn ignorable(event_type: &str, data: &Value) -> Event {
    let data = JsonText::parse(&data.to_string().into()).unwrap();
    EventDraft::new(event_type, &data).ignorable().complete(Seq(0), 0).unwrap()
}

fn verdict(event_type: &str, data: &Value) -> Result<(), GateError> {
    check_event(&session(), &event(event_type, 3, data), &Vocabulary::v0())
}

fn user() -> Value {
    json!({"id": "m", "role": "user", "content": [{"type": "hologram"}], "source": {"kind": "oracle"}})
}

fn assistant() -> Value {
    json!({"turn": 1, "step": 1, "message": {"id": "m", "role": "assistant", "content": [],
        "source": {"kind": "model", "provider": "p", "model": "m"}}})
}

fn result() -> Value {
    json!({"turn": 1, "step": 1, "message": {"id": "m", "role": "user",
        "content": [{"type": "tool-result", "toolCallId": "c", "content": []}],
        "source": {"kind": "tool", "callId": "c"}}})
}

#[test]
fn good_messages_pass() {
    for (event_type, data) in
        [("user/message", user()), ("assistant/message", assistant()), ("tool/result", result())]
    {
        assert_eq!(verdict(event_type, &data), Ok(()));
    }
    let escaped = json!({"message": {"id": "m", "role": "user",
        "content": [{"type": "tool-result", "toolCallId": "é", "content": []}],
        "source": {"kind": "tool", "callId": "é"}}});
    let text = escaped.to_string().replacen('é', "\\u00e9", 1);
    let data = JsonText::parse(&text.into()).unwrap();
    let event = EventDraft::new("tool/result", &data).complete(Seq(0), 0).unwrap();
    assert_eq!(check_event(&session(), &event, &Vocabulary::v0()), Ok(()));
}

#[test]
fn messages_that_are_none_are_corrupt() {
    let spoilt = |event_type: &str, data: &Value, pointer: &str, value: Option<Value>| {
        let mut data = data.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = data.pointer_mut(parent).unwrap();
        match (parent, value) {
            (Value::Array(list), Some(value)) => list.push(value),
            (Value::Array(list), None) => list.clear(),
            (parent, Some(value)) => parent[key] = value,
            (parent, None) => drop(parent.as_object_mut().unwrap().remove(key)),
        }
        let error = verdict(event_type, &data).unwrap_err();
        assert_eq!(error.kind(), "corrupt", "{data}");
        let start = "stored session \"s\" failed validation: session event at seq 3 ";
        assert!(error.to_string().starts_with(start), "{error}");
        error.to_string()
    };
    for (event_type, data, at) in [
        ("user/message", user(), ""),
        ("assistant/message", assistant(), "/message"),
        ("tool/result", result(), "/message"),
    ] {
        for value in [None, Some(json!("")), Some(json!(7))] {
            let message = spoilt(event_type, &data, &format!("{at}/id"), value.clone());
            assert!(message.ends_with("lacks an identified message"), "{message}");
            let message = spoilt(event_type, &data, &format!("{at}/role"), value.clone());
            assert_eq!(message.ends_with("without a role"), value.is_none(), "{message}");
            spoilt(event_type, &data, &format!("{at}/source"), value.clone());
            spoilt(event_type, &data, &format!("{at}/source/kind"), value.clone());
            spoilt(event_type, &data, &format!("{at}/content"), value);
        }
        spoilt(event_type, &data, &format!("{at}/role"), Some(json!("system")));
        spoilt(event_type, &data, &format!("{at}/content"), Some(json!({})));
    }
    for value in [None, Some(json!("m")), Some(json!([]))] {
        spoilt("assistant/message", &assistant(), "/message", value.clone());
        spoilt("tool/result", &result(), "/message", value);
    }
    for key in ["kind", "provider", "model"] {
        let pointer = format!("/message/source/{key}");
        for value in [None, Some(json!("")), Some(json!(null))] {
            spoilt("assistant/message", &assistant(), &pointer, value);
        }
    }
    spoilt("assistant/message", &assistant(), "/message/source/kind", Some(json!("tool")));
    spoilt("tool/result", &result(), "/message/source/kind", Some(json!("model")));
    for value in [None, Some(json!("")), Some(json!("d"))] {
        spoilt("tool/result", &result(), "/message/source/callId", value);
    }
    spoilt("tool/result", &result(), "/message/content/0", None);
    spoilt("tool/result", &result(), "/message/content/1", Some(json!({"type": "text"})));
    for key in ["type", "toolCallId", "content"] {
        let pointer = format!("/message/content/0/{key}");
        for value in [None, Some(json!("text"))] {
            spoilt("tool/result", &result(), &pointer, value);
        }
    }
    for data in [json!(null), json!([]), json!("m")] {
        for event_type in ["user/message", "assistant/message", "tool/result"] {
            assert_eq!(verdict(event_type, &data).unwrap_err().kind(), "corrupt");
        }
    }
}

#[test]
fn a_request_with_the_reason_fallback_is_corrupt_and_with_others_passes() {
    let error = verdict("request/header", &json!({"reason": "fallback"})).unwrap_err();
    assert_eq!(error.kind(), "corrupt");
    assert!(error.to_string().contains("unsupported legacy request/header reason \"fallback\""));
    for data in [json!({"reason": "initial"}), json!({"reason": "change"}), json!({}), json!(null)]
    {
        assert_eq!(verdict("request/header", &data), Ok(()));
    }
    assert_eq!(verdict("request/context", &json!({"reason": "fallback"})), Ok(()));
}

#[test]
fn extension_reasons_and_whatever_else_is_in_a_known_event_pass() {
    let passes = [
        ("turn/end", json!({"turn": 1, "reason": {"kind": "acme-paused", "why": []}})),
        ("turn/end", json!({"turn": 1, "reason": {"kind": "aborted"}})),
        ("turn/end", json!({"turn": 1, "reason": {"kind": "disposed"}})),
        ("turn/start", json!({"turn": 1, "trigger": {"kind": "user"}})),
        ("tool/call", json!("nothing of the kind")),
        ("assistant/chunk", json!(null)),
    ];
    for (event_type, data) in passes {
        assert_eq!(verdict(event_type, &data), Ok(()), "{event_type}");
    }
}

#[test]
fn unknown_types_are_refused_unless_they_may_be_skipped() {
    let data = json!({});
    let unknown = event("acme/telemetry", 124, &data);
    let error = check_event(&session(), &unknown, &Vocabulary::v0()).unwrap_err();
    assert_eq!(error.kind(), "format_unsupported");
    assert_eq!(
        error.to_string(),
        "session \"s\" contains event type \"acme/telemetry\" (seq 124) unknown to this harness \
         and not marked ignorable; refusing to interpret the log — it was likely written by a \
         newer harness; upgrade to open it"
    );
    let skipped = ignorable("acme/telemetry", &data);
    assert_eq!(check_event(&session(), &skipped, &Vocabulary::v0()), Ok(()));
    let known = Vocabulary::v0().with(["acme/telemetry"]);
    assert_eq!(check_event(&session(), &unknown, &known), Ok(()));

    for retired in ["steering/message", "mode/set", "request/header-delta"] {
        let error = verdict(retired, &data).unwrap_err();
        assert_eq!(error.kind(), "format_unsupported");
        let words = format!("contains event type \"{retired}\" (seq 3) that only early builds");
        assert!(error.to_string().contains(&words), "{error}");
    }
}

#[test]
fn skipping_a_type_does_not_skip_the_shape_of_a_message() {
    let event = ignorable("user/message", &json!({}));
    assert_eq!(check_event(&session(), &event, &Vocabulary::v0()).unwrap_err().kind(), "corrupt");
}

#[test]
fn a_newer_type_goes_before_a_corrupt_event() {
    let corrupt = event("user/message", 0, &json!({}));
    let newer = event("acme/one", 1, &json!({}));
    let newest = event("acme/two", 2, &json!({}));
    let verdict = |events: &[Event]| check(&session(), events, &Vocabulary::v0());
    assert!(matches!(
        verdict(&[corrupt.clone(), newer, newest]),
        Err(GateError::Unsupported { seq: Seq(1), .. })
    ));
    assert!(matches!(verdict(&[corrupt]), Err(GateError::Corrupt { seq: Seq(0), .. })));
    assert_eq!(verdict(&[]), Ok(()));
}
