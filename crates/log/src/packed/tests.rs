use proptest::prelude::*;
use serde_json::{Value, json};

use super::{lines, pack_batch, unpack};
use crate::{
    event::{Event, EventError},
    id::Seq,
    records::{RecordError, RecordScan},
    text::Text,
};

fn event(text: &str) -> Event {
    Event::parse(&text.into()).unwrap()
}

fn texts(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.text().as_str()).collect()
}

fn scanned(log: &str, from: Seq) -> Vec<Event> {
    let mut scan = RecordScan::new(from);
    scan.feed(&log.into());
    assert_eq!(scan.problem(), None, "{log}");
    scan.take_events()
}

fn text_delta(seq: u64, time: i64, text: &str) -> String {
    format!(
        r#"{{"type":"assistant/chunk","seq":{seq},"time":{time},"data":{{"turn":1,"step":2,"chunk":{{"type":"text-delta","index":0,"text":{text}}}}}}}"#
    )
}

#[test]
fn unpacks_each_kind_of_row() {
    let text = r#"{"type":"text-chunks","seq0":7,"time0":100,"data":{"turn":1,"step":2,"index":0,"dt":[5,-9],"texts":["","a\nb","\ud83d"]}}"#;
    let events = unpack(&text.into()).unwrap();
    assert_eq!(
        texts(&events),
        [
            text_delta(7, 100, r#""""#),
            text_delta(8, 105, r#""a\nb""#),
            text_delta(9, 96, r#""\ud83d""#)
        ]
    );

    let reasoning = r#"{"type":"reasoning-chunks","seq0":0,"time0":-1,"data":{"turn":1,"step":1,"index":3,"dt":[],"texts":["x"]}}"#;
    let events = unpack(&reasoning.into()).unwrap();
    assert_eq!(
        texts(&events),
        [
            r#"{"type":"assistant/chunk","seq":0,"time":-1,"data":{"turn":1,"step":1,"chunk":{"type":"reasoning-delta","index":3,"text":"x"}}}"#
        ]
    );

    let call = r#"{"type":"tool-call-chunks","seq0":1,"time0":2,"data":{"turn":1,"step":1,"index":0,"dt":[0],"id":"c1","name":"bash","args":["{","}"]}}"#;
    let events = unpack(&call.into()).unwrap();
    assert_eq!(
        texts(&events)[1],
        r#"{"type":"assistant/chunk","seq":2,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"c1","name":"bash","argumentsDelta":"}"}}}"#
    );
    let nameless = unpack(&call.replace(r#","name":"bash""#, "").into()).unwrap();
    assert_eq!(
        texts(&nameless)[0],
        r#"{"type":"assistant/chunk","seq":1,"time":2,"data":{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"c1","argumentsDelta":"{"}}}"#
    );
}

#[test]
fn unpacked_events_are_what_parsing_their_text_gives() {
    let rows = [
        r#" { "type" : "text-chunks" , "data":{"texts":["a","b"],"dt":[1.0],"index":1e0,"step":2,"turn":1}, "time0":3,"seq0":4} "#,
        r#"{"type":"tool-call-chunks","seq0":1,"time0":2,"data":{"turn":1,"step":1,"index":0,"dt":[0],"id":"\u0063","name":"\/","args":["{","}"]}}"#,
        r#"{"type":"text-chunks","seq0":9007199254740990,"time0":-9007199254740991,"data":{"turn":-1,"step":1e400,"index":0,"dt":[1],"texts":["","\u00e9"]}}"#,
        r#"{"type":"text-chunks","type":"reasoning-chunks","seq0":1,"time0":2,"data":{"turn":1,"step":1,"index":0,"dt":[],"texts":["a"]}}"#,
    ];
    for row in rows {
        for unpacked in unpack(&row.into()).unwrap() {
            assert_eq!(Event::parse(unpacked.text()).unwrap(), unpacked);
        }
    }
}

#[test]
fn malformed_rows_are_refused() {
    let good = json!({"type":"text-chunks","seq0":4,"time0":50,"data":{"turn":1,"step":1,"index":0,"dt":[2],"texts":["He","y"]}});
    let call = json!({"type":"tool-call-chunks","seq0":4,"time0":50,"data":{"turn":1,"step":1,"index":0,"dt":[2],"id":"c","name":"n","args":["He","y"]}});
    for row in [&good, &call] {
        assert!(unpack(&row.to_string().into()).is_ok());
    }
    let refuse = |row: &Value, pointer: &str, value: Option<Value>| {
        let mut row = row.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = row.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => parent.insert(key.to_owned(), value),
            None => parent.remove(key),
        };
        let result = unpack(&row.to_string().into());
        assert!(matches!(result, Err(RecordError::Row { .. })), "{row}: {result:?}");
    };
    for row in [&good, &call] {
        for pointer in
            ["/seq0", "/time0", "/data", "/data/turn", "/data/step", "/data/index", "/data/dt"]
        {
            for value in [None, Some(Value::Null), Some(json!("1")), Some(json!({}))] {
                refuse(row, pointer, value);
            }
        }
        for member in ["seq", "time", "ignorable", "surfaceOp", "sourceEventSeqs", "note"] {
            refuse(row, &format!("/{member}"), Some(json!(true)));
        }
        refuse(row, "/data/chunk", Some(json!({})));
        for dt in [
            json!([]),
            json!([1, 2]),
            json!([1.5]),
            json!(["1"]),
            json!([9_007_199_254_740_991_u64]),
        ] {
            refuse(row, "/data/dt", Some(dt));
        }
        refuse(row, "/seq0", Some(json!(-1)));
        refuse(row, "/seq0", Some(json!(9_007_199_254_740_991_u64)));
        refuse(row, "/time0", Some(json!(1e300)));
    }
    for texts in
        [None, Some(json!([])), Some(json!(["a"])), Some(json!(["a", 1])), Some(json!("ab"))]
    {
        refuse(&good, "/data/texts", texts.clone());
        refuse(&call, "/data/args", texts);
    }
    for (key, value) in [("id", json!("c")), ("name", json!("n")), ("args", json!(["a"]))] {
        refuse(&good, &format!("/data/{key}"), Some(value));
    }
    refuse(&call, "/data/texts", Some(json!(["a"])));
    refuse(&call, "/data/id", None);
    refuse(&call, "/data/id", Some(json!(1)));
    refuse(&call, "/data/name", Some(Value::Null));
}

#[test]
fn a_row_is_no_event_and_an_event_no_row() {
    let row = text_delta(1, 2, r#""a""#).replace("assistant/chunk", "text-chunks");
    let error = Event::parse(&row.as_str().into()).unwrap_err();
    assert!(matches!(error, EventError::Member { member: "type", .. }));
    assert!(unpack(&row.into()).is_err());
    assert!(unpack(&text_delta(1, 2, r#""a""#).into()).is_err());
}

#[test]
fn a_small_row_cannot_stand_for_endless_text() {
    let id = "i".repeat(4 << 20);
    let args = vec!["\"\""; 1000].join(",");
    let dt = vec!["0"; 999].join(",");
    let row = format!(
        r#"{{"type":"tool-call-chunks","seq0":0,"time0":0,"data":{{"turn":1,"step":1,"index":0,"dt":[{dt}],"id":"{id}","args":[{args}]}}}}"#
    );
    assert_eq!(unpack(&row.into()), Err(RecordError::TooLong));
}

#[test]
fn three_in_a_row_are_packed() {
    let deltas: Vec<Event> = (0..3)
        .zip([10, 7, 4])
        .map(|(seq, time)| event(&text_delta(seq, time, r#""x\ud83d\t""#)))
        .collect();
    assert_eq!(pack_batch(&deltas[..2]), lines(&deltas[..2]));
    assert_eq!(
        pack_batch(&deltas),
        concat!(
            r#"{"type":"text-chunks","seq0":0,"time0":10,"data":{"turn":1,"step":2,"index":0,"dt":[-3,-3],"texts":["x\ud83d\t","x\ud83d\t","x\ud83d\t"]}}"#,
            "\n"
        )
    );
}

/// What one reader gives back as it is, another that re-encodes values would not.
#[test]
fn only_what_every_reader_gives_back_is_packed() {
    let good = text_delta(2, 20, r#""é""#);
    let others = [
        text_delta(2, 20, r#""\u00e9""#),
        text_delta(2, 20, r#""\/""#),
        text_delta(2, 20, r#""\ud83d\ude00""#),
        text_delta(2, 20, r#""\uD83D""#),
        text_delta(2, 20, r#""\u000a""#),
        text_delta(2, 20, r#""\u001F""#),
        good.replace("\"turn\":1", "\"turn\":1.0"),
        good.replace("\"turn\":1", "\"turn\":-0"),
        good.replace("\"turn\":1", "\"turn\":1e400"),
        good.replace("\"turn\":1", "\"turn\":1234567890123456789"),
        good.replace("\"turn\":1", "\"turn\":\"1\""),
        good.replace("\"seq\":2", "\"seq\":2.0"),
        good.replace("\"time\":20", "\"time\":2e1"),
        good.replace("\"index\":0", "\"index\":null"),
        good.replace("\"é\"", "7"),
        good.replace(":{", ": {"),
        good.replace("\"turn\":1,\"step\":2", "\"step\":2,\"turn\":1"),
        good.replace("\"seq\":2,\"time\":20", "\"time\":20,\"seq\":2"),
        good.replace("}}}", "},\"note\":1}}"),
        good.replace("}}}", ",\"note\":1}}}"),
        good.replace("}}}", "}},\"ignorable\":true}"),
        good.replace("\"type\":\"assistant", "\"\\u0074ype\":\"assistant"),
        good.replace(r#""text":"é""#, r#""usage":{}"#),
    ];
    let run = |member: &str| -> Vec<Event> {
        (0..5).map(|seq| event(&member.replace("\"seq\":2", &format!("\"seq\":{seq}")))).collect()
    };
    assert_eq!(pack_batch(&run(&good)).lines().count(), 1);
    for other in others {
        let events = run(&other);
        assert_eq!(pack_batch(&events), lines(&events), "{other}");
    }
    let breaks = [
        good.replace("text-delta", "reasoning-delta"),
        good.replace("\"turn\":1", "\"turn\":2"),
        good.replace("\"step\":2", "\"step\":3"),
        good.replace("\"index\":0", "\"index\":1"),
    ];
    for other in breaks {
        let mut events = run(&good);
        events[2] = event(&other);
        assert_eq!(pack_batch(&events), lines(&events), "{other}");
        assert_eq!(pack_batch(&run(&other)).lines().count(), 1, "{other}");
    }
    let floats = good.replace("\"turn\":1", "\"turn\":1.5e-7");
    let packed = pack_batch(&run(&floats));
    assert_eq!(packed.lines().count(), 1, "JavaScript prints this number so");
}

#[test]
fn runs_end_where_seq_time_call_or_name_jump() {
    let call = |seq: u64, time: i64, call: &str| {
        event(&format!(
            r#"{{"type":"assistant/chunk","seq":{seq},"time":{time},"data":{{"turn":1,"step":1,"chunk":{{"type":"tool-call-delta","index":0,{call},"argumentsDelta":""}}}}}}"#
        ))
    };
    let (c, d) = (r#""id":"c""#, r#""id":"d""#);
    let named = r#""id":"c","name":"n""#;
    let far = 9_007_199_254_740_991;
    let runs = |batch: &[(u64, i64, &str)]| {
        let events: Vec<Event> = batch.iter().map(|&(seq, time, id)| call(seq, time, id)).collect();
        let packed = pack_batch(&events);
        packed.lines().count()
    };
    assert_eq!(runs(&[(0, 0, c), (1, 0, c), (2, 0, c)]), 1);
    assert_eq!(runs(&[(0, 0, c), (1, 0, c), (3, 0, c), (4, 0, c)]), 4);
    assert_eq!(runs(&[(0, 0, c), (1, 0, c), (2, 0, d), (3, 0, d)]), 4);
    assert_eq!(
        runs(&[(0, 0, c), (1, 0, c), (2, 0, c), (3, 0, named), (4, 0, named), (5, 0, named)]),
        2
    );
    assert_eq!(runs(&[(0, -far, c), (1, 0, c), (2, far, c)]), 1);
    assert_eq!(runs(&[(0, -far, c), (1, 1, c), (2, far, c)]), 3);
}

/// A batch of deltas and other events that often make runs, in all the spellings that occur.
fn batches() -> impl Strategy<Value = Vec<Event>> {
    let string = prop_oneof![
        6 => "[a-z \\n\"\\\\\u{e9}\u{1f600}\u{1}\u{7f}\u{2028}]{0,6}".prop_map(|text| json!(text).to_string()),
        1 => prop::sample::select(vec![r#""\u00e9""#, r#""\ud800""#, r#""\uD800""#, r#""\/""#, r#""\ude00\ud83d""#]).prop_map(str::to_owned),
    ];
    let number =
        || prop::sample::select(vec!["1", "1", "1", "2", "1.0", "1.5", "1e21", "1e+21", "-0"]);
    let call = prop::sample::select(vec!["", r#""id":"c","#, r#""id":"c","name":"n","#]);
    let kind = prop::sample::select(vec![
        ("text-delta", "text"),
        ("text-delta", "text"),
        ("reasoning-delta", "text"),
        ("tool-call-delta", "argumentsDelta"),
        ("usage", "usage"),
    ]);
    let block = (kind, number(), number(), number(), call);
    let run = (block, prop::collection::vec((string, -50_i64..50), 1..8));
    (0_u64..5, prop::collection::vec(run, 0..8)).prop_map(|(first, runs)| {
        let mut events = Vec::new();
        let mut time = 1_700_000_000_000_i64;
        for (((kind, key), turn, step, index, call), members) in runs {
            for (string, gap) in members {
                time += gap;
                let seq = first + events.len() as u64;
                events.push(event(&format!(
                    r#"{{"type":"assistant/chunk","seq":{seq},"time":{time},"data":{{"turn":{turn},"step":{step},"chunk":{{"type":"{kind}","index":{index},{call}"{key}":{string}}}}}}}"#
                )));
            }
        }
        events
    })
}

/// Unpacks with another JSON library, which parses and prints every value anew.
fn unpack_by_reencoding(row: &str) -> Vec<String> {
    let row: Value = serde_json::from_str(row).unwrap();
    let (kind, list, key) = match row["type"].as_str().unwrap() {
        "text-chunks" => ("text-delta", "texts", "text"),
        "reasoning-chunks" => ("reasoning-delta", "texts", "text"),
        "tool-call-chunks" => ("tool-call-delta", "args", "argumentsDelta"),
        _ => return vec![row.to_string()],
    };
    let data = &row["data"];
    let mut time = row["time0"].as_i64().unwrap();
    let strings = data[list].as_array().unwrap();
    (0..strings.len())
        .map(|at| {
            if at > 0 {
                time += data["dt"][at - 1].as_i64().unwrap();
            }
            let mut chunk = json!({"type": kind, "index": data["index"]});
            for member in ["id", "name"] {
                if let Some(value) = data.get(member) {
                    chunk[member] = value.clone();
                }
            }
            chunk[key] = strings[at].clone();
            json!({
                "type": "assistant/chunk",
                "seq": row["seq0"].as_u64().unwrap() + at as u64,
                "time": time,
                "data": {"turn": data["turn"], "step": data["step"], "chunk": chunk},
            })
            .to_string()
        })
        .collect()
}

proptest! {
    #[test]
    fn packing_loses_no_byte(events in batches()) {
        let packed = pack_batch(&events);
        prop_assert!(packed.is_empty() || packed.ends_with('\n'));
        let from = events.first().map_or(Seq(0), Event::seq);
        prop_assert_eq!(&scanned(&packed, from), &events);
        prop_assert_eq!(&scanned(&lines(&events), from), &events);
        let kept = packed.lines().filter(|line| !line.contains("\"seq0\"")).collect::<Vec<_>>();
        let all = texts(&events);
        prop_assert!(kept.iter().all(|line| all.contains(line)));
    }

    #[test]
    fn rows_unpack_the_same_elsewhere(
        strings in prop::collection::vec("[a-z \\n\"\\\\\u{e9}\u{1f600}\u{1}\u{7f}\u{2028}]{0,6}", 3..10),
        gaps in prop::collection::vec(-50_i64..50, 10),
    ) {
        let mut time = 5_000;
        let events: Vec<Event> = strings.iter().zip(gaps).zip(0..).map(|((string, gap), seq)| {
            time += gap;
            event(&text_delta(seq, time, &json!(string).to_string().replace("\\u007f", "\u{7f}")))
        }).collect();
        let packed = pack_batch(&events);
        prop_assert_eq!(packed.lines().count(), 1);
        prop_assert_eq!(unpack_by_reencoding(&packed), texts(&events));
    }

    #[test]
    fn unpacking_never_panics(row in "\\{\"type\":\"text-chunks\",\"seq0\":[0-9e.-]{1,20},\"time0\":[0-9e.-]{1,20},\"data\":\\{\"turn\":1,\"step\":1,\"index\":0,\"dt\":\\[[0-9,e.-]{0,20}\\],\"texts\":\\[(\"\",?){0,5}\\]\\}\\}") {
        let _ = unpack(&Text::from(row));
    }
}
