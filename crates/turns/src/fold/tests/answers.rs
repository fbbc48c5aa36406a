use serde_json::{Value, json};

use super::{Log, answer, call, check, text};

fn parts(log: &Log, id: &str) -> Vec<(String, String)> {
    let record = log.record(id);
    let parts = record["parts"].as_array().unwrap().iter();
    parts
        .map(|part| {
            let shown = part.get("text").or_else(|| part.get("callID")).unwrap();
            (part["id"].as_str().unwrap().to_owned(), shown.as_str().unwrap().to_owned())
        })
        .collect()
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
}

fn start() -> Log {
    Log::new().header().turn().step(1).prompt("u1", "hi")
}

#[test]
fn an_answer_is_assembled_as_it_streams_in() {
    let mut log = start().block(0, "reasoning");
    let open = |parts: Value| {
        json!({
            "info": {
                "id": "asst:4", "sessionID": "s", "role": "assistant", "time": {"created": 1004},
                "parentID": "u1", "modelID": "m", "providerID": "p", "cost": 0,
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
            },
            "parts": parts
        })
    };
    let part = |index: usize, kind: &str, text: &str, time: Value| {
        json!({"id": format!("asst:4.{index:03}"), "sessionID": "s", "messageID": "asst:4",
            "type": kind, "text": text, "time": time})
    };
    assert_eq!(
        log.record("asst:4"),
        open(json!([part(0, "reasoning", "", json!({"start": 1004}))]))
    );
    log = log
        .chunk(&json!({"type": "reasoning-delta", "index": 0, "text": "let "}))
        .chunk(&json!({"type": "reasoning-delta", "index": 0, "text": "me"}));
    let thinking = part(0, "reasoning", "let me", json!({"start": 1004}));
    assert_eq!(log.record("asst:4"), open(json!([thinking])));
    log = log
        .block(1, "text")
        .text(1, "4")
        .end_block(0, &json!({"type": "reasoning", "text": "let me."}));
    let thought = part(0, "reasoning", "let me.", json!({"start": 1004, "end": 1009}));
    let writing = part(1, "text", "4", json!({"start": 1007}));
    assert_eq!(log.record("asst:4"), open(json!([thought, writing])));
}

#[test]
fn an_answer_settles_under_the_same_id_and_is_complete_at_the_end_of_its_step() {
    let usage = json!({"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 1.5e3,
        "cacheWriteTokens": 4, "reasoningTokens": 3});
    let mut message = answer(1, &json!([text("four")]));
    message["usage"] = usage;
    let log =
        start().block(0, "text").text(0, "fo").finish("stop").add("assistant/message", &message);
    let mut expected = json!({
        "info": {
            "id": "asst:4", "sessionID": "s", "role": "assistant", "time": {"created": 1004},
            "parentID": "u1", "modelID": "m", "providerID": "p", "cost": 0,
            "tokens": {"input": 5, "output": 2, "reasoning": 3, "cache": {"read": 1.5e3, "write": 4}}
        },
        "parts": [{"id": "asst:4.000", "sessionID": "s", "messageID": "asst:4", "type": "text",
            "text": "four", "time": {"start": 1004, "end": 1007}}]
    });
    assert_eq!(log.record("asst:4"), expected);
    let log = log.end_step(1);
    expected["info"]["time"]["completed"] = json!(1008);
    expected["info"]["finish"] = json!("stop");
    assert_eq!(log.record("asst:4"), expected);
    assert_eq!(log.fold().len(), 2);
}

#[test]
fn usage_is_what_the_chunks_say_until_the_message_says_it() {
    let log = start()
        .block(0, "text")
        .chunk(&json!({"type": "usage", "usage": {"inputTokens": 7, "outputTokens": "many"}}));
    let tokens = json!({"input": 7, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    assert_eq!(log.record("asst:4")["info"]["tokens"], tokens);
    let log = log.answer(&json!([text("x")]));
    assert_eq!(log.record("asst:4")["info"]["tokens"], tokens);
}

#[test]
fn a_message_without_chunks_is_an_answer_of_its_own() {
    let log = start().answer(&json!([text("a"), call("c", "{}")])).end_step(1);
    assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.000", "a"), ("asst:4.001", "c")]));
    let info = log.record("asst:4")["info"].clone();
    assert_eq!(info["time"], json!({"created": 1004, "completed": 1005}));
    // Nobody said why it finished.
    assert_eq!(info.get("finish"), None);
}

#[test]
fn an_answer_outside_of_any_turn_is_complete_at_once() {
    let log = Log::new().answer(&json!([text("a")]));
    let info = log.record("asst:0")["info"].clone();
    assert_eq!(info["time"], json!({"created": 1000, "completed": 1000}));
    assert_eq!(info.get("parentID"), None);
}

#[test]
fn every_step_of_a_turn_has_its_own_answer() {
    let log = start()
        .block(0, "text")
        .answer(&json!([text("one")]))
        .end_step(1)
        .step(2)
        .chunk_in(2, &json!({"type": "block-start", "index": 0, "blockType": "text"}))
        .answer_in(2, &json!([text("two")]))
        .answer_in(2, &json!([text("three")]))
        .end_step(2);
    assert_eq!(log.ids(), ["u1", "asst:4", "asst:8", "asst:10"]);
    let completed = |id: &str| log.record(id)["info"]["time"]["completed"].clone();
    assert_eq!((completed("asst:4"), completed("asst:8")), (json!(1006), json!(1011)));
    assert_eq!(completed("asst:10"), 1011);
}

#[test]
fn what_a_person_writes_in_a_turn_is_what_the_answers_after_it_answer() {
    let log = start()
        .message("n1", "plugin", &json!([text("context")]))
        .answer(&json!([text("one")]))
        .prompt("u2", "no, wait")
        .answer(&json!([text("two")]))
        .message("n2", "plugin", &json!([text("notice")]))
        .answer(&json!([text("three")]));
    let parents: Vec<Value> =
        ["asst:5", "asst:7", "asst:9"].map(|id| log.record(id)["info"]["parentID"].clone()).into();
    assert_eq!(parents, ["u1", "u2", "u2"]);
}

#[test]
fn the_first_message_that_nobody_wrote_is_answered_when_nobody_wrote_any() {
    let log = Log::new()
        .prompt("u0", "before the turn")
        .turn()
        .message("g", "goal", &json!([text("go on")]))
        .message("n", "plugin", &json!([text("context")]))
        .answer(&json!([text("one")]))
        .end_turn(&json!({"kind": "completed"}))
        .turn()
        .answer(&json!([text("two")]));
    assert_eq!(log.record("asst:4")["info"]["parentID"], "g");
    assert_eq!(log.record("asst:7")["info"].get("parentID"), None);
}

#[test]
fn blocks_are_shown_in_the_order_of_the_stream_and_keep_the_index_they_began_with() {
    let log = start()
        .block(3, "text")
        .block(1, "reasoning")
        .text(3, "b")
        .chunk(&json!({"type": "reasoning-delta", "index": 1, "text": "a"}));
    let shown = named(&[("asst:4.001", "a"), ("asst:4.000", "b")]);
    assert_eq!(parts(&log, "asst:4"), shown);
    let log = log.answer(&json!([{"type": "reasoning", "text": "a"}, text("b")]));
    assert_eq!(parts(&log, "asst:4"), shown);
}

#[test]
fn blocks_that_the_message_leaves_out_take_no_index_with_them() {
    // What is cut off by the token limit owes no calls, so the message has none.
    let log = start()
        .block(0, "text")
        .text(0, "a")
        .block(1, "tool-call")
        .chunk(&json!({"type": "tool-call-delta", "index": 1, "id": "c", "argumentsDelta": "{"}))
        .block(2, "text")
        .text(2, "b")
        .finish("max-tokens");
    assert_eq!(
        parts(&log, "asst:4"),
        named(&[("asst:4.000", "a"), ("asst:4.001", "c"), ("asst:4.002", "b")])
    );
    let log = log.answer(&json!([text("a"), text("b"), text("more")])).end_step(1);
    assert_eq!(
        parts(&log, "asst:4"),
        named(&[("asst:4.000", "a"), ("asst:4.002", "b"), ("asst:4.003", "more")])
    );
    assert_eq!(log.record("asst:4")["info"]["finish"], "length");
}

#[test]
fn a_kind_of_block_that_streams_no_text_is_shown_once_the_message_has_it() {
    let image = json!({"type": "image", "attachment": {"mediaType": "image/png"}});
    let log = start().block(0, "image").block(1, "text").text(1, "a").end_block(0, &image);
    assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.001", "a")]));
    let log = log.answer(&json!([image, text("a"), {"type": "hologram"}]));
    let record = log.record("asst:4");
    assert_eq!(record["parts"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&record["parts"][0]["id"], &record["parts"][0]["type"]),
        (&json!("asst:4.000"), &json!("file"))
    );
}

#[test]
fn halves_of_a_pair_that_meet_make_the_pair() {
    let delta = |text: &str| {
        format!(
            r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#
        )
    };
    let log = start()
        .raw("assistant/chunk", &delta(r"a\ud83d"))
        .raw("assistant/chunk", &delta(r"\ude00\/b"));
    let row = log.fold().record("asst:4").unwrap();
    assert!(row.text().contains(r#""text":"a\ud83d\ude00\/b""#), "{row:?}");
    assert_eq!(log.record("asst:4")["parts"][0]["text"], "a\u{1f600}/b");
}

#[test]
fn a_delta_of_another_kind_than_its_block_is_passed_over() {
    let log = start()
        .block(0, "text")
        .text(0, "a")
        .chunk(&json!({"type": "reasoning-delta", "index": 0, "text": "!"}))
        .chunk(&json!({"type": "tool-call-delta", "index": 0, "id": "c", "argumentsDelta": "!"}))
        .end_block(0, &call("c", "!"))
        .text(0, "b");
    assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.000", "ab")]));
}

#[test]
fn a_block_is_of_the_kind_of_its_first_delta_where_its_start_does_not_say() {
    let log = start()
        .chunk(&json!({"type": "block-start", "index": 0}))
        .text(0, "a")
        .chunk(&json!({"type": "reasoning-delta", "index": 1, "text": "b"}));
    assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.000", "a"), ("asst:4.001", "b")]));
}

#[test]
fn no_request_goes_on_over_a_boundary() {
    let cut = || start().block(0, "text").text(0, "a");
    let logs = [
        cut().step(1),
        cut().end_step(1),
        cut().turn(),
        cut().end_turn(&json!({"kind": "interrupted"})),
    ];
    for log in logs {
        let log = log.text(0, "b");
        assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.000", "a")]));
        assert_eq!(parts(&log, "asst:7"), named(&[("asst:7.000", "b")]));
    }
}

#[test]
fn a_request_shows_from_its_first_block_on() {
    let log = start().chunk(&json!({"type": "usage", "usage": {}}));
    assert_eq!(log.ids(), ["u1"]);
    let log = log.block(0, "text");
    assert_eq!(log.ids(), ["u1", "asst:4"]);
}

#[test]
fn a_failed_request_without_blocks_gives_no_record_and_the_next_one_its_own() {
    let log = start().fail("busy").block(0, "text").answer(&json!([text("a")])).end_step(1);
    assert_eq!(log.ids(), ["u1", "asst:5"]);
    let info = log.record("asst:5")["info"].clone();
    assert_eq!(info.get("error"), None);
    check(&log.fold());
}

#[test]
fn what_a_failed_request_showed_stays_with_its_error() {
    let log = start().block(0, "text").text(0, "par").fail("busy");
    let error = json!({"name": "APIError", "data": {"message": "busy", "isRetryable": false,
        "metadata": {"code": "SERVER"}}});
    let info = log.record("asst:4")["info"].clone();
    assert_eq!(info["error"], error);
    assert_eq!(info["time"].get("completed"), None);
    let log = log.block(0, "text").text(0, "partial").answer(&json!([text("whole")])).end_step(1);
    assert_eq!(log.ids(), ["u1", "asst:4", "asst:7"]);
    let failed = log.record("asst:4");
    assert_eq!(failed["info"]["error"], error);
    assert_eq!(failed["info"]["time"]["completed"], 1007);
    assert_eq!(failed["parts"][0]["text"], "par");
    assert_eq!(failed["parts"][0]["time"], json!({"start": 1004, "end": 1007}));
    assert_eq!(log.record("asst:7")["info"].get("error"), None);
}

#[test]
fn a_retry_ends_a_request_that_broke_off() {
    let failure = json!({"message": "reset", "code": "NETWORK", "status": 502, "requestId": "r"});
    let log = start()
        .block(0, "text")
        .text(0, "par")
        .add("llm/retry", &json!({"turn": 1, "step": 1, "retry": 1, "failure": failure}))
        .add("llm/retry-started", &json!({"turn": 1, "step": 1, "retry": 1}))
        .block(0, "text")
        .text(0, "whole");
    assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.000", "par")]));
    assert_eq!(parts(&log, "asst:8"), named(&[("asst:8.000", "whole")]));
    assert_eq!(
        log.record("asst:4")["info"]["error"],
        json!({"name": "APIError", "data": {"message": "reset", "statusCode": 502,
            "isRetryable": false, "metadata": {"code": "NETWORK", "requestId": "r"}}})
    );
}

#[test]
fn a_retry_takes_the_place_of_a_request_and_leaves_its_own_reason() {
    let other = json!({"turn": 1, "step": 1, "failure": {"message": "other"}});
    let log = start().block(0, "text").fail("busy").add("llm/retry", &other);
    let info = log.record("asst:4")["info"].clone();
    assert_eq!(info["error"]["data"]["message"], "busy");
    assert_eq!(info["time"]["completed"], 1006);
    // What is interrupted now is the request after it.
    let mut message = answer(1, &json!([]));
    message["interrupted"] = json!(true);
    assert_eq!(log.add("assistant/message", &message).ids(), ["u1", "asst:4", "asst:7"]);
    // A retry of another step is none of this one.
    let other = json!({"turn": 1, "step": 2, "failure": {"message": "other"}});
    let log = start().block(0, "text").add("llm/retry", &other).text(0, "a");
    assert_eq!(log.record("asst:4")["info"].get("error"), None);
    assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.000", "a")]));
}

#[test]
fn chunks_of_another_step_are_of_another_request() {
    let log = start()
        .block(0, "text")
        .text(0, "a")
        .chunk_in(2, &json!({"type": "text-delta", "index": 0, "text": "b"}));
    assert_eq!(parts(&log, "asst:4"), named(&[("asst:4.000", "a")]));
    assert_eq!(parts(&log, "asst:6"), named(&[("asst:6.000", "b")]));
}

#[test]
fn an_interrupted_answer_is_an_aborted_one() {
    let aborted = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
    let mut message = answer(1, &json!([text("par")]));
    message["interrupted"] = json!(true);
    let broken = start().block(0, "text").text(0, "par");
    // With or without a `finish` that says so.
    let failure = json!({"message": "stopped", "code": "ABORTED"});
    let said = json!({"type": "finish", "reason": {"kind": "aborted", "failure": failure}});
    for log in [start().block(0, "text").text(0, "par").chunk(&said), broken] {
        let log = log.add("assistant/message", &message).end_step(1);
        assert_eq!(log.ids(), ["u1", "asst:4"]);
        let record = log.record("asst:4");
        assert_eq!(record["info"]["error"], aborted);
        assert!(record["info"]["time"]["completed"].is_number());
        assert_eq!(record["parts"][0]["text"], "par");
    }
    let log = start().block(0, "text").chunk(&said);
    assert_eq!(
        log.record("asst:4")["info"]["error"],
        json!({"name": "MessageAbortedError", "data": {"message": "stopped"}})
    );
}

#[test]
fn a_message_made_of_a_failed_requests_chunks_settles_it() {
    let failed = || start().block(0, "text").text(0, "par").fail("late");
    let append = json!("append");
    let message = answer(1, &json!([text("part")]));
    let own = failed().surface("assistant/message", &message, &[4, 5, 6], &append);
    assert_eq!(own.ids(), ["u1", "asst:4"]);
    assert_eq!(own.record("asst:4")["info"].get("error"), None);
    let other = failed().surface("assistant/message", &message, &[], &append);
    assert_eq!(other.ids(), ["u1", "asst:4", "asst:7"]);
}

#[test]
fn the_model_is_the_one_asked_last_until_the_message_names_it() {
    let log = Log::new().turn().block(0, "text");
    let info = log.record("asst:1")["info"].clone();
    assert_eq!((&info["providerID"], &info["modelID"]), (&json!(""), &json!("")));
    let context = json!({"provider": "q", "model": "n"});
    let log = Log::new().header().add("request/context", &context).turn().block(0, "text");
    let info = log.record("asst:3")["info"].clone();
    assert_eq!((&info["providerID"], &info["modelID"]), (&json!("q"), &json!("n")));
    let log = log.answer(&json!([]));
    let info = log.record("asst:3")["info"].clone();
    assert_eq!((&info["providerID"], &info["modelID"]), (&json!("p"), &json!("m")));
}
