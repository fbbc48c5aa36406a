use serde_json::{Value, json};

use super::{Log, call, check, result, text};

fn asked(arguments: &str) -> Log {
    Log::new().turn().step(1).answer(&json!([call("c", arguments)]))
}

fn state(log: &Log) -> Value {
    log.record("asst:2")["parts"][0]["state"].clone()
}

fn input(arguments: &str) -> Value {
    state(&asked(arguments))["input"].clone()
}

#[test]
fn a_call_is_pending_then_running_then_completed() {
    let log = asked(r#"{"command":"ls","description":"List"}"#);
    let input = json!({"command": "ls", "description": "List"});
    assert_eq!(
        log.record("asst:2")["parts"],
        json!([{"id": "asst:2.000", "sessionID": "s", "messageID": "asst:2", "type": "tool",
            "callID": "c", "tool": "bash", "state": {"status": "pending", "input": input, "raw": ""}}])
    );
    let log = log.call("c");
    assert_eq!(state(&log), json!({"status": "running", "input": input, "time": {"start": 1003}}));
    let log = log.result("c", &json!([text("a\n"), text("b")]));
    assert_eq!(
        state(&log),
        json!({"status": "completed", "input": input, "output": "a\nb", "title": "List",
            "metadata": {}, "time": {"start": 1003, "end": 1004}})
    );
    check(&log.fold());
}

#[test]
fn a_result_that_is_an_error_is_one() {
    let mut failed = result(1, "c", &json!([text("no "), {"type": "hologram"}, text("way")]));
    failed["message"]["content"][0]["isError"] = json!(true);
    let log = asked("{}").call("c").add("tool/result", &failed);
    assert_eq!(
        state(&log),
        json!({"status": "error", "input": {}, "error": "no way", "time": {"start": 1003, "end": 1004}})
    );
    failed["meta"] = json!({"exit": 1});
    let log = asked("{}").call("c").add("tool/result", &failed);
    assert_eq!(state(&log)["metadata"], json!({"exit": 1}));
}

#[test]
fn a_result_without_a_call_starts_when_it_was_asked() {
    let log = asked("{}").result("c", &json!([]));
    assert_eq!(state(&log)["time"], json!({"start": 1002, "end": 1003}));
    assert_eq!(state(&log)["output"], "");
}

#[test]
fn arguments_are_the_object_they_spell_as_it_is_spelled() {
    let spelled = r#" { "b" : 1.50, "a": "\u00e9\/", "b": 1e999, "10": [ ] } "#;
    let row = asked(spelled).fold().record("asst:2").unwrap();
    let found = row.json().path(&["parts"]).unwrap().elements().unwrap().next().unwrap();
    assert_eq!(found.path(&["state", "input"]).unwrap().text(), spelled.trim());
}

#[test]
fn arguments_that_are_no_object_are_kept_whole() {
    for arguments in ["{\"a\":", "[1]", "null", "7", "say \"hi\"", "{} {}"] {
        assert_eq!(input(arguments), json!({"raw": arguments}));
    }
    for nothing in ["", " \n"] {
        assert_eq!(input(nothing), json!({}));
    }
}

#[test]
fn arguments_may_hold_half_a_pair() {
    let block = r#"{"type":"tool-call","id":"c","name":"n","arguments":"{\"a\":\"\ud800\"}"}"#;
    let log = Log::new().turn().step(1).raw(
        "assistant/message",
        &format!(r#"{{"turn":1,"step":1,"message":{{"content":[{block}]}}}}"#),
    );
    let row = log.fold().record("asst:2").unwrap();
    assert!(row.text().contains(r#""input":{"a":"\ud800"}"#), "{row:?}");
}

#[test]
fn arguments_that_are_no_text_are_taken_as_they_are() {
    let with = |arguments: Value| {
        let block = json!({"type": "tool-call", "id": "c", "name": "n", "arguments": arguments});
        state(&Log::new().turn().step(1).answer(&json!([block])))["input"].clone()
    };
    assert_eq!(with(json!({"a": 1})), json!({"a": 1}));
    assert_eq!(with(json!([1])), json!({}));
    assert_eq!(with(Value::Null), json!({}));
}

#[test]
fn a_call_that_streams_in_is_shown_once_its_id_is_known() {
    let delta = |delta: Value| {
        let mut chunk = json!({"type": "tool-call-delta", "index": 0});
        chunk.as_object_mut().unwrap().extend(delta.as_object().unwrap().clone());
        chunk
    };
    let log = Log::new().turn().step(1).block(0, "tool-call");
    assert_eq!(log.record("asst:2")["parts"], json!([]));
    let log = log.chunk(&delta(json!({"id": "c", "argumentsDelta": "{\"a\""})));
    let part = |tool: &str| {
        json!([{"id": "asst:2.000", "sessionID": "s", "messageID": "asst:2", "type": "tool",
            "callID": "c", "tool": tool, "state": {"status": "pending", "input": {}, "raw": ""}}])
    };
    assert_eq!(log.record("asst:2")["parts"], part(""));
    let log = log.chunk(&delta(json!({"id": "c", "name": "bash", "argumentsDelta": ":1}"})));
    assert_eq!(log.record("asst:2")["parts"], part("bash"));
    // The block that ends has the arguments, and then they can be read.
    let log = log.end_block(0, &call("c", r#"{"a":1}"#));
    assert_eq!(state(&log), json!({"status": "pending", "input": {"a": 1}, "raw": ""}));
    // A call may run before the message is there, and the message changes nothing of that.
    let log = log.call("c").result("c", &json!([text("out")]));
    let before = state(&log);
    assert_eq!(before["status"], "completed");
    assert_eq!(state(&log.answer(&json!([call("c", r#"{"a":1}"#)]))), before);
}

#[test]
fn arguments_that_broke_off_are_kept_as_far_as_they_came() {
    let log = Log::new()
        .turn()
        .step(1)
        .chunk(&json!({"type": "tool-call-delta", "index": 0, "id": "c", "name": "n",
            "argumentsDelta": "{\"a\":\"x"}))
        .end_turn(&json!({"kind": "interrupted"}));
    assert_eq!(state(&log)["input"], json!({"raw": "{\"a\":\"x"}));
}

#[test]
fn calls_run_side_by_side() {
    let log = Log::new()
        .turn()
        .step(1)
        .answer(&json!([call("a", "{}"), call("b", "{}")]))
        .call("a")
        .call("b")
        .result("b", &json!([text("B")]));
    let record = log.record("asst:2");
    assert_eq!(record["parts"][0]["state"]["status"], "running");
    assert_eq!(record["parts"][1]["state"]["output"], "B");
}

#[test]
fn a_result_may_come_after_its_step_and_its_turn() {
    let late = asked("{}").call("c").end_step(1).step(2);
    let done = late.result("c", &json!([text("late")]));
    assert_eq!(state(&done)["output"], "late");
    let log = asked("{}").call("c").end_step(1).end_turn(&json!({"kind": "completed"}));
    assert_eq!(
        state(&log),
        json!({"status": "error", "input": {}, "error": "Tool execution aborted",
            "metadata": {"interrupted": true}, "time": {"start": 1003, "end": 1005}})
    );
    let log = log.turn().result("c", &json!([text("late")]));
    assert_eq!(state(&log)["output"], "late");
}

#[test]
fn an_output_that_is_cut_down_for_the_model_stays_as_it_was() {
    let op = json!({"op": "replace", "start": 4, "end": 4});
    let log = asked("{}").call("c").result("c", &json!([text("all of it")])).surface(
        "tool/result",
        &result(1, "c", &json!([text("…")])),
        &[4],
        &op,
    );
    assert_eq!(state(&log)["output"], "all of it");
    // Nor is it taken for the answer to a later call that has the same id.
    let log = log.end_step(1).step(2).answer_in(2, &json!([call("c", "{}")])).surface(
        "tool/result",
        &result(2, "c", &json!([text("…")])),
        &[4],
        &op,
    );
    assert_eq!(log.record("asst:8")["parts"][0]["state"]["status"], "pending");
}

#[test]
fn the_first_result_stands() {
    let log = asked("{}").result("c", &json!([text("one")])).result("c", &json!([text("two")]));
    assert_eq!(state(&log)["output"], "one");
}

#[test]
fn nobody_asked_for_it() {
    let log = asked("{}").call("x").result("x", &json!([text("out")]));
    assert_eq!(state(&log)["status"], "pending");
    assert_eq!(log.fold().len(), 1);
}

#[test]
fn ids_that_start_over_in_every_step_mean_the_call_of_that_step() {
    let log = asked("{}").call("c").end_step(1).step(2).answer_in(2, &json!([call("c", "{}")]));
    let late = log.add("tool/result", &result(1, "c", &json!([text("first")])));
    let both = late.add("tool/result", &result(2, "c", &json!([text("second")])));
    assert_eq!(state(&both)["output"], "first");
    assert_eq!(both.record("asst:6")["parts"][0]["state"]["output"], "second");
    // Where it does not say which step it is of, it is of the newest.
    let mut vague = result(2, "c", &json!([text("vague")]));
    vague["step"] = Value::Null;
    let log = asked("{}").end_step(1).step(2).answer_in(2, &json!([call("c", "{}")]));
    let log = log.add("tool/result", &vague);
    assert_eq!(log.record("asst:5")["parts"][0]["state"]["output"], "vague");
}

#[test]
fn one_message_may_ask_twice_under_one_id() {
    let log = Log::new()
        .turn()
        .step(1)
        .answer(&json!([call("c", "{}"), call("c", "{}")]))
        .call("c")
        .call("c")
        .result("c", &json!([text("one")]))
        .result("c", &json!([text("two")]));
    let record = log.record("asst:2");
    let state = |at: usize| &record["parts"][at]["state"];
    assert_eq!((&state(0)["output"], &state(0)["time"]["start"]), (&json!("one"), &json!(1003)));
    assert_eq!((&state(1)["output"], &state(1)["time"]["start"]), (&json!("two"), &json!(1004)));
}

#[test]
fn a_stream_may_ask_twice_under_one_id() {
    let block = call("c", "{}");
    let log = Log::new().turn().step(1).end_block(0, &block).end_block(1, &block).call("c");
    let log = log.answer(&json!([block, block])).result("c", &json!([text("one")]));
    let record = log.record("asst:2");
    let part = |at: usize| &record["parts"][at];
    assert_eq!(
        (&part(0)["id"], &part(0)["state"]["output"]),
        (&json!("asst:2.000"), &json!("one"))
    );
    assert_eq!(
        (&part(1)["id"], &part(1)["state"]["status"]),
        (&json!("asst:2.001"), &json!("pending"))
    );
}

#[test]
fn the_id_of_a_result_is_its_sources_or_its_blocks() {
    let mut answered = result(1, "c", &json!([text("out")]));
    answered["message"]["source"] = json!({});
    assert_eq!(state(&asked("{}").add("tool/result", &answered))["output"], "out");
}

#[test]
fn images_of_a_result_are_attachments_without_url() {
    let image = |name: &str| {
        json!({"type": "image", "attachment": {"attachmentId": name, "mediaType": "image/png",
            "bytes": 3, "width": 1, "height": 2}})
    };
    let log = asked("{}").result("c", &json!([image("a"), text("two"), image("b")]));
    assert_eq!(state(&log)["output"], "two");
    let file = |at: usize, name: &str| {
        json!({"id": format!("asst:2.000.{at:03}"), "sessionID": "s", "messageID": "asst:2",
            "type": "file", "mime": "image/png", "width": 1, "height": 2, "byteSize": 3,
            "attachmentId": name})
    };
    assert_eq!(state(&log)["attachments"], json!([file(0, "a"), file(1, "b")]));
}

#[test]
fn what_a_tool_says_beside_its_text_is_metadata() {
    let with = |meta: &str| {
        let result = result(1, "c", &json!([]));
        let text = result.to_string();
        let text = format!(r#"{},"meta":{meta}}}"#, text.strip_suffix('}').unwrap());
        state(&asked("{}").raw("tool/result", &text))["metadata"].clone()
    };
    assert_eq!(with(r#"{"path":"/a","lines":[1]}"#), json!({"path": "/a", "lines": [1]}));
    assert_eq!(with(r#"{"sessionId":"child"}"#), json!({"sessionId": "child"}));
    assert_eq!(with("[1,2]"), json!({"meta": [1, 2]}));
    assert_eq!(with("null"), json!({"meta": null}));
}

fn workflow(log: Log, children: &[&str]) -> Log {
    let run = json!({"runId": "w", "name": "audit"});
    children.iter().fold(log.add("tool-workflow/run-start", &run), |log, child| {
        log.add("tool-workflow/agent-start", &json!({"runId": "w", "seq": 0, "childId": child}))
    })
}

#[test]
fn a_call_that_started_sessions_names_the_first() {
    let log = workflow(asked("{}").call("c"), &["one", "two"]);
    assert_eq!(
        state(&log),
        json!({"status": "running", "input": {}, "metadata": {"sessionId": "one"}, "time": {"start": 1003}})
    );
    let mut answered = result(1, "c", &json!([text("ok")]));
    answered["meta"] = json!({"agents": 2});
    let done = log.add("tool/result", &answered);
    assert_eq!(state(&done)["metadata"], json!({"agents": 2, "sessionId": "one"}));
    let cut = workflow(asked("{}").call("c"), &["one"]).end_turn(&json!({"kind": "aborted"}));
    assert_eq!(state(&cut)["metadata"], json!({"interrupted": true, "sessionId": "one"}));
}

#[test]
fn a_workflow_that_may_be_of_several_calls_is_of_none() {
    let both = Log::new().turn().step(1).answer(&json!([call("a", "{}"), call("b", "{}")]));
    let log = workflow(both.call("a").call("b"), &["child"]);
    let parts = log.record("asst:2")["parts"].clone();
    assert!(parts.as_array().unwrap().iter().all(|part| part["state"].get("metadata").is_none()));
    // Once the other is answered there is no doubt.
    let both = Log::new().turn().step(1).answer(&json!([call("a", "{}"), call("b", "{}")]));
    let log = workflow(both.call("a").call("b").result("a", &json!([])), &["child"]);
    let parts = log.record("asst:2")["parts"].clone();
    assert_eq!(parts[1]["state"]["metadata"], json!({"sessionId": "child"}));
    // None is of a call when nothing ran as it started, or when it is over.
    let log = workflow(asked("{}"), &["child"]).call("c");
    assert_eq!(state(&log).get("metadata"), None);
    let log = workflow(asked("{}").call("c"), &[])
        .add("tool-workflow/run-end", &json!({"runId": "w"}))
        .add("tool-workflow/agent-start", &json!({"runId": "w", "childId": "child"}));
    assert_eq!(state(&log).get("metadata"), None);
}

#[test]
fn a_call_of_a_request_that_failed_was_cut_short() {
    let log = Log::new()
        .turn()
        .step(1)
        .chunk(&json!({"type": "tool-call-delta", "index": 0, "id": "c", "name": "n",
            "argumentsDelta": "{}"}))
        .fail("late")
        .block(0, "text");
    let state = state(&log);
    assert_eq!(
        (&state["status"], &state["time"]),
        (&json!("error"), &json!({"start": 1002, "end": 1004}))
    );
}

#[test]
fn a_call_without_an_id_cannot_be_shown() {
    let nameless = json!({"type": "tool-call", "name": "n", "arguments": "{}"});
    let log = Log::new().turn().step(1).answer(&json!([nameless, text("a")]));
    let parts = log.record("asst:2")["parts"].clone();
    assert_eq!(parts.as_array().unwrap().len(), 1);
    assert_eq!(parts[0]["id"], "asst:2.001");
}
