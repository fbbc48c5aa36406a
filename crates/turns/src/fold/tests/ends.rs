//! What the end of a turn says.

use serde_json::{Value, json};

use super::{Log, answer, call, check, text};

fn answered() -> Log {
    Log::new().header().turn().step(1).prompt("u1", "hi").answer(&json!([text("ho")]))
}

/// Why the answer of a turn with this end finished, and its error.
fn end(log: Log, reason: &Value) -> (Value, Value) {
    let info = log.end_step(1).end_turn(reason).record("asst:4")["info"].clone();
    (info["finish"].clone(), info["error"].clone())
}

fn ends(reason: &Value) -> (Value, Value) {
    end(answered(), reason)
}

#[test]
fn a_completed_turn_has_stopped_whatever_its_last_answer_asked_for() {
    let stop = (json!("stop"), Value::Null);
    assert_eq!(ends(&json!({"kind": "completed"})), stop);
    let finished = |kind: &str| {
        let log = Log::new().header().turn().step(1).prompt("u1", "hi").block(0, "text");
        log.finish(kind).answer(&json!([call("c", "{}")]))
    };
    assert_eq!(end(finished("tool-calls"), &json!({"kind": "completed"})), stop);
    assert_eq!(end(finished("stop"), &json!({"kind": "completed"})), stop);
    // Kinds that neither side knows are passed on.
    let filtered = end(finished("content-filter"), &json!({"kind": "completed"}));
    assert_eq!(filtered, (json!("content-filter"), Value::Null));
}

#[test]
fn a_turn_out_of_tokens_ended_for_its_length() {
    assert_eq!(ends(&json!({"kind": "max-tokens"})), (json!("length"), Value::Null));
}

#[test]
fn other_reasons_are_passed_on() {
    assert_eq!(ends(&json!({"kind": "blocked"})), (json!("blocked"), Value::Null));
    let custom = json!({"kind": "acme/custom", "note": "x"});
    assert_eq!(ends(&custom), (json!("acme/custom"), Value::Null));
    for none in [json!({}), json!("completed"), json!({"kind": 7}), Value::Null] {
        assert_eq!(ends(&none), (Value::Null, Value::Null));
    }
}

#[test]
fn a_turn_that_was_stopped_says_so() {
    let stopped = |message: &str| {
        let error = json!({"name": "MessageAbortedError", "data": {"message": message}});
        (Value::Null, error)
    };
    for by in ["user", "parent", "disposed", "legacy"] {
        let reason = json!({"kind": "aborted", "reason": {"kind": by}});
        assert_eq!(ends(&reason), stopped("Aborted"));
    }
    // As earlier writers have it.
    assert_eq!(ends(&json!({"kind": "aborted"})), stopped("Aborted"));
    assert_eq!(ends(&json!({"kind": "disposed"})), stopped("Aborted"));
    assert_eq!(ends(&json!({"kind": "interrupted"})), stopped("Interrupted"));
}

#[test]
fn a_failed_turn_says_why() {
    let error = |error: &Value| ends(&json!({"kind": "error", "error": error})).1;
    let cases = [
        (
            json!({"message": "no", "code": "AUTH"}),
            json!({"name": "ProviderAuthError", "data": {"providerID": "p", "message": "no"}}),
        ),
        (
            json!({"message": "too long", "code": "CONTEXT_WINDOW_EXCEEDED"}),
            json!({"name": "ContextOverflowError", "data": {"message": "too long"}}),
        ),
        (
            json!({"message": "busy", "code": "RATE_LIMIT", "status": 429, "requestId": "q"}),
            json!({"name": "APIError", "data": {"message": "busy", "statusCode": 429,
                "isRetryable": false, "metadata": {"code": "RATE_LIMIT", "requestId": "q"}}}),
        ),
        (
            json!({"message": "busy", "status": 500}),
            json!({"name": "APIError", "data": {"message": "busy", "statusCode": 500,
                "isRetryable": false}}),
        ),
        (
            json!({"message": "what", "code": "UNKNOWN"}),
            json!({"name": "UnknownError", "data": {"message": "what"}}),
        ),
        (json!({}), json!({"name": "UnknownError", "data": {"message": "Request failed"}})),
    ];
    for (failure, expected) in cases {
        assert_eq!(error(&failure), expected);
    }
}

#[test]
fn a_failed_turn_of_an_earlier_writer_says_why() {
    let busy = json!({"name": "APIError", "data": {"message": "busy", "isRetryable": false,
        "metadata": {"code": "BUSY"}}});
    let failure = json!({"message": "busy", "code": "BUSY"});
    let nested = json!({"kind": "error", "step": 1, "failure": failure});
    let flat = json!({"kind": "error", "step": 1, "message": "busy", "code": "BUSY"});
    assert_eq!(ends(&nested).1, busy);
    assert_eq!(ends(&flat).1, busy);
}

#[test]
fn only_the_last_answer_of_the_turn_says_how_it_ended() {
    let log = answered()
        .end_step(1)
        .step(2)
        .answer_in(2, &json!([text("more")]))
        .end_step(2)
        .end_turn(&json!({"kind": "aborted"}));
    assert_eq!(log.record("asst:4")["info"].get("error"), None);
    assert_eq!(log.record("asst:7")["info"]["error"]["name"], "MessageAbortedError");
}

#[test]
fn an_answer_that_was_interrupted_does_not_stop_with_its_turn() {
    let mut message = answer(1, &json!([text("ho")]));
    message["interrupted"] = json!(true);
    let log = Log::new().header().turn().step(1).prompt("u1", "hi");
    let (finish, error) =
        end(log.add("assistant/message", &message), &json!({"kind": "completed"}));
    assert_eq!((finish, &error["name"]), (Value::Null, &json!("MessageAbortedError")));
}

#[test]
fn a_turn_that_ends_with_a_request_that_came_to_nothing_shows_it() {
    let log = answered().end_step(1).step(2).chunk_in(
        2,
        &json!({"type": "finish", "reason": {"kind": "error", "failure": {"message": "busy"}}}),
    );
    assert_eq!(log.ids(), ["u1", "asst:4"]);
    let log = log
        .add("step/end", &json!({"turn": 1, "step": 2}))
        .end_turn(&json!({"kind": "error", "error": {"message": "busy"}}));
    assert_eq!(log.ids(), ["u1", "asst:4", "asst:7"]);
    assert_eq!(log.record("asst:4")["info"].get("error"), None);
    assert_eq!(
        log.record("asst:7"),
        json!({
            "info": {
                "id": "asst:7", "sessionID": "s", "role": "assistant",
                "time": {"created": 1007, "completed": 1008},
                "error": {"name": "UnknownError", "data": {"message": "busy"}},
                "parentID": "u1", "modelID": "m", "providerID": "p", "cost": 0,
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
            },
            "parts": []
        })
    );
}

#[test]
fn a_stray_chunk_is_not_what_a_turn_ends_with() {
    let log = answered().chunk(&json!({"type": "usage", "usage": {"inputTokens": 1}}));
    let log = log.end_step(1).end_turn(&json!({"kind": "completed"}));
    assert_eq!(log.ids(), ["u1", "asst:4"]);
    assert_eq!(log.record("asst:4")["info"]["finish"], "stop");
}

#[test]
fn it_takes_its_place_before_what_came_later() {
    let log = Log::new()
        .turn()
        .prompt("u1", "hi")
        .fail("too long")
        .prompt("u2", "are you there")
        .end_turn(&json!({"kind": "error", "error": {"message": "too long"}}));
    assert_eq!(log.ids(), ["u1", "asst:2", "u2"]);
    check(&log.fold());
}

#[test]
fn a_turn_that_failed_before_any_answer_gets_one() {
    let reason = json!({"kind": "error", "error": {"message": "refused", "code": "NETWORK"}});
    let log = Log::new().header().turn().prompt("u1", "hi").end_turn(&reason);
    assert_eq!(log.ids(), ["u1", "asst:3"]);
    let record = log.record("asst:3");
    assert_eq!(record["info"]["error"]["data"]["message"], "refused");
    assert_eq!(record["info"]["parentID"], "u1");
    assert_eq!(record["info"]["time"], json!({"created": 1003, "completed": 1003}));
    assert_eq!(record["parts"], json!([]));
    // One that a person stopped that early, or that just ended, has nothing to say.
    for kind in ["aborted", "interrupted", "completed", "acme/custom"] {
        let log = Log::new().turn().prompt("u1", "hi").end_turn(&json!({"kind": kind}));
        assert_eq!(log.ids(), ["u1"]);
    }
}

#[test]
fn a_turn_that_has_not_ended_is_unfinished() {
    let info = answered().record("asst:4")["info"].clone();
    assert_eq!(info["time"], json!({"created": 1004}));
    assert_eq!((info.get("finish"), info.get("error")), (None, None));
}

#[test]
fn a_turn_whose_writer_died_is_over_when_the_next_one_starts() {
    let log = Log::new()
        .turn()
        .step(1)
        .prompt("u1", "hi")
        .answer(&json!([call("c", "{}")]))
        .call("c")
        .raw("session/end-seed", "{}")
        .turn()
        .prompt("u2", "again")
        .answer(&json!([text("ho")]))
        .end_turn(&json!({"kind": "aborted"}));
    let record = log.record("asst:3");
    assert_eq!(record["info"]["time"]["completed"], 1006);
    assert_eq!(record["info"].get("error"), None);
    assert_eq!(record["parts"][0]["state"]["status"], "error");
    assert_eq!(log.record("asst:8")["info"]["parentID"], "u2");
}

#[test]
fn an_end_without_a_start_ends_nothing() {
    let log =
        answered().end_turn(&json!({"kind": "completed"})).end_turn(&json!({"kind": "aborted"}));
    assert_eq!(log.record("asst:4")["info"].get("error"), None);
    check(&log.fold());
}

#[test]
fn a_session_is_blank_until_its_first_turn() {
    let log = Log::new().prompt("u1", "hi");
    assert!(log.fold().blank());
    assert!(!log.turn().fold().blank());
}

#[test]
fn a_session_without_a_title_is_called_by_its_first_prompt() {
    let log = Log::new();
    assert_eq!(log.fold().headline(), None);
    let wordy = format!("\n  {} \nsecond line", "wörd ".repeat(30));
    let log = log.prompt("u1", &wordy).prompt("u2", "later");
    let headline = log.fold().headline().unwrap().to_owned();
    assert_eq!(headline, format!("{}…", "wörd ".repeat(16).trim_end()));
    let log = log.add("session/title", &json!({"title": "named"}));
    assert_eq!(log.fold().headline(), Some("named"));
}

#[test]
fn the_newest_title_counts() {
    let log = Log::new().add("session/title", &json!({"title": "one"}));
    assert_eq!(log.fold().title(), Some("one"));
    let log = log.raw("session/title", r#"{"title":"cut \ud83d"}"#);
    assert_eq!(log.fold().title(), Some("cut \u{fffd}"));
    let log = log.add("session/title", &json!({"title": null}));
    assert_eq!(log.fold().title(), Some("cut \u{fffd}"));
}
