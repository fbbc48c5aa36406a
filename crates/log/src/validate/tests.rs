use proptest::prelude::*;
use serde_json::{Value, json};

use super::{RestoreError, RestoreProblem, surface};
use crate::{
    event::Event,
    id::{Seq, SessionId},
};

/// A log of one event a text, each of which lacks its `seq` and its `time`.
fn log(events: &[String]) -> Vec<Event> {
    let event = |(seq, rest): (usize, &String)| {
        let text = format!(r#"{{"seq":{seq},"time":0,{rest}}}"#);
        Event::parse(&text.into()).unwrap()
    };
    events.iter().enumerate().map(event).collect()
}

fn said(op: &str, sources: &str) -> String {
    format!(r#""type":"user/message","data":{{}},"surfaceOp":{op}{sources}"#)
}

fn appended() -> String {
    said("\"append\"", "")
}

fn replaced(start: u64, end: u64, sources: &str) -> String {
    let op = format!(r#"{{"op":"replace","start":{start},"end":{end}}}"#);
    said(&op, &format!(r#","sourceEventSeqs":{sources}"#))
}

fn logged(event_type: &str, data: &Value) -> String {
    format!(r#""type":"{event_type}","data":{data}"#)
}

fn check(events: &[String]) -> Result<Vec<u64>, RestoreError> {
    let seqs = surface(&SessionId::new("s").unwrap(), &log(events))?;
    Ok(seqs.into_iter().map(|seq| seq.0).collect())
}

fn problem(events: &[String]) -> RestoreProblem {
    let error = check(events).unwrap_err();
    assert_eq!(error.at, Seq(events.len() as u64 - 1), "{error}");
    error.problem
}

fn rule(events: &[String]) -> &'static str {
    match problem(events) {
        RestoreProblem::Rule(rule) => rule,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_join_at_the_end_and_other_events_do_not() {
    let events = [appended(), logged("turn/start", &json!({})), appended()];
    assert_eq!(check(&events), Ok(vec![0, 2]));
    assert_eq!(check(&[]), Ok(vec![]));
}

#[test]
fn a_replacement_takes_the_place_of_a_range() {
    let four = [appended(), appended(), appended(), appended()];
    let then = |more: &[String]| check(&[&four[..], more].concat());
    assert_eq!(then(&[replaced(1, 2, "[2,1]")]), Ok(vec![0, 4, 3]));
    assert_eq!(then(&[replaced(0, 0, "[0]")]), Ok(vec![4, 1, 2, 3]));
    assert_eq!(then(&[replaced(3, 3, "[3]"), appended()]), Ok(vec![0, 1, 2, 4, 5]));
    assert_eq!(then(&[replaced(0, 3, "[0,1,2,3]"), appended()]), Ok(vec![4, 5]));
    // What stands in a place may have a later seq than what comes after it.
    let twice = [replaced(0, 1, "[0,1]"), replaced(4, 2, "[4,2,0]"), appended()];
    assert_eq!(then(&twice), Ok(vec![5, 3, 6]));
}

#[test]
fn only_what_the_model_sees_can_be_replaced() {
    let base = [appended(), logged("turn/start", &json!({})), appended(), replaced(2, 2, "[2]")];
    let not_seen = |replacement: String, seq: u64| {
        let problem = problem(&[&base[..], &[replacement]].concat());
        assert!(matches!(problem, RestoreProblem::Replaced { seq: Seq(at), .. } if at == seq));
        assert!(problem.to_string().ends_with("which the model does not see at that point"));
    };
    not_seen(replaced(1, 3, "[0,1,2,3]"), 1);
    not_seen(replaced(0, 2, "[0,2]"), 2);
    not_seen(replaced(4, 4, "[0]"), 4);
    not_seen(replaced(0, 99, "[0]"), 99);
}

#[test]
fn a_range_runs_in_the_order_of_the_model() {
    let base = [appended(), appended(), replaced(0, 0, "[0]")];
    let backwards = problem(&[&base[..], &[replaced(1, 2, "[1,2]")]].concat());
    assert_eq!(
        backwards.to_string(),
        "replaces event 2, which the model sees before the start of the range"
    );
    assert_eq!(check(&[&base[..], &[replaced(2, 1, "[2,1]")]].concat()), Ok(vec![3]));
}

#[test]
fn a_replacement_names_all_that_it_replaces() {
    let base = [appended(), appended(), appended()];
    let problem = problem(&[&base[..], &[replaced(0, 2, "[0,2]")]].concat());
    assert_eq!(
        problem,
        RestoreProblem::Replaced {
            seq: Seq(1),
            problem: "which its `sourceEventSeqs` do not name"
        }
    );
    let error = check(&[appended(), said(r#"{"op":"replace","start":0,"end":0}"#, "")]);
    assert_eq!(
        error.unwrap_err().to_string(),
        "session \"s\" cannot be resumed: event 1 replaces event 0, which its `sourceEventSeqs` do \
         not name; it can still be read and exported, and forked before that event"
    );
}

#[test]
fn sources_are_earlier_events_each_named_once() {
    let named = |sources: &str| {
        let sources = format!(r#","sourceEventSeqs":{sources}"#);
        [appended(), appended(), said("\"append\"", &sources)]
    };
    assert_eq!(check(&named("[1,0]")), Ok(vec![0, 1, 2]));
    assert_eq!(rule(&named("[]")), "has empty `sourceEventSeqs`");
    assert_eq!(rule(&named("[2]")), "has `sourceEventSeqs` that do not come before it");
    assert_eq!(rule(&named("[1,1]")), "has `sourceEventSeqs` that name an event twice");
    let answer =
        r#""type":"assistant/message","data":{},"surfaceOp":"append","sourceEventSeqs":[]"#;
    assert_eq!(check(&[answer.to_owned()]), Ok(vec![0]));
}

#[test]
fn only_messages_have_a_place_on_the_surface_and_all_of_them_do() {
    for member in [r#""surfaceOp":"append""#, r#""sourceEventSeqs":[]"#] {
        let event = format!(r#""type":"turn/start","data":{{}},{member}"#);
        assert!(rule(&[event]).ends_with("but is of a type that no model sees"));
    }
    for event_type in ["user/message", "assistant/message", "tool/result"] {
        let event = logged(event_type, &json!({}));
        assert_eq!(rule(&[event]), "has no `surfaceOp`, but is of a type that a model sees");
    }
    for op in [
        "null",
        "\"prepend\"",
        "{}",
        r#"{"op":"replace","start":0}"#,
        r#"{"op":"replace","start":0,"end":-1}"#,
        r#"{"op":"append","start":0,"end":0}"#,
        r#"{"op":"replace","start":0,"end":0,"why":1}"#,
    ] {
        let problem = rule(&[appended(), said(op, r#","sourceEventSeqs":[0]"#)]);
        assert!(problem.starts_with("has a `surfaceOp` that is neither"), "{op}: {problem}");
    }
}

#[test]
fn events_have_the_members_of_events_only() {
    let event = r#""type":"acme/x","data":1,"ignorable":true,"n\u00f6te":{}"#;
    assert_eq!(problem(&[event.to_owned()]), RestoreProblem::Member("nöte".to_owned()));
    assert_eq!(check(&[r#""type":"acme/x","data":1,"ignorable":true"#.to_owned()]), Ok(vec![]));
    let event = r#""type":"acme/x","data":1,"ignorable":false"#;
    assert!(rule(&[event.to_owned()]).starts_with("is marked `ignorable`"));
}

#[test]
fn an_event_stands_at_its_seq() {
    let mut events = log(&[appended(), appended(), appended()]);
    events.remove(1);
    let error = surface(&SessionId::new("s").unwrap(), &events).unwrap_err();
    assert_eq!((error.at, error.kind()), (Seq(1), "corrupt"));
    assert_eq!(error.problem, RestoreProblem::Seq(Seq(2)));
}

#[test]
fn requests_name_their_model() {
    let request = |header: Value| [logged("request/header", &json!({"header": header}))];
    let good = [
        json!({"config": {"provider": "p", "model": "m"}}),
        json!({"config": {"provider": "p", "model": "m", "reasoningEffort": "high", "maxTokens": 5},
            "adapterDefaults": {"reasoningEffort": true, "maxTokens": true}}),
        json!({"config": {"provider": "p", "model": "m"}, "adapterDefaults": {}, "tools": []}),
    ];
    for header in good {
        assert_eq!(check(&request(header)), Ok(vec![]));
    }
    let bad = [
        json!({}),
        json!({"config": "p/m"}),
        json!({"config": {"provider": "p"}}),
        json!({"config": {"provider": "", "model": "m"}}),
        json!({"config": {"provider": "p", "model": 4}}),
        json!({"config": {"provider": "p", "model": "m", "reasoningEffort": ""}}),
        json!({"config": {"provider": "p", "model": "m"}, "adapterDefaults": []}),
        json!({"config": {"provider": "p", "model": "m"}, "adapterDefaults": {"maxTokens": true}}),
        json!({"config": {"provider": "p", "model": "m", "maxTokens": 5},
            "adapterDefaults": {"maxTokens": false}}),
        json!({"config": {"provider": "p", "model": "m", "stop": []},
            "adapterDefaults": {"stop": true}}),
    ];
    for header in bad {
        let problem = rule(&request(header.clone()));
        assert!(problem.starts_with("is a request "), "{header}: {problem}");
    }
    assert_eq!(rule(&[logged("request/header", &json!(null))]), "is a request without a header");
}

fn result() -> Value {
    json!({"turn": 1, "step": 1, "meta": {"a": [1, {"b": null}], "c": "é"}, "message": {
        "id": "m", "role": "user", "source": {"kind": "tool", "callId": "c"},
        "content": [{"type": "tool-result", "toolCallId": "c", "content": [{"text": "long"}]}]}})
}

fn pruned(new: &str) -> Result<Vec<u64>, RestoreError> {
    let old = format!("{},\"surfaceOp\":\"append\"", logged("tool/result", &result()));
    let op = r#""surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]"#;
    check(&[old, format!(r#""type":"tool/result","data":{new},{op}"#)])
}

#[test]
fn a_tool_result_is_replaced_by_the_same_one_with_other_content() {
    let mut new = result();
    new["message"]["content"][0]["content"] = json!(["pruned", {}]);
    assert_eq!(pruned(&new.to_string()), Ok(vec![1]));
    let respelled = r#" {"step":1.0, "message":{"role":"user","id":"\u006d","content":[
        {"content":null,"toolCallId":"c","type":"tool-result"}],"source":{"callId":"c","kind":"tool"}},
        "meta":{"c":"\u00e9","x":0,"a":[1e0,{"b":null}],"\u0061":[1,{"\u0062":null}]},"turn":1} "#;
    assert!(pruned(respelled).is_err(), "there is a member more");
    assert_eq!(pruned(&respelled.replace(r#""x":0,"#, "")), Ok(vec![1]));

    for (at, value) in [
        ("/turn", json!(2)),
        ("/turn", json!("1")),
        ("/meta/a/1/b", json!(false)),
        ("/meta/a", json!([1])),
        ("/meta", json!({"a": [1, {"b": null}]})),
        ("/message/id", json!("n")),
        ("/message/source/callId", json!("d")),
        ("/message/content", json!([])),
        ("/message/content/0/toolCallId", json!("d")),
        ("/message/content/0", json!("text")),
        ("/message", json!([])),
    ] {
        let mut new = result();
        *new.pointer_mut(at).unwrap() = value;
        let error = pruned(&new.to_string()).unwrap_err();
        let words = "replaces event 0, whose tool result differs in more than its content";
        assert_eq!(error.problem.to_string(), words, "{at}");
    }
    let mut more = result();
    more["error"] = json!({});
    assert!(pruned(&more.to_string()).is_err());
}

#[test]
fn a_tool_result_replaces_one_tool_result() {
    let result = |op: &str, sources: &str| {
        format!(r#"{},"surfaceOp":{op}{sources}"#, logged("tool/result", &result()))
    };
    let append = || result("\"append\"", "");
    let one = result(r#"{"op":"replace","start":0,"end":0}"#, r#","sourceEventSeqs":[0]"#);
    assert_eq!(check(&[append(), one.clone()]), Ok(vec![1]));
    assert_eq!(
        problem(&[appended(), one]).to_string(),
        "replaces event 0, which is no tool result, with one"
    );
    let two = result(r#"{"op":"replace","start":0,"end":1}"#, r#","sourceEventSeqs":[0,1]"#);
    assert_eq!(rule(&[append(), append(), two]), "is a tool result that replaces several events");
    // Anything else may take the place of several.
    assert_eq!(check(&[append(), append(), replaced(0, 1, "[0,1]")]), Ok(vec![2]));
}

#[test]
fn depth_is_no_danger() {
    let deep = |fill: &str| format!("{}{fill}{}", "[".repeat(200_000), "]".repeat(200_000));
    let with =
        |meta: &str| result().to_string().replacen(r#""c":"é""#, &format!(r#""c":{meta}"#), 1);
    let old = format!(r#""type":"tool/result","data":{},"surfaceOp":"append""#, with(&deep("1")));
    let prune = |meta: &str| {
        let op = r#""surfaceOp":{"op":"replace","start":0,"end":0},"sourceEventSeqs":[0]"#;
        check(&[old.clone(), format!(r#""type":"tool/result","data":{},{op}"#, with(meta))])
    };
    assert_eq!(prune(&deep("1")), Ok(vec![1]));
    assert!(prune(&deep("2")).is_err());
}

proptest! {
    /// The surface against the plain way to keep one: a list that is searched and spliced.
    #[test]
    fn surfaces_are_built_as_a_list_would_be(
        steps in prop::collection::vec((any::<bool>(), 0..8_usize, 0..8_usize), 0..40),
    ) {
        let mut model: Vec<u64> = Vec::new();
        let mut events = Vec::new();
        for (append, start, length) in steps {
            let seq = events.len() as u64;
            if append || model.is_empty() {
                events.push(appended());
                model.push(seq);
                continue;
            }
            let start = start % model.len();
            let end = (start + length).min(model.len() - 1);
            let gone: Vec<u64> = model.splice(start..=end, [seq]).collect();
            events.push(replaced(gone[0], gone[gone.len() - 1], &format!("{gone:?}")));
        }
        prop_assert_eq!(check(&events), Ok(model));
    }
}
