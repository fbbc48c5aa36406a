use proptest::prelude::*;

use super::{CompleteError, Event, EventDraft, EventError};
use crate::{
    id::Seq,
    json::{Json, JsonText},
    text::Text,
};

fn parse(text: &str) -> Result<Event, EventError> {
    Event::parse(&text.into())
}

fn complete(text: &str, seq: u64) -> String {
    let draft = EventDraft::parse(&text.into()).unwrap();
    draft.complete(Seq(seq), 99).unwrap().text().as_str().to_owned()
}

fn json(text: &str) -> JsonText {
    JsonText::parse(&text.into()).unwrap()
}

#[test]
fn an_event_takes_little_room_of_its_own() {
    assert!(size_of::<Event>() <= 88, "{}", size_of::<Event>());
}

#[test]
fn an_event_shows_its_envelope_and_keeps_its_text() {
    let text = r#"{"data":{"b":1,"a":1e400,"b":-0},"note":null,"type":"user\/message","time":-7,"seq":3,"surfaceOp":{"op":"replace","start":0,"end":1},"sourceEventSeqs":[1,0]}"#;
    let event = parse(&format!("\n\t{text}\r\n ")).unwrap();
    assert_eq!(event.text().as_str(), text);
    assert_eq!(event.event_type(), "user/message");
    assert_eq!((event.seq(), event.time(), event.ignorable()), (Seq(3), -7, false));
    assert_eq!(event.data().text(), r#"{"b":1,"a":1e400,"b":-0}"#);
    let op = event.surface_op().unwrap();
    assert_eq!(op.get("end").and_then(Json::as_natural), Some(1));
    assert_eq!(event.source_event_seqs().unwrap().text(), "[1,0]");

    let bare = parse(r#"{"type":"","seq":0,"time":0,"data":null}"#).unwrap();
    assert_eq!((bare.event_type(), bare.data().is_null()), ("", true));
    assert_eq!((bare.surface_op(), bare.source_event_seqs()), (None, None));
}

#[test]
fn only_true_makes_an_event_ignorable() {
    let event = |ignorable: &str| {
        parse(&format!(r#"{{"type":"a","seq":0,"time":0,"data":1,"ignorable":{ignorable}}}"#))
    };
    assert!(event("true").unwrap().ignorable());
    for other in ["false", "null", "1", "\"true\""] {
        assert!(!event(other).unwrap().ignorable());
    }
}

#[test]
fn an_event_is_one_line_whatever_it_came_from() {
    let pretty = "{\n  \"type\": \"a b\",\r\n  \"seq\": 0,\n  \"time\": 1,\n  \"data\": [ \" x\\n \", 1.50 ]\n}\n";
    let event = parse(pretty).unwrap();
    assert_eq!(event.text().as_str(), r#"{"type":"a b","seq":0,"time":1,"data":[" x\n ",1.50]}"#);
    assert!(parse("{\n").is_err());
}

#[test]
fn missing_members_go_where_writers_have_them() {
    let whole = r#"{"type":"a","seq":4,"time":99,"data":{}}"#;
    let vectors = [
        (r#"{"type":"a","data":{}}"#, whole),
        (r#"{"type":"a","seq":4,"data":{}}"#, whole),
        (r#"{"type":"a","time":99,"data":{}}"#, whole),
        (whole, whole),
        (r#"{"type":"a","time":5,"data":{}}"#, r#"{"type":"a","seq":4,"time":5,"data":{}}"#),
        (
            r#" { "data" : 1 , "type" : "a" } "#,
            r#"{ "data" : 1 , "type" : "a","seq":4,"time":99 }"#,
        ),
        (r#"{"data":1,"seq":4.0,"type":"a"}"#, r#"{"data":1,"seq":4.0,"time":99,"type":"a"}"#),
        (
            r#"{"type":"b","type":"a","data":-0,"ignorable":true}"#,
            r#"{"type":"b","type":"a","seq":4,"time":99,"data":-0,"ignorable":true}"#,
        ),
        ("{\n\"type\": \"a\",\n\"data\": {}\n}", whole),
        (
            r#"{"type":"a","data":"\ud83d","sourceEventSeqs":[[0,2]]}"#,
            r#"{"type":"a","seq":4,"time":99,"data":"\ud83d","sourceEventSeqs":[0,1,2]}"#,
        ),
    ];
    for (draft, event) in vectors {
        assert_eq!(complete(draft, 4), event);
    }
}

#[test]
fn a_draft_keeps_to_the_place_it_names() {
    let draft = EventDraft::parse(&r#"{"type":"a","seq":4,"data":1}"#.into()).unwrap();
    assert_eq!(draft.seq(), Some(Seq(4)));
    let error = draft.complete(Seq(5), 0).unwrap_err();
    assert_eq!(error, CompleteError::Seq { expected: Seq(5), given: Seq(4) });
    assert_eq!(error.to_string(), "event carries seq 4 where 5 comes next");
}

#[test]
fn drafts_that_can_become_no_event_are_refused() {
    let refused = [
        ("type", r#"{"data":1}"#),
        ("type", r#"{"type":null,"data":1}"#),
        ("type", r#"{"type":"text-chunks","data":1}"#),
        ("data", r#"{"type":"a"}"#),
        ("seq", r#"{"type":"a","seq":null,"data":1}"#),
        ("seq", r#"{"type":"a","seq":-0,"data":1}"#),
        ("time", r#"{"type":"a","time":"now","data":1}"#),
        ("ignorable", r#"{"type":"a","data":1,"ignorable":false}"#),
    ];
    for (name, text) in refused {
        let error = EventDraft::parse(&text.into()).unwrap_err();
        assert!(matches!(error, EventError::Member { member, .. } if member == name), "{text}");
    }
    assert!(matches!(EventDraft::parse(&"[1".into()), Err(EventError::NotJson(_))));
    assert_eq!(EventDraft::parse(&"1".into()).unwrap_err(), EventError::NotAnObject);

    let late = [
        (EventDraft::new("a", &json("1")), 1 << 53, 0, "seq"),
        (EventDraft::new("a", &json("1")), 1, i64::MIN, "time"),
        (EventDraft::new("tool-call-chunks", &json("1")), 1, 0, "type"),
        (
            EventDraft::new("a", &json("1")).source_event_seqs(&[Seq(0), Seq(1)]),
            1,
            0,
            "sourceEventSeqs",
        ),
    ];
    for (draft, seq, time, name) in late {
        let error = draft.complete(Seq(seq), time).unwrap_err();
        assert!(
            matches!(error, CompleteError::Event(EventError::Member { member, .. }) if member == name),
            "{error:?}"
        );
    }
}

#[test]
fn drafts_are_built_as_writers_spell_them() {
    let message = json("{\"id\":\n\"m\"}");
    let event = EventDraft::new("user/message", &message)
        .source_event_seqs(&[Seq(2), Seq(3)])
        .surface_op(&json("\"append\""))
        .complete(Seq(8), 5)
        .unwrap();
    assert_eq!(
        event.text().as_str(),
        r#"{"type":"user/message","seq":8,"time":5,"data":{"id":"m"},"sourceEventSeqs":[2,3],"surfaceOp":"append"}"#
    );
    let event = EventDraft::new("a\"b\n", &json("[1, 2]")).ignorable().complete(Seq(0), 0).unwrap();
    assert_eq!(
        event.text().as_str(),
        r#"{"type":"a\"b\n","seq":0,"time":0,"data":[1, 2],"ignorable":true}"#
    );
    assert_eq!(event.event_type(), "a\"b\n");
    assert!(event.ignorable());
}

proptest! {
    #[test]
    fn completing_changes_nothing_but_what_was_missing(
        data in "[ -~]{0,20}",
        order in Just(vec![0, 1, 2, 3, 4]).prop_shuffle(),
        seq in any::<bool>(),
        time in any::<bool>(),
        space in "[ \t]{0,2}",
    ) {
        let data = serde_json::Value::from(data).to_string();
        let members = [
            Some(r#""type":"a""#.to_owned()),
            seq.then(|| r#""seq":7"#.to_owned()),
            time.then(|| r#""time":99"#.to_owned()),
            Some(format!(r#""data":{data}"#)),
            Some(r#""note":[true]"#.to_owned()),
        ];
        let members: Vec<_> = order.iter().filter_map(|&at| members[at].clone()).collect();
        let text = format!("{{{}}}", members.join(&format!("{space},{space}")));
        let event = EventDraft::parse(&text.as_str().into()).unwrap().complete(Seq(7), 99).unwrap();
        prop_assert_eq!((event.event_type(), event.seq(), event.time()), ("a", Seq(7), 99));
        prop_assert_eq!(event.data().text(), data);
        let mut left = event.text().as_str().to_owned();
        for (there, member) in [(seq, ",\"seq\":7"), (time, ",\"time\":99")] {
            if !there {
                left = left.replacen(member, "", 1);
            }
        }
        prop_assert_eq!(left, text);
        prop_assert_eq!(Event::parse(event.text()).unwrap(), event);
    }

    #[test]
    fn any_text_is_an_event_or_an_error(text in "\\PC{0,60}") {
        let text = Text::from(text);
        let _ = (Event::parse(&text), EventDraft::parse(&text));
    }
}
