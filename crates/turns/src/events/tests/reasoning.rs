use std::time::{Duration, Instant};

use super::*;

fn filter() -> ReasoningFilter {
    ReasoningFilter::default()
}

/// A filter that has seen parts of these ids and types.
fn knowing(parts: &[(&str, &str)]) -> ReasoningFilter {
    let mut filter = filter();
    for (id, kind) in parts {
        let fate = if *kind == "reasoning" { Passed::Dropped } else { Passed::Kept };
        assert_eq!(filter.pass(&updated(&part(id, kind, ""))), fate);
    }
    filter
}

fn removed(message: &str, part: &str) -> Text {
    event(
        "message.part.removed",
        &json!({"sessionID": "ses_1", "messageID": message, "partID": part}),
    )
}

#[test]
fn strips_version_suffixes_for_dispatch_but_keeps_the_original_type_on_kept_events() {
    let mut filter = filter();
    let versioned = |kind: &str, id: &str| {
        event("message.part.updated.1", &json!({"part": part(id, kind, "")}))
    };
    assert_eq!(filter.pass(&versioned("reasoning", "prt_1")), Passed::Dropped);
    assert_eq!(filter.pass(&versioned("text", "prt_2")), Passed::Kept);
    assert_eq!(filter.pass(&delta("prt_2", "a")), Passed::Kept);
    let parts = json!([part("prt_1", "reasoning", "r"), part("prt_2", "text", "t")]);
    let message = event("message.updated.12", &json!({"info": {"id": "m"}, "parts": parts}));
    let Passed::Changed(changed) = filter.pass(&message) else { panic!("a part is taken out") };
    assert!(changed.contains(r#""type":"message.updated.12""#));
    // Only a dot and digits are a version.
    for kind in ["message.part.delta.x", "message.part.delta.", "message.part.delta1"] {
        assert_eq!(filter.pass(&event(kind, &json!({}))), Passed::Kept);
    }
}

#[test]
fn drops_explicit_reasoning_fields_and_unknown_part_deltas() {
    let mut filter = knowing(&[("prt_t", "text"), ("prt_r", "reasoning"), ("prt_x", "tool")]);
    let of_field = |field: Value| {
        event(
            "message.part.delta",
            &json!({"messageID": "msg_1", "partID": "prt_t", "field": field, "delta": "d"}),
        )
    };
    for field in ["reasoning", "reasoning_content", "reasoning_details"] {
        assert_eq!(filter.pass(&of_field(field.into())), Passed::Dropped);
    }
    for field in [json!("text"), json!("output"), json!(7), Value::Null] {
        assert_eq!(filter.pass(&of_field(field)), Passed::Kept);
    }
    assert_eq!(filter.pass(&delta("prt_x", "d")), Passed::Kept);
    assert_eq!(filter.pass(&delta("prt_r", "d")), Passed::Dropped);
    assert_eq!(filter.pass(&delta("prt_unknown", "d")), Passed::Dropped);
    assert_eq!(filter.pass(&delta_of("msg_2", "prt_t", "d")), Passed::Dropped);
    for body in [json!({}), json!({"messageID": "msg_1"}), json!({"partID": "prt_t"})] {
        assert_eq!(filter.pass(&event("message.part.delta", &body)), Passed::Dropped);
    }
    for body in ["null", "[]", "7"] {
        let text = format!(r#"{{"type":"message.part.delta","properties":{body}}}"#);
        assert_eq!(filter.pass(&Text::from(text)), Passed::Dropped);
    }
}

#[test]
fn events_of_reasoning_sessions_are_dropped_whatever_they_hold() {
    let mut filter = filter();
    for kind in [
        "session.next.reasoning.started",
        "session.next.reasoning.delta.1",
        "session.next.reasoning.ended.2",
    ] {
        assert_eq!(filter.pass(&event(kind, &json!({}))), Passed::Dropped);
        assert_eq!(filter.pass(&synced(kind, &json!({}))), Passed::Dropped);
    }
    for kind in
        ["session.next.text.delta", "session.next.reasoned", "session.status", "todo.updated"]
    {
        assert_eq!(filter.pass(&event(kind, &json!({}))), Passed::Kept);
    }
}

#[test]
fn knows_no_more_than_8192_parts_after_8200_inserts() {
    let mut filter = filter();
    for index in 0..8200 {
        filter.pass(&updated(&part(&format!("prt_{index}"), "text", "")));
    }
    assert_eq!(filter.known_parts(), DEFAULT_KNOWN_PARTS);
    // The first that were met are forgotten.
    assert_eq!(filter.pass(&delta("prt_7", "d")), Passed::Dropped);
    assert_eq!(filter.pass(&delta("prt_8", "d")), Passed::Kept);
    assert_eq!(filter.pass(&delta("prt_8199", "d")), Passed::Kept);
}

#[test]
fn meeting_a_part_again_does_not_make_it_younger() {
    let mut filter = ReasoningFilter::new(2);
    for (id, kind) in [("a", "text"), ("b", "text"), ("a", "tool"), ("c", "text")] {
        filter.pass(&updated(&part(id, kind, "")));
    }
    let passed = ["a", "b", "c"].map(|id| filter.pass(&delta(id, "d")));
    assert_eq!(passed, [Passed::Dropped, Passed::Kept, Passed::Kept]);
    // One that was forgotten on request is younger when it comes again.
    filter.pass(&removed("msg_1", "b"));
    for id in ["b", "d"] {
        filter.pass(&updated(&part(id, "text", "")));
    }
    let passed = ["b", "c", "d"].map(|id| filter.pass(&delta(id, "d")));
    assert_eq!(passed, [Passed::Kept, Passed::Dropped, Passed::Kept]);
}

#[test]
fn the_last_type_of_a_part_counts() {
    let mut filter =
        knowing(&[("a", "text"), ("a", "reasoning"), ("b", "reasoning"), ("b", "text")]);
    assert_eq!(filter.pass(&delta("a", "d")), Passed::Dropped);
    assert_eq!(filter.pass(&delta("b", "d")), Passed::Kept);
}

#[test]
fn what_is_removed_is_forgotten_and_said_on() {
    let mut filter = knowing(&[("a", "text"), ("b", "text"), ("c", "text")]);
    let mut other = part("d", "text", "");
    other["messageID"] = json!("msg_2");
    filter.pass(&updated(&other));
    assert_eq!(filter.pass(&removed("msg_1", "a")), Passed::Kept);
    assert_eq!(filter.pass(&delta("a", "d")), Passed::Dropped);
    assert_eq!(filter.pass(&delta("b", "d")), Passed::Kept);
    let message = event("message.removed", &json!({"messageID": "msg_1"}));
    assert_eq!(filter.pass(&message), Passed::Kept);
    assert_eq!(filter.pass(&delta("b", "d")), Passed::Dropped);
    assert_eq!(filter.pass(&delta_of("msg_2", "d", "d")), Passed::Kept);
    let message = event("message.removed", &json!({"messageID": "", "info": {"id": "msg_2"}}));
    assert_eq!(filter.pass(&message), Passed::Kept);
    assert_eq!(filter.pass(&delta_of("msg_2", "d", "d")), Passed::Dropped);
    assert_eq!(filter.known_parts(), 0);
}

#[test]
fn ids_and_types_count_only_when_they_are_non_empty_strings() {
    let mut filter = filter();
    for (key, value) in [
        ("id", json!("")),
        ("id", json!(7)),
        ("id", Value::Null),
        ("type", json!("")),
        ("type", json!(["reasoning"])),
    ] {
        let mut part = part("prt_1", "text", "");
        part[key] = value;
        assert_eq!(filter.pass(&updated(&part)), Passed::Kept);
    }
    assert_eq!(filter.pass(&event("message.part.updated", &json!({}))), Passed::Kept);
    assert_eq!(filter.known_parts(), 0);
    // The message's id is the part's, or else the body's.
    for (own, of_body, message) in [("", "msg_b", "msg_b"), ("msg_p", "msg_b", "msg_p")] {
        let mut part = part("prt_1", "text", "");
        part["messageID"] = json!(own);
        filter.pass(&event("message.part.updated", &json!({"part": part, "messageID": of_body})));
        assert_eq!(filter.pass(&delta_of(message, "prt_1", "d")), Passed::Kept);
    }
    assert_eq!(filter.known_parts(), 2);
    // A reasoning part without ids is dropped all the same.
    let nameless = event("message.part.updated", &json!({"part": {"type": "reasoning"}}));
    assert_eq!(filter.pass(&nameless), Passed::Dropped);
}

#[test]
fn the_body_is_properties_if_they_are_an_object_and_else_data() {
    let mut filter = filter();
    let learn = json!({
        "type": "message.part.updated", "properties": [], "data": {"part": part("a", "text", "")},
    });
    assert_eq!(filter.pass(&text(&learn)), Passed::Kept);
    let both = json!({
        "type": "message.part.updated",
        "properties": {"part": part("b", "text", "")},
        "data": {"part": part("c", "reasoning", "")},
    });
    assert_eq!(filter.pass(&text(&both)), Passed::Kept);
    let passed = ["a", "b", "c"].map(|id| filter.pass(&delta(id, "d")));
    assert_eq!(passed, [Passed::Kept, Passed::Kept, Passed::Dropped]);
}

#[test]
fn what_sync_holds_is_judged_as_if_it_came_by_itself() {
    let mut filter = filter();
    let told = |kind: &str, id: &str| {
        synced("message.part.updated.1", &json!({"part": part(id, kind, "")}))
    };
    assert_eq!(filter.pass(&told("reasoning", "prt_r")), Passed::Dropped);
    assert_eq!(filter.pass(&told("text", "prt_t")), Passed::Kept);
    assert_eq!(filter.pass(&delta("prt_t", "d")), Passed::Kept);
    assert_eq!(filter.pass(&delta("prt_r", "d")), Passed::Dropped);
    let parts = json!([part("prt_r", "reasoning", "SECRET"), part("prt_t", "text", "t")]);
    let message = synced("message.updated.1", &json!({"info": {"id": "msg_1"}, "parts": parts}));
    let Passed::Changed(changed) = filter.pass(&message) else { panic!("a part is taken out") };
    let kept = json!([part("prt_t", "text", "t")]);
    let expected = synced("message.updated.1", &json!({"info": {"id": "msg_1"}, "parts": kept}));
    assert_eq!(changed, expected);
}

#[test]
fn does_not_mutate_original_objects_when_stripping_embedded_parts() {
    let reasoning = part("prt_r", "reasoning", "SECRET");
    let kept = part("prt_t", "text", "t");
    for kind in ["message.updated", "message.created"] {
        let with = |parts: &Value| {
            text(&json!({
                "type": kind,
                "properties": {"info": {"id": "m", "parts": [reasoning]}, "parts": parts},
                "data": {"parts": parts},
            }))
        };
        let original = with(&json!([reasoning, kept, 7, reasoning]));
        let copy = original.to_string();
        let Passed::Changed(changed) = filter().pass(&original) else { panic!("it is changed") };
        assert_eq!(*original, *copy);
        assert_eq!(changed, with(&json!([kept, 7])), "parts inside `info` are no embedded parts");
        assert_eq!(filter().pass(&changed), Passed::Kept);
        let only = Passed::Changed(with(&json!([])));
        assert_eq!(filter().pass(&with(&json!([reasoning]))), only);
    }
}

#[test]
fn a_message_without_reasoning_keeps_its_bytes() {
    for parts in
        [r#"[ {"type":"text"} ]"#, "[]", r#"{"type":"reasoning"}"#, "null", r#"["reasoning"]"#]
    {
        let text = format!(r#"{{"type":"message.updated","properties":{{"parts":{parts}}}}}"#);
        assert_eq!(filter().pass(&Text::from(text)), Passed::Kept);
    }
    let text = r#"{ "type":"message.updated" , "n":1.0 , "data":{ "parts" : [ {"type":"reasoning"} , {"type" : "text"} ] , "x":[ ] } }"#;
    let kept = r#"{ "type":"message.updated" , "n":1.0 , "data":{ "parts" : [{"type" : "text"}] , "x":[ ] } }"#;
    assert_eq!(filter().pass(&Text::from(text)), Passed::Changed(Text::from(kept)));
}

#[test]
fn reasoning_does_not_leave_in_a_repeated_key() {
    for text in [
        r#"{"type":"message.updated","data":{"parts":[{"type":"reasoning","text":"SECRET"}],"parts":[{"type":"reasoning"}]}}"#,
        r#"{"type":"message.updated","data":{"parts":[{"type":"reasoning","text":"SECRET"}]},"data":{"parts":[{"type":"text","type":"reasoning"}]}}"#,
    ] {
        let Passed::Changed(text) = filter().pass(&Text::from(text)) else {
            panic!("it is changed")
        };
        assert!(!text.contains("SECRET") && !text.contains("reasoning"), "{text}");
    }
}

#[test]
fn drops_10k_reasoning_deltas_while_still_emitting_known_text_deltas() {
    let mut filter = knowing(&[("prt_r", "reasoning"), ("prt_t", "text")]);
    let deltas = [delta("prt_r", "thinking"), delta("prt_t", "saying")];
    let started = Instant::now();
    for index in 0..10_000 {
        assert_eq!(filter.pass(&deltas[0]), Passed::Dropped);
        if index % 100 == 0 {
            assert_eq!(filter.pass(&deltas[1]), Passed::Kept);
        }
    }
    // A thousandth of a second for each would be slow even unoptimised.
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(filter.known_parts(), 2);
}
