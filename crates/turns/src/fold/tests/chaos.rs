//! Logs that no writer would write.

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};
use turnkeep_log::{Event, SessionId, Text};

use super::{Log, all, answer, call, check, fold, id_of, result, text};

/// A log with every kind of event that the fold looks at.
fn everything() -> Log {
    let image = json!({"type": "image", "attachment": {"attachmentId": "a", "mediaType": "image/png",
        "bytes": 3, "width": 1, "height": 2, "name": "n"}});
    let run = json!({"commandId": "c", "name": "n", "args": " a", "source": {"kind": "user"}});
    let checkpoint = json!({"id": "k", "role": "user", "content": [text("k")],
        "source": {"kind": "plugin", "plugin": "compact", "compactionId": "z"}});
    let summary = json!({"compactionId": "z", "summary": [text("z")], "provider": "p",
        "model": "m", "usage": {"inputTokens": 1}});
    let failure = json!({"message": "late", "code": "SERVER", "status": 503, "requestId": "q"});
    Log::new()
        .add("command/run", &run)
        .add("command/done", &json!({"commandId": "c", "kind": "success", "text": "done"}))
        .turn()
        .step(1)
        .message("u", "user", &json!([text("hi"), image]))
        .message("v", "plugin", &json!([text("context")]))
        .add("session/title", &json!({"title": "t"}))
        .header()
        .add("request/context", &json!({"provider": "p", "model": "m"}))
        .block(0, "text")
        .text(0, "lost")
        .add("llm/retry", &json!({"turn": 1, "step": 1, "failure": failure}))
        .block(0, "reasoning")
        .chunk(&json!({"type": "reasoning-delta", "index": 0, "text": "so"}))
        .block(1, "tool-call")
        .chunk(&json!({"type": "tool-call-delta", "index": 1, "id": "x", "name": "bash",
            "argumentsDelta": "{}"}))
        .end_block(0, &json!({"type": "reasoning", "text": "so"}))
        .end_block(1, &call("x", "{}"))
        .chunk(&json!({"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 2}}))
        .finish("tool-calls")
        .answer(&json!([{"type": "reasoning", "text": "so"}, call("x", "{}")]))
        .call("x")
        .add("tool-workflow/run-start", &json!({"runId": "w", "name": "n"}))
        .add("tool-workflow/agent-start", &json!({"runId": "w", "seq": 0, "childId": "child"}))
        .add("tool-workflow/run-end", &json!({"runId": "w", "stopReason": "completed"}))
        .result("x", &json!([text("out")]))
        .end_step(1)
        .add("compaction/start", &json!({"compactionId": "z", "turn": 1}))
        .add("compaction/summary", &summary)
        .surface("user/message", &checkpoint, &[4], &json!({"op": "replace", "start": 4, "end": 4}))
        .add("compaction/end", &json!({"compactionId": "z", "turn": 1}))
        .step(2)
        .answer_in(2, &json!([text("bye")]))
        .end_step(2)
        .end_turn(&json!({"kind": "error", "error": failure}))
}

/// Takes one member of one event's payload away, or puts something else in its place.
#[test]
fn no_damaged_payload_harms_more_than_its_own_record() {
    let log = everything();
    let replacements = ["null", "-1.5", r#""\ud800""#, "[[null]]"];
    let session = SessionId::new("s").unwrap();
    let whole = log.fold();
    check(&whole);
    let page = whole.page(None, usize::MAX);
    let ids = log.ids();
    for at in 0..log.events.len() {
        for damaged in damage(&log.events[at], &replacements) {
            let mut events = log.events.clone();
            events[at] = damaged;
            let fold = fold(&session, &events);
            if fold.page(None, usize::MAX) == page {
                continue;
            }
            check(&fold);
            let lost = ids.iter().filter(|id| fold.record(id).is_none()).count();
            // A compaction has two records.
            assert!(lost <= 2, "{lost} records lost by {}", events[at].text());
        }
    }
}

fn damage(event: &Event, replacements: &[&str]) -> Vec<Event> {
    let whole: Value = serde_json::from_str(event.text()).unwrap();
    let mut paths = Vec::new();
    walk(&whole["data"], "/data", &mut paths);
    let mut damaged = Vec::new();
    for path in paths {
        for replacement in replacements {
            // A lone surrogate has no `Value`: it goes in as text.
            let mut event = whole.clone();
            *event.pointer_mut(&path).unwrap() = Value::from("\u{1}here\u{1}");
            let text = event.to_string().replace(r#""\u0001here\u0001""#, replacement);
            damaged.extend(Event::parse(&Text::from(text)));
        }
        let (parent, key) = path.rsplit_once('/').unwrap();
        let mut event = whole.clone();
        if let Some(object) = event.pointer_mut(parent).and_then(Value::as_object_mut) {
            object.remove(key);
            damaged.extend(Event::parse(&Text::from(event.to_string())));
        }
    }
    damaged
}

fn walk(value: &Value, path: &str, paths: &mut Vec<String>) {
    paths.push(path.to_owned());
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(key, value)| walk(value, &format!("{path}/{key}"), paths));
        }
        Value::Array(array) => {
            array.iter().enumerate().for_each(|(at, value)| {
                walk(value, &format!("{path}/{at}"), paths);
            });
        }
        _ => {}
    }
}

/// Payloads of every event the fold looks at, right or wrong, about few enough things to meet.
pub(in crate::fold) fn data() -> impl Strategy<Value = (&'static str, Value)> {
    let id = select(vec!["a", "b", "a:3", "asst:2"]);
    let step = 1..3_u64;
    (0..26_u32, id, step, 0..3_u64, any::<bool>()).prop_map(|(kind, id, step, index, flag)| {
        let chunk = |chunk: Value| json!({"turn": 1, "step": step, "chunk": chunk});
        let source = json!({"kind": if flag { "user" } else { "plugin" }, "compactionId": id});
        match kind {
            0 => ("turn/start", json!({"turn": 1})),
            1 => ("turn/end", json!({"turn": 1, "reason": {"kind": "completed"}})),
            2 => ("turn/end", json!({"turn": 1, "reason": {"kind": "error", "message": id}})),
            3 => ("turn/end", json!({"turn": 1, "reason": {"kind": "aborted"}})),
            4 => ("step/start", json!({"turn": 1, "step": step})),
            5 => ("step/end", json!({"turn": 1, "step": step})),
            6 => (
                "user/message",
                json!({"id": id, "content": [text("t")], "source": {"kind": "user"}}),
            ),
            7 => ("user/message", json!({"id": id, "content": [], "source": source})),
            8 => (
                "assistant/chunk",
                chunk(json!({"type": "block-start", "index": index,
                "blockType": if flag { "text" } else { "tool-call" }})),
            ),
            9 => (
                "assistant/chunk",
                chunk(json!({"type": "text-delta", "index": index, "text": "t"})),
            ),
            10 => (
                "assistant/chunk",
                chunk(json!({"type": "tool-call-delta", "index": index,
                "id": id, "name": "n", "argumentsDelta": "{"})),
            ),
            11 => (
                "assistant/chunk",
                chunk(json!({"type": "block-end", "index": index,
                "block": if flag { text("t") } else { call(id, "[]") }})),
            ),
            12 => (
                "assistant/chunk",
                chunk(json!({"type": "finish", "reason":
                {"kind": if flag { "stop" } else { "error" }}})),
            ),
            13 => (
                "assistant/chunk",
                chunk(json!({"type": "usage", "usage": {"inputTokens": index}})),
            ),
            14 => ("assistant/message", answer(step, &json!([text("t"), call(id, "{}")]))),
            15 => ("assistant/message", answer(step, &json!([call(id, "x"), call("b", ""), {}]))),
            16 => ("tool/call", json!({"turn": 1, "step": step, "callId": id})),
            17 => ("tool/result", result(step, id, &json!([text("out")]))),
            18 => ("llm/retry", json!({"turn": 1, "step": step, "failure": {"code": id}})),
            19 => ("compaction/start", json!({"compactionId": id, "turn": 1})),
            20 => ("compaction/summary", json!({"compactionId": id, "summary": [text("z")]})),
            21 => (
                "compaction/end",
                if flag {
                    json!({"compactionId": id})
                } else {
                    json!({"compactionId": id, "error": "no"})
                },
            ),
            22 => ("command/run", json!({"commandId": id, "name": "n", "source": source})),
            23 => ("command/done", json!({"commandId": id, "text": "t"})),
            24 => ("tool-workflow/run-start", json!({"runId": id})),
            _ => ("tool-workflow/agent-start", json!({"runId": id, "childId": "child"})),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn events_in_any_order_make_a_transcript(events in prop::collection::vec(data(), 0..40)) {
        let mut log = Log::new();
        for (kind, data) in &events {
            log = log.add(kind, data);
        }
        let fold = log.fold();
        check(&fold);
        // A message without parts counts as a prompt; only a person's may.
        for record in all(&fold) {
            let authored = |(kind, data): &(&str, Value)| {
                *kind == "user/message" && id_of(&record).starts_with(data["id"].as_str().unwrap())
                    && data["source"]["kind"] == "user"
            };
            if record["info"]["role"] == "user" && record["parts"] == json!([]) {
                prop_assert!(events.iter().any(authored));
            }
        }
    }

    #[test]
    fn a_fold_is_the_same_whenever_it_is_looked_at(events in prop::collection::vec(data(), 0..30)) {
        let mut log = Log::new();
        let mut growing = super::Fold::new(&SessionId::new("s").unwrap());
        for (kind, data) in &events {
            log = log.add(kind, data);
            growing.push(log.events.last().unwrap());
            prop_assert_eq!(growing.page(None, usize::MAX), log.fold().page(None, usize::MAX));
        }
    }
}
