use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{TurnState, closers};
use crate::{
    event::{Event, EventDraft},
    gate,
    id::{Seq, SessionId},
    json::JsonText,
    vocabulary::Vocabulary,
};

/// A log whose events are a second apart, unless a test says otherwise.
#[derive(Default)]
struct Log(Vec<Event>);

impl Log {
    fn raw(mut self, event_type: &str, data: &str) -> Self {
        let data = JsonText::parse(&data.into()).unwrap();
        let seq = Seq(self.0.len() as u64);
        let time = self.0.last().map_or(0, Event::time) + 1000;
        self.0.push(EventDraft::new(event_type, &data).complete(seq, time).unwrap());
        self
    }

    fn event(self, event_type: &str, data: &Value) -> Self {
        self.raw(event_type, &data.to_string())
    }

    fn turn(self, turn: u64) -> Self {
        self.event("turn/start", &json!({"turn": turn}))
    }

    fn end_turn(self, turn: u64) -> Self {
        self.event("turn/end", &json!({"turn": turn, "reason": {"kind": "completed"}}))
    }

    fn step(self, step: u64) -> Self {
        self.event("step/start", &json!({"turn": 1, "step": step}))
    }

    fn end_step(self, step: u64) -> Self {
        self.event("step/end", &json!({"turn": 1, "step": step}))
    }

    /// An answer that asks for tools.
    fn asks(self, step: u64, ids: &[&str]) -> Self {
        let call = |id| json!({"type": "tool-call", "id": id, "name": "bash", "arguments": "{}"});
        let mut content = vec![json!({"type": "text", "text": "let me see"})];
        content.extend(ids.iter().map(call));
        self.event(
            "assistant/message",
            &json!({"turn": 1, "step": step, "message": {"id": "a", "role": "assistant",
                "content": content, "source": {"kind": "model", "provider": "p", "model": "m"}}}),
        )
    }

    fn calls(self, id: &str) -> Self {
        self.event(
            "tool/call",
            &json!({"turn": 1, "step": 1, "callId": id, "name": "bash", "arguments": "{}"}),
        )
    }

    fn answers(self, id: &str) -> Self {
        self.event(
            "tool/result",
            &json!({"turn": 1, "step": 1, "message": {"id": "r", "role": "user",
                "source": {"kind": "tool", "callId": id},
                "content": [{"type": "tool-result", "toolCallId": id, "content": []}]}}),
        )
    }

    /// The texts of what closes it.
    fn closed_by(&self) -> Vec<String> {
        closers(&self.0).iter().map(|event| event.text().as_str().to_owned()).collect()
    }
}

fn summary(log: &Log) -> Vec<String> {
    let says = |event: &Event| {
        let mut says = format!("{} {}", event.seq(), event.event_type());
        for path in [&["message", "source", "callId"][..], &["error", "code"]] {
            if let Some(text) = event.data().path(path) {
                write!(says, " {}", text.as_str().unwrap().raw()).unwrap();
            }
        }
        says
    };
    closers(&log.0).iter().map(says).collect()
}

/// What closes an empty step of a turn, as the second and third event.
fn step_and_turn(seq: u64, time: i64) -> [String; 2] {
    [
        format!(r#"{{"type":"step/end","seq":{seq},"time":{time},"data":{{"turn":1,"step":1}}}}"#),
        turn_end(seq + 1, time),
    ]
}

fn turn_end(seq: u64, time: i64) -> String {
    format!(
        r#"{{"type":"turn/end","seq":{seq},"time":{time},"data":{{"turn":1,"reason":{{"kind":"interrupted"}}}}}}"#
    )
}

#[test]
fn a_balanced_log_needs_nothing() {
    let log = Log::default().turn(1).step(1).asks(1, &["c"]).calls("c").answers("c");
    let log = log.end_step(1).end_turn(1).event("session/title", &json!({"title": "t"}));
    assert!(log.closed_by().is_empty());
}

#[test]
fn an_empty_log_needs_nothing() {
    assert!(closers(&[]).is_empty());
    assert!(!TurnState::default().is_open());
    let no_turn = Log::default().event("approval/policy", &json!({"policy": "ask"}));
    assert!(no_turn.closed_by().is_empty());
}

#[test]
fn a_turn_alone_is_ended() {
    assert_eq!(Log::default().turn(1).closed_by(), [turn_end(1, 1000)]);
}

#[test]
fn an_open_step_is_ended_before_its_turn() {
    assert_eq!(Log::default().turn(1).step(1).closed_by(), step_and_turn(2, 2000));
}

#[test]
fn a_call_that_did_not_start_gets_a_result_that_says_so() {
    let closed = Log::default().turn(1).step(1).asks(1, &["c-1"]).closed_by();
    assert_eq!(
        closed[0],
        concat!(
            r#"{"type":"tool/result","seq":3,"time":3000,"data":{"turn":1,"step":1,"#,
            r#""message":{"id":"interrupted-tool-result-c-1-3","role":"user","#,
            r#""source":{"kind":"tool","callId":"c-1"},"#,
            r#""content":[{"type":"tool-result","toolCallId":"c-1","isError":true,"content":["#,
            r#"{"type":"text","text":"The session was interrupted before this tool call began, "#,
            r#"so the tool never ran and had no effect. If the result is still needed, the call "#,
            r#"can safely be made again."}]}]},"#,
            r#""error":{"name":"ToolNotStartedError","code":"TOOL_NOT_STARTED"}},"#,
            r#""surfaceOp":"append"}"#
        )
    );
    assert_eq!(closed[1..], step_and_turn(4, 3000));
}

#[test]
fn an_answered_call_needs_no_result() {
    let log = Log::default().turn(1).step(1).asks(1, &["c"]).calls("c").answers("c");
    assert_eq!(log.closed_by(), step_and_turn(5, 5000));
}

#[test]
fn an_ended_step_leaves_nothing_but_its_turn_open() {
    let log = Log::default().turn(1).step(1).asks(1, &["c"]).calls("c").end_step(1);
    assert_eq!(log.closed_by(), [turn_end(5, 5000)]);
}

#[test]
fn an_earlier_turn_leaves_nothing_behind() {
    let log = Log::default().turn(7).step(1).asks(1, &["old"]).calls("old").end_turn(7);
    assert!(log.closed_by().is_empty());
    assert_eq!(log.turn(1).closed_by(), [turn_end(6, 6000)]);
    // A turn that was never ended is over when the next one starts.
    let log = Log::default().turn(7).step(1).asks(1, &["old"]).calls("old").turn(1);
    assert_eq!(log.closed_by(), [turn_end(5, 5000)]);
}

#[test]
fn several_calls_are_answered_in_the_order_they_were_asked_for() {
    let log = Log::default().turn(1).step(2).asks(2, &["z", "a", "m"]).calls("m").calls("z");
    let log = log.answers("a").asks(2, &["b"]);
    assert_eq!(
        summary(&log),
        [
            "7 tool/result z TOOL_OUTCOME_UNKNOWN",
            "8 tool/result m TOOL_OUTCOME_UNKNOWN",
            "9 tool/result b TOOL_NOT_STARTED",
            "10 step/end",
            "11 turn/end",
        ]
    );
    let ids: Vec<_> = closers(&log.0)[..3]
        .iter()
        .map(|event| event.data().path(&["message", "id"]).unwrap().text().to_owned())
        .collect();
    assert_eq!(
        ids,
        [
            r#""interrupted-tool-result-z-7""#,
            r#""interrupted-tool-result-m-8""#,
            r#""interrupted-tool-result-b-9""#
        ]
    );
}

#[test]
fn a_call_that_started_has_an_unknown_outcome_and_is_the_source_of_its_result() {
    let log = Log::default().turn(1).step(1).asks(1, &["c"]).calls("c");
    let result = &closers(&log.0)[0];
    assert_eq!(
        result.text().as_str(),
        concat!(
            r#"{"type":"tool/result","seq":4,"time":4000,"data":{"turn":1,"step":1,"#,
            r#""message":{"id":"interrupted-tool-result-c-4","role":"user","#,
            r#""source":{"kind":"tool","callId":"c"},"#,
            r#""content":[{"type":"tool-result","toolCallId":"c","isError":true,"content":["#,
            r#"{"type":"text","text":"The tool call was interrupted after it was recorded, but no "#,
            r#"result was durably recorded. Its outcome is unknown. Decide whether to retry from "#,
            r#"the tool semantics: retry only if the operation is read-only or idempotent; if it "#,
            r#"may have side effects, first verify external state or ask the user. Do not retry "#,
            r#"blindly."}]}]},"#,
            r#""error":{"name":"ToolOutcomeUnknownError","code":"TOOL_OUTCOME_UNKNOWN"}},"#,
            r#""surfaceOp":"append","sourceEventSeqs":[3]}"#
        )
    );
    let log = Log::default().turn(1).step(1).asks(1, &["c"]);
    assert_eq!(closers(&log.0)[0].source_event_seqs(), None);
}

#[test]
fn a_call_that_nobody_asked_for_gets_no_result() {
    let log = Log::default().turn(1).step(1).calls("orphan");
    assert_eq!(log.closed_by(), step_and_turn(3, 3000));
    let early = Log::default().turn(1).step(1).calls("c").asks(1, &["c"]);
    assert_eq!(summary(&early)[0], "4 tool/result c TOOL_NOT_STARTED");
}

#[test]
fn a_call_asked_for_again_keeps_its_place_and_starts_again() {
    let log = Log::default().turn(1).step(1).asks(1, &["a", "b"]).calls("a").asks(1, &["a"]);
    assert_eq!(
        summary(&log)[..2],
        ["5 tool/result a TOOL_NOT_STARTED", "6 tool/result b TOOL_NOT_STARTED"]
    );
    // One that was answered meanwhile goes to the end.
    let log = log.answers("a").asks(1, &["a"]).calls("a");
    assert_eq!(
        summary(&log)[..2],
        ["8 tool/result b TOOL_NOT_STARTED", "9 tool/result a TOOL_OUTCOME_UNKNOWN"]
    );
}

#[test]
fn a_result_belongs_to_the_step_that_asked_for_it() {
    let log = Log::default().turn(4).step(2).asks(3, &["c"]);
    assert!(closers(&log.0)[0].data().text().starts_with(r#"{"turn":4,"step":3,"message""#));
    let log = Log::default()
        .turn(4)
        .step(2)
        .raw("assistant/message", r#"{"message":{"content":[{"type":"tool-call","id":"c"}]}}"#);
    assert!(closers(&log.0)[0].data().text().starts_with(r#"{"turn":4,"step":2,"message""#));
}

#[test]
fn ids_are_compared_as_javascript_strings_and_spelled_as_it_spells_them() {
    let asks =
        r#"{"step":1,"message":{"content":[{"type":"tool-call","id":"\u0061\/\ud83d\"é"}]}}"#;
    let starts = r#"{"callId":"a/\uD83D\u0022\u00e9"}"#;
    let log = Log::default().turn(1).step(1).raw("assistant/message", asks);
    let log = log.raw("tool/call", starts);
    let result = &closers(&log.0)[0];
    assert!(result.data().text().contains(
        r#""message":{"id":"interrupted-tool-result-a/\ud83d\"é-4","role":"user","source":{"kind":"tool","callId":"a/\ud83d\"é"},"content":[{"type":"tool-result","toolCallId":"a/\ud83d\"é","#
    ));
    assert_eq!(result.source_event_seqs().unwrap().text(), "[3]");
    let answer = r#"{"message":{"source":{"callId":"\u0061/\ud83d\"é"}}}"#;
    assert_eq!(log.raw("tool/result", answer).closed_by(), step_and_turn(5, 5000));
}

#[test]
fn numbers_are_spelled_as_javascript_spells_them() {
    let log = Log::default().raw("turn/start", r#"{"turn":1.0}"#);
    assert_eq!(log.closed_by(), [turn_end(1, 1000)]);
}

#[test]
fn what_opens_without_a_number_is_closed_without_one() {
    for data in ["null", "{}", r#"{"turn":"1"}"#, r#"{"turn":1e999}"#, "[1]"] {
        let log = Log::default().raw("turn/start", data).raw("step/start", data);
        assert_eq!(
            log.closed_by(),
            [
                r#"{"type":"step/end","seq":2,"time":2000,"data":{}}"#,
                r#"{"type":"turn/end","seq":3,"time":2000,"data":{"reason":{"kind":"interrupted"}}}"#,
            ]
        );
    }
}

#[test]
fn calls_without_a_usable_id_are_none() {
    for id in ["\"\"", "7", "null", "[\"c\"]"] {
        let data = format!(r#"{{"message":{{"content":[{{"type":"tool-call","id":{id}}}]}}}}"#);
        let log = Log::default().turn(1).step(1).raw("assistant/message", &data);
        assert_eq!(log.closed_by(), step_and_turn(3, 3000), "{id}");
    }
}

#[test]
fn a_log_without_room_is_not_half_closed() {
    let text = r#"{"type":"turn/start","seq":9007199254740990,"time":0,"data":{"turn":1}}"#;
    let mut state = TurnState::default();
    state.push(&Event::parse(&text.into()).unwrap());
    assert_eq!(state.closers().len(), 1);
    let text = r#"{"type":"step/start","seq":9007199254740990,"time":0,"data":{"step":1}}"#;
    state.push(&Event::parse(&text.into()).unwrap());
    assert!(state.is_open());
    assert!(state.closers().is_empty());
}

/// Events as a writer gone wrong may have left them.
fn any_event() -> impl Strategy<Value = (&'static str, String)> {
    let id =
        prop::sample::select(vec!["\"a\"", "\"b\"", r#""\ud800""#, r#""\u0061""#, "\"\"", "1"]);
    let number = prop::sample::select(vec!["1", "2", "-3.5", "1e400", "null", "\"x\""]);
    let data = (id.clone(), id, number).prop_flat_map(|(id, other, number)| {
        prop::sample::select(vec![
            "null".to_owned(),
            "[]".to_owned(),
            format!(r#"{{"turn":{number},"step":{number},"callId":{id}}}"#),
            format!(
                r#"{{"step":{number},"message":{{"source":{{"callId":{id}}},"content":[{{"type":"tool-call","id":{id}}},{{"type":"tool-call","id":{other}}},{number}]}}}}"#
            ),
            format!(r#"{{"message":{{"source":{{"callId":{other}}},"content":{id}}}}}"#),
        ])
    });
    let event_type = prop::sample::select(vec![
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "assistant/message",
        "assistant/message",
        "tool/call",
        "tool/call",
        "tool/result",
        "session/title",
    ]);
    (event_type, data)
}

proptest! {
    #[test]
    fn any_log_is_closed_by_events_that_every_reader_takes(
        events in prop::collection::vec(any_event(), 0..40),
    ) {
        let log = events.iter().fold(Log::default().turn(1), |log, (name, data)| log.raw(name, data));
        let closing = closers(&log.0);
        prop_assert_eq!(&closing, &closers(&log.0));
        let session = SessionId::new("s").unwrap();
        prop_assert_eq!(gate::check(&session, &closing, &Vocabulary::v0()), Ok(()));
        let last = log.0.last().unwrap();
        let mut whole = log.0.clone();
        for (at, event) in closing.iter().enumerate() {
            prop_assert_eq!(event.seq(), last.seq().plus(at + 1));
            prop_assert_eq!(event.time(), last.time());
            prop_assert_eq!(&Event::parse(event.text()).unwrap(), event);
            whole.push(event.clone());
        }
        prop_assert!(closers(&whole).is_empty());
    }
}
