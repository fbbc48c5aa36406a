use serde_json::{Value, json};

use super::{Log, is_boundary, text};

fn start(log: Log) -> Log {
    log.add("compaction/start", &json!({"compactionId": "z", "turn": null}))
}

fn summary(log: Log) -> Log {
    let usage = json!({"inputTokens": 20, "outputTokens": 4});
    log.add(
        "compaction/summary",
        &json!({"compactionId": "z", "summary": [text("We "), {"type": "hologram"}, text("talked.")],
            "provider": "q", "model": "n", "usage": usage}),
    )
}

fn checkpoint(log: Log) -> Log {
    let source = json!({"kind": "plugin", "plugin": "compact", "compactionId": "z"});
    let message = json!({"id": "k", "role": "user", "content": [text("told")], "source": source});
    log.surface("user/message", &message, &[0], &json!({"op": "replace", "start": 0, "end": 0}))
}

fn end(log: Log) -> Log {
    log.add("compaction/end", &json!({"compactionId": "z", "turn": null}))
}

fn fail(log: Log) -> Log {
    log.add("compaction/end", &json!({"compactionId": "z", "turn": null, "error": "no gain"}))
}

fn said() -> Log {
    Log::new().prompt("u1", "hi")
}

#[test]
fn a_compaction_is_a_marker_and_an_answer_with_its_summary() {
    let log = end(checkpoint(summary(start(said()))));
    let marker = json!({
        "info": {"id": "compaction:z", "sessionID": "s", "role": "user", "time": {"created": 1001}},
        "parts": [{"id": "compaction:z.000", "sessionID": "s", "messageID": "compaction:z",
            "type": "compaction", "auto": true}]
    });
    let id = "compaction:z:summary";
    let part = |at: usize, text: &str| {
        json!({"id": format!("{id}.{at:03}"), "sessionID": "s", "messageID": id, "type": "text",
            "text": text})
    };
    let answer = json!({
        "info": {
            "id": id, "sessionID": "s", "role": "assistant",
            "time": {"created": 1002, "completed": 1004}, "parentID": "compaction:z",
            "modelID": "n", "providerID": "q", "mode": "compaction", "agent": "compaction",
            "summary": true, "cost": 0,
            "tokens": {"input": 20, "output": 4, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "finish": "stop"
        },
        "parts": [part(0, "We "), part(2, "talked.")]
    });
    let records = log.records();
    assert_eq!(records[1..], [marker, answer]);
    assert_eq!(records.iter().filter(|record| is_boundary(record)).count(), 1);
}

#[test]
fn one_that_a_command_asked_for_is_not_automatic() {
    let run = json!({"compactionId": "z", "sourceCommandId": "c", "turn": null});
    let log = end(said().add("compaction/start", &run));
    assert_eq!(log.record("compaction:z")["parts"][0]["auto"], false);
}

#[test]
fn it_is_shown_when_it_has_taken_effect() {
    let running = summary(start(said()));
    assert_eq!(running.ids(), ["u1"]);
    let told = checkpoint(running);
    assert_eq!(told.ids(), ["u1", "compaction:z", "compaction:z:summary"]);
    let info = told.record("compaction:z:summary")["info"].clone();
    assert_eq!((&info["time"], info.get("finish")), (&json!({"created": 1002}), None));
    // Whichever of the two comes first.
    assert_eq!(summary(checkpoint(start(said()))).fold().len(), 3);
}

#[test]
fn without_a_summary_there_is_the_marker_alone() {
    assert_eq!(end(start(said())).ids(), ["u1", "compaction:z"]);
    let late = summary(end(start(said())));
    assert_eq!(late.ids(), ["u1", "compaction:z", "compaction:z:summary"]);
}

#[test]
fn one_that_failed_leaves_nothing() {
    assert_eq!(fail(start(said())).ids(), ["u1"]);
    assert_eq!(fail(summary(start(said()))).ids(), ["u1"]);
    assert_eq!(fail(checkpoint(summary(start(said())))).ids(), ["u1"]);
    let log = fail(checkpoint(summary(start(said()))));
    assert_eq!(log.fold().record("compaction:z"), None);
    assert_eq!(log.fold().len(), 1);
}

#[test]
fn an_error_that_is_null_is_none() {
    let log = summary(start(said()));
    let log = log.add("compaction/end", &json!({"compactionId": "z", "error": null}));
    assert_eq!(log.fold().len(), 3);
}

#[test]
fn a_message_of_a_compaction_that_nothing_else_speaks_of_is_shown() {
    let log = checkpoint(said());
    assert_eq!(log.ids(), ["u1", "k"]);
    assert!(!is_boundary(&log.record("k")));
}

#[test]
fn nothing_that_a_person_saw_goes_away() {
    let talk = said().turn().answer(&json!([text("ho")])).end_turn(&json!({"kind": "completed"}));
    let log = end(checkpoint(summary(start(talk))));
    assert_eq!(log.ids()[..2], ["u1", "asst:2"]);
}

#[test]
fn in_the_middle_of_a_turn_it_is_neither_its_prompt_nor_its_answer() {
    let log = Log::new().turn().step(1).prompt("u1", "hi").fail("too long");
    let log = end(checkpoint(summary(start(log))));
    let log = log.answer(&json!([text("ho")])).end_step(1).end_turn(&json!({"kind": "max-tokens"}));
    assert_eq!(log.ids(), ["u1", "compaction:z", "compaction:z:summary", "asst:8"]);
    assert_eq!(log.record("asst:8")["info"]["parentID"], "u1");
    assert_eq!(log.record("asst:8")["info"]["finish"], "length");
    assert_eq!(log.record("compaction:z:summary")["info"]["finish"], "stop");
    // Without another answer the turn ends with the request before it, not with the summary.
    let log = Log::new().turn().step(1).prompt("u1", "hi").fail("too long");
    let log = end(checkpoint(summary(start(log)))).end_turn(&json!({"kind": "aborted"}));
    assert_eq!(log.ids(), ["u1", "asst:3", "compaction:z", "compaction:z:summary"]);
}

#[test]
fn events_of_unknown_compactions_are_passed_over() {
    let log = end(summary(said()))
        .add("compaction/start", &json!({"turn": 1}))
        .add("compaction/summary", &json!({"compactionId": 7}))
        .add("compaction/prune", &json!({"shadowedSeqs": [0]}))
        .add("compaction/end", &Value::Null);
    assert_eq!(log.ids(), ["u1"]);
}
