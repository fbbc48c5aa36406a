use super::*;

const ROOM: usize = 1 << 20;

fn live(events: &[Text]) -> LiveParts {
    let mut live = LiveParts::new(ROOM);
    for event in events {
        live.apply(event);
    }
    live
}

/// The message as its server lists it: with these parts.
fn record(parts: &Value) -> Text {
    text(
        &json!({"info": {"id": "msg_1", "sessionID": "ses_1", "role": "assistant"}, "parts": parts}),
    )
}

/// The words of a part in the overlaid record; `None` when the record stays as it is.
fn words(live: &LiveParts, id: &str) -> Option<String> {
    let listed = record(&json!([part(id, "text", "")]));
    let overlaid = live.of_session("ses_1").overlay(&listed)?;
    let overlaid: Value = serde_json::from_str(&overlaid).unwrap();
    let part = overlaid["parts"].as_array().unwrap().iter().find(|part| part["id"] == id).unwrap();
    Some(part["text"].as_str().unwrap().to_owned()).filter(|words| !words.is_empty())
}

fn ended(id: &str, kind: &str, words: &str) -> Value {
    let mut part = part(id, kind, words);
    part["time"] = json!({"start": 1, "end": 2});
    part
}

#[test]
fn a_part_that_is_written_has_its_text_so_far() {
    for kind in ["text", "reasoning"] {
        let opened = updated(&part("prt_1", kind, ""));
        let live = live(&[opened, delta("prt_1", "Half a "), delta("prt_1", "sen\n\"te")]);
        assert_eq!(words(&live, "prt_1").as_deref(), Some("Half a sen\n\"te"));
        assert_eq!(live.len(), 1);
        assert!(live.of_session("ses_2").is_empty());
    }
}

#[test]
fn a_part_ends_with_its_last_update() {
    let mut live = live(&[updated(&part("prt_1", "text", "")), delta("prt_1", "Half")]);
    live.apply(&updated(&ended("prt_1", "text", "Half a sentence.")));
    assert!(live.is_empty() && live.of_session("ses_1").is_empty());
    assert_eq!((live.bytes(), words(&live, "prt_1")), (0, None));
    live.apply(&delta("prt_1", "late"));
    assert!(live.is_empty());
}

#[test]
fn a_part_joined_midway_stays_as_its_server_lists_it() {
    let mut live = live(&[delta("prt_1", "tence."), delta_of("msg_2", "prt_1", "x")]);
    assert_eq!(words(&live, "prt_1"), None);
    assert!(live.is_empty());
    // From the next event that tells all of it on, it is known.
    live.apply(&updated(&part("prt_1", "text", "Half a sentence.")));
    live.apply(&delta("prt_1", " More"));
    assert_eq!(words(&live, "prt_1").as_deref(), Some("Half a sentence. More"));
}

#[test]
fn an_update_that_tells_of_text_first_is_a_whole_snapshot() {
    let mut live = live(&[updated(&part("prt_1", "text", "So far"))]);
    assert_eq!(words(&live, "prt_1").as_deref(), Some("So far"));
    live.apply(&delta("prt_1", ", so good"));
    // Whatever was added before it, an update is what a client has then.
    live.apply(&updated(&part("prt_1", "text", "Anew")));
    live.apply(&delta("prt_1", "!"));
    assert_eq!(words(&live, "prt_1").as_deref(), Some("Anew!"));
    assert_eq!(live.len(), 1);
}

#[test]
fn only_text_and_reasoning_without_an_end_is_open() {
    let mut timeless = part("prt_1", "text", "Do it.");
    timeless["time"] = Value::Null;
    for (part, is_open) in [
        (timeless, true),
        (json!({"id": "prt_1", "messageID": "msg_1", "type": "text"}), true),
        (part("prt_1", "tool", ""), false),
        (part("prt_1", "file", ""), false),
        (ended("prt_1", "text", ""), false),
        (json!({"id": "prt_1", "messageID": "", "type": "text"}), false),
        (json!({"id": 7, "messageID": "msg_1", "type": "text"}), false),
        (json!({"id": "prt_1", "messageID": "msg_1"}), false),
        (json!("prt_1"), false),
    ] {
        let body = json!({"sessionID": "ses_1", "part": part});
        let live = live(&[event("message.part.updated", &body)]);
        assert_eq!(!live.is_empty(), is_open, "{part}");
    }
    // An end that is not set is none.
    let mut part = part("prt_1", "text", "");
    part["time"] = json!({"start": 1, "end": null});
    assert_eq!(live(&[updated(&part)]).len(), 1);
}

#[test]
fn only_text_is_added_to() {
    let mut live = live(&[updated(&part("prt_1", "text", "a"))]);
    for (field, delta) in [
        (json!("reasoning"), json!("b")),
        (json!(null), json!("b")),
        (json!("text"), json!(7)),
        (json!("text"), json!(null)),
    ] {
        live.apply(&event(
            "message.part.delta",
            &json!({
                "sessionID": "ses_1", "messageID": "msg_1", "partID": "prt_1",
                "field": field, "delta": delta,
            }),
        ));
    }
    assert_eq!(words(&live, "prt_1").as_deref(), Some("a"));
}

#[test]
fn what_sync_repeats_is_not_added_twice() {
    let opened = part("prt_1", "text", "");
    let data = json!({"sessionID": "ses_1", "part": opened, "time": 1});
    let second = synced("message.part.updated.1", &data);
    let doubled = synced(
        "message.part.delta.1",
        &json!({
            "sessionID": "ses_1", "messageID": "msg_1", "partID": "prt_1",
            "field": "text", "delta": "a",
        }),
    );
    // In whatever order they come: the second telling may be overtaken by a delta.
    let live = live(&[updated(&opened), delta("prt_1", "a"), doubled, second, delta("prt_1", "b")]);
    assert_eq!(words(&live, "prt_1").as_deref(), Some("ab"));
}

#[test]
fn what_is_removed_is_not_open() {
    let open = || {
        let mut elsewhere = part("prt_3", "text", "c");
        elsewhere["messageID"] = json!("msg_2");
        live(&[
            updated(&part("prt_1", "text", "a")),
            updated(&part("prt_2", "reasoning", "b")),
            updated(&elsewhere),
        ])
    };
    let after = |kind: &str, properties: Value| {
        let mut live = open();
        live.apply(&event(kind, &properties));
        live.len()
    };
    let ids = json!({"sessionID": "ses_1", "messageID": "msg_1", "partID": "prt_1"});
    assert_eq!(after("message.part.removed", ids), 2);
    assert_eq!(after("message.removed", json!({"sessionID": "ses_1", "messageID": "msg_1"})), 1);
    let info = json!({"id": "msg_1", "sessionID": "ses_1"});
    assert_eq!(after("message.removed", json!({"info": info})), 1);
    assert_eq!(after("session.deleted", json!({"sessionID": "ses_1"})), 0);
    assert_eq!(after("session.deleted", json!({"info": {"id": "ses_1"}})), 0);
    for (kind, properties) in [
        ("message.removed", json!({"sessionID": "ses_2", "messageID": "msg_1"})),
        ("message.part.removed", json!({"sessionID": "ses_1", "messageID": "msg_1"})),
        ("session.deleted", json!({"sessionID": "ses_2"})),
        ("session.idle", json!({"sessionID": "ses_1"})),
    ] {
        assert_eq!(after(kind, properties), 3, "{kind}");
    }
    let mut live = open();
    live.clear();
    assert_eq!((live.len(), live.bytes()), (0, 0));
    assert!(live.of_session("ses_1").is_empty());
}

#[test]
fn an_answer_that_has_finished_or_failed_has_no_open_parts() {
    let after = |info: Value| {
        let mut live = live(&[updated(&part("prt_1", "text", "a"))]);
        live.apply(&event("message.updated", &json!({"sessionID": "ses_1", "info": info})));
        live.len()
    };
    let info = |role: &str, time: Value, error: Value| json!({"id": "msg_1", "role": role, "time": time, "error": error});
    assert_eq!(after(info("assistant", json!({"created": 1, "completed": 2}), Value::Null)), 0);
    assert_eq!(after(info("assistant", json!({"created": 1}), json!({"name": "Aborted"}))), 0);
    assert_eq!(after(info("assistant", json!({"created": 1}), Value::Null)), 1);
    assert_eq!(after(info("user", json!({"completed": 2}), Value::Null)), 1);
    assert_eq!(after(json!({"id": "msg_2", "role": "assistant", "error": {}})), 1);
}

#[test]
fn a_prompt_is_open_until_it_is_answered() {
    let prompt = json!({
        "id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "Do it.",
    });
    let mut live = live(&[updated(&prompt), updated(&part("prt_2", "text", "x"))]);
    let answer = |parent: &str| {
        let info =
            json!({"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "parentID": parent});
        event("message.updated", &json!({"sessionID": "ses_1", "info": info}))
    };
    live.apply(&answer("msg_0"));
    assert_eq!(live.len(), 2);
    live.apply(&answer("msg_1"));
    assert!(live.is_empty());
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut live = live(&[updated(&part("prt_1", "text", "")), delta("prt_1", "one")]);
    let listed = record(&json!([part("prt_1", "text", "")]));
    let before = live.of_session("ses_1");
    let copy = before.clone();
    let expected = before.overlay(&listed).expect("a part is open");
    live.apply(&delta("prt_1", " two"));
    live.apply(&updated(&part("prt_2", "text", "other")));
    live.apply(&event("session.deleted", &json!({"sessionID": "ses_1"})));
    assert_eq!(before.overlay(&listed), Some(expected.clone()));
    assert_eq!(copy.overlay(&listed), Some(expected));
    assert!(!before.is_empty() && LiveText::default().is_empty());
    assert_eq!(LiveText::default().overlay(&listed), None);
}

#[test]
fn the_oldest_parts_are_forgotten_when_there_is_no_room() {
    let room = live(&[updated(&part("prt_1", "text", ""))]).bytes() * 3;
    let mut live = LiveParts::new(room);
    for id in ["prt_1", "prt_2", "prt_3"] {
        live.apply(&updated(&part(id, "text", "")));
    }
    assert_eq!((live.len(), live.bytes()), (3, room));
    // Being told of anew makes no part younger.
    live.apply(&updated(&part("prt_1", "text", "")));
    live.apply(&delta("prt_3", "a"));
    assert_eq!((words(&live, "prt_1"), live.len()), (None, 2));
    // As one that was joined midway.
    live.apply(&delta("prt_1", "b"));
    assert_eq!((words(&live, "prt_1"), live.len()), (None, 2));
    assert_eq!(words(&live, "prt_3").as_deref(), Some("a"));
    live.apply(&updated(&ended("prt_2", "text", "")));
    assert_eq!(words(&live, "prt_3").as_deref(), Some("a"));
    // One that has no room by itself is forgotten too.
    live.apply(&delta("prt_3", &"x".repeat(room)));
    assert_eq!((live.len(), live.bytes()), (0, 0));
}

#[test]
fn a_surrogate_pair_in_two_halves_becomes_whole() {
    let half = |unit: &str| {
        Text::from(format!(
            r#"{{"type":"message.part.delta","properties":{{"sessionID":"ses_1","messageID":"msg_1","partID":"prt_1","field":"text","delta":"{unit}"}}}}"#
        ))
    };
    let mut live = live(&[updated(&part("prt_1", "text", "")), half(r"\ud83d")]);
    let listed = record(&json!([part("prt_1", "text", "")]));
    let overlaid = live.of_session("ses_1").overlay(&listed).unwrap();
    assert!(overlaid.contains(r#""text":"\ud83d""#));
    live.apply(&half(r"\ude00"));
    assert_eq!(words(&live, "prt_1").as_deref(), Some("\u{1f600}"));
}

#[test]
fn a_long_answer_is_followed_and_read_in_time() {
    let mut live = live(&[updated(&part("prt_1", "text", ""))]);
    let word = delta("prt_1", "word ");
    let mut taken = Vec::new();
    for index in 0..20_000 {
        live.apply(&word);
        if index % 1000 == 0 {
            taken.push(live.of_session("ses_1"));
        }
    }
    let listed = record(&json!([part("prt_1", "text", "")]));
    for (index, snapshot) in taken.iter().enumerate() {
        let overlaid = snapshot.overlay(&listed).unwrap();
        assert_eq!(overlaid.matches("word ").count(), index * 1000 + 1);
    }
}
