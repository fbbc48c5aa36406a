//! Whole records: written out, against the oracle, and as a real server sends them.

use std::{fs, path::Path};

use proptest::prelude::*;
use turnkeep_log::json::Json;

use super::{Parts, Projection};
use crate::oracle::{Js, records, slim, spelling};

const SLIM: Projection = Projection { parts: Parts::Slim, reasoning: true };
const SLIM_WITHOUT_REASONING: Projection = Projection { parts: Parts::Slim, reasoning: false };
const FULL: Projection = Projection { parts: Parts::Full, reasoning: true };
const FULL_WITHOUT_REASONING: Projection = Projection { parts: Parts::Full, reasoning: false };
const ALL: [Projection; 4] = [SLIM, SLIM_WITHOUT_REASONING, FULL, FULL_WITHOUT_REASONING];

fn written(projection: Projection, record: &str) -> String {
    let mut out = String::from("before ");
    projection.write(Json::parse(record).unwrap(), &mut out);
    out.strip_prefix("before ").unwrap().to_owned()
}

#[test]
fn a_record_nothing_is_taken_from_keeps_its_bytes() {
    for record in [
        r#"{ "info" : { "role" : "\u0075ser" , "x" : 1.0 } , "parts" : [ { "type" : "text" } , null ] }"#,
        r#"{"info":{"role":"user"},"parts":[{"type":"tool","state":{"output":"x"}}]}"#,
        r#"{"info":{"role":"user","role":"user"},"parts":[]}"#,
        r#"{"info":{"role":"assistant","summary":true}}"#,
        r#"{"info":null,"parts":{"0":{"type":"tool"}}}"#,
        r#"{"parts":[{"type":"text"}],"info":1,"parts":[{"type":"text","n":1.0}],"info":2}"#,
        r#"[{"type":"tool"}]"#,
        r#""x""#,
        "{}",
    ] {
        for projection in [SLIM, FULL] {
            assert_eq!(written(projection, record), record);
        }
    }
}

#[test]
fn what_is_not_taken_keeps_its_bytes() {
    assert_eq!(
        written(
            SLIM,
            r#"{ "v" : 1.0 , "info" : { "id" : "\u0061" , "summary" : { "title" : 1e0 , "diffs" : [ 1 ] } } , "parts" : [ { "type" : "text" } , { "type" : "tool" } , 2 ] , "z" : "\/" }"#
        ),
        r#"{ "v" : 1.0 , "info" : { "id" : "\u0061" , "summary" : { "title" : 1e0 , "diffs" : [],"diffCount":0,"hasDiffs":false } } , "parts" : [ { "type" : "text" } , {"type":"tool","slim":true} , 2 ] , "z" : "\/" }"#
    );
}

#[test]
fn the_author_decides_wherever_it_stands() {
    let tool = r#"{"type":"tool","id":"t"}"#;
    let slim_tool = r#"{"id":"t","type":"tool","slim":true}"#;
    let users = [
        r#"{"role":"user"}"#,
        r#"{"clientRole":"user"}"#,
        r#"{"clientRole":"user","role":"assistant"}"#,
        r#"{"role":"assistant","role":"user"}"#,
        r#"{"clientRole":null,"role":"user"}"#,
        r#"{"clientRole":1,"role":"us\u0065r"}"#,
    ];
    let others = [
        r#"{"role":"assistant"}"#,
        r#"{"clientRole":"assistant","role":"user"}"#,
        r#"{"clientRole":"","role":"user"}"#,
        r#"{"role":"User"}"#,
        r#"{"role":["user"]}"#,
        "{}",
        r#"["user"]"#,
        r#""user""#,
    ];
    let info_first = |info: &str, part: &str| format!(r#"{{"info":{info},"parts":[{part}]}}"#);
    let parts_first = |info: &str, part: &str| format!(r#"{{"parts":[{part}],"info":{info}}}"#);
    for info in users {
        assert_eq!(written(SLIM, &info_first(info, tool)), info_first(info, tool));
        assert_eq!(written(SLIM, &parts_first(info, tool)), parts_first(info, tool));
    }
    for info in others {
        assert_eq!(written(SLIM, &info_first(info, tool)), info_first(info, slim_tool));
        assert_eq!(written(SLIM, &parts_first(info, tool)), parts_first(info, slim_tool));
    }
    assert_eq!(
        written(SLIM, &format!(r#"{{"parts":[{tool}]}}"#)),
        format!(r#"{{"parts":[{slim_tool}]}}"#)
    );
}

#[test]
fn a_repeated_key_counts_once_and_last() {
    assert_eq!(
        written(
            SLIM,
            r#"{"parts":[{"type":"file","url":"SECRET"}],"a":1.0,"info":{"role":"user"},"parts":[{"type":"tool"}],"info":{"role":"x"}}"#
        ),
        r#"{"parts":[{"type":"tool","slim":true}],"a":1,"info":{"role":"x"}}"#
    );
    assert_eq!(
        written(
            FULL_WITHOUT_REASONING,
            r#"{"parts":[{"type":"reasoning"}],"parts":[{"type":"reasoning"},1.0]}"#
        ),
        r#"{"parts":[1]}"#
    );
}

#[test]
fn reasoning_is_taken_out_of_any_record() {
    let reasoning = r#"{"type":"reasoning","text":"T"}"#;
    let cases = [
        (format!("[{reasoning}]"), "[]".to_owned()),
        (format!("[ {reasoning} ]"), "[  ]".to_owned()),
        (format!("[ {reasoning} , {reasoning} ]"), "[  ]".to_owned()),
        (format!("[ {reasoning} , 1.0 ]"), "[ 1.0 ]".to_owned()),
        (format!("[ 1.0 , {reasoning} ]"), "[ 1.0 ]".to_owned()),
        (format!("[ 1.0 , {reasoning} , 2.0 ]"), "[ 1.0 , 2.0 ]".to_owned()),
        (
            format!("[{reasoning},{reasoning},1,{reasoning},{reasoning},2,3,{reasoning}]"),
            "[1,2,3]".to_owned(),
        ),
    ];
    for role in ["user", "assistant"] {
        let record = |parts: &str| {
            format!(r#"{{"info":{{"role":"{role}","tokens":{{"reasoning":42}}}},"parts":{parts}}}"#)
        };
        for (parts, kept) in &cases {
            for projection in [FULL_WITHOUT_REASONING, SLIM_WITHOUT_REASONING] {
                assert_eq!(written(projection, &record(parts)), record(kept));
            }
            assert_eq!(written(FULL, &record(parts)), record(parts));
        }
    }
    // Between parts that are themselves rewritten.
    assert_eq!(
        written(
            SLIM_WITHOUT_REASONING,
            &format!(
                r#"{{"parts":[{reasoning},{{"type":"tool"}},{reasoning},{{"type":"file"}},"x"]}}"#
            )
        ),
        r#"{"parts":[{"type":"tool","slim":true},{"type":"file","slim":true},"x"]}"#
    );
    // A full record is full but for that.
    let full = r#"{"info":{},"parts":[{"type":"tool","state":{"output":"x"}},{"type":"file","url":"data:,x"}]}"#;
    assert_eq!(written(FULL_WITHOUT_REASONING, full), full);
}

#[test]
fn big_things_do_not_come_out() {
    let patch = "+x\\n".repeat(60_000);
    let record = format!(
        r#"{{"info":{{"id":"m","role":"user","summary":{{"title":"t","diffs":[{{"file":"a","patch":"{patch}","additions":1}}]}}}},"parts":[]}}"#
    );
    for projection in ALL {
        assert_eq!(
            written(projection, &record),
            r#"{"info":{"id":"m","role":"user","summary":{"title":"t","diffs":[{"file":"a","additions":1}],"diffCount":1,"hasDiffs":true}},"parts":[]}"#
        );
    }
}

#[test]
fn nesting_is_bounded_by_memory_alone() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let record = format!(
        r#"{{"parts":[{{"type":"tool","id":{deep},"state":{{"input":{deep},"time":{deep},"metadata":{{"files":{deep}}}}}}}],"x":{deep}}}"#
    );
    let expected = format!(
        r#"{{"parts":[{{"id":{deep},"type":"tool","state":{{"time":{deep}}},"slim":true}}],"x":{deep}}}"#
    );
    assert!(written(SLIM, &record) == expected);
}

/// Compares with the oracle: as values in order, and to the byte what the projection promises to
/// the byte.
fn check(projection: Projection, record: &str) {
    let out = written(projection, record);
    let input = Js::parse(record);
    let expected = slim::project(projection, &input);
    let output = Json::parse(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(Js::parse(&out).stringify(), expected.record.stringify(), "{record}");
    if expected.record.stringify() == input.stringify() {
        assert_eq!(out, Json::parse(record).unwrap().text());
    }
    if let Some(parts) = Json::parse(record).unwrap().get("parts").and_then(Json::elements)
        && is_unambiguous(record)
    {
        let expected = parts.zip(&expected.parts).filter_map(|(text, part)| {
            let (part, is_slim) = part.as_ref()?;
            Some(if *is_slim { part.stringify() } else { text.text().to_owned() })
        });
        let found = output.get("parts").unwrap().elements().unwrap();
        let found: Vec<_> = found.map(|part| part.text().to_owned()).collect();
        assert_eq!(found, expected.collect::<Vec<_>>(), "{record}");
    }
}

/// Whether no key that a projection depends on stands twice in the same object.
fn is_unambiguous(record: &str) -> bool {
    let repeats = |value: Option<Json<'_>>, keys: &[&str]| {
        value.and_then(Json::members).is_some_and(|members| {
            let names: Vec<_> = members.map(|member| member.key).collect();
            keys.iter().any(|key| names.iter().filter(|name| **name == **key).count() > 1)
        })
    };
    let record = Json::parse(record).unwrap();
    !repeats(Some(record), &["info", "parts"])
        && !repeats(record.get("info"), &["summary"])
        && !repeats(record.path(&["info", "summary"]), &["diffs", "diffCount", "hasDiffs"])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn projects_what_the_oracle_projects(record in records::record()) {
        for projection in ALL {
            check(projection, &record);
        }
    }

    #[test]
    fn any_json_goes_through_and_stays_json(text in prop_oneof![spelling::json(), records::info(), records::diffs()]) {
        for projection in ALL {
            check(projection, &text);
        }
    }

    #[test]
    fn text_that_is_nearly_a_record_never_panics(
        record in records::record(),
        cut in any::<prop::sample::Index>(),
        patch in prop::sample::select(vec!["", "\"", "\\u", "{", "[", "}", "1", "null", ",\"parts\":["]),
    ) {
        let mut text: Vec<char> = record.chars().collect();
        let at = cut.index(text.len() + 1);
        text.splice(at..(at + 1).min(text.len()), patch.chars());
        let text: String = text.into_iter().collect();
        if let Ok(record) = Json::parse(&text) {
            for projection in ALL {
                let mut out = String::new();
                projection.write(record, &mut out);
                prop_assert!(Json::parse(&out).is_ok(), "{}", out);
            }
        }
    }
}

#[test]
fn captures_of_a_real_server_project_as_the_oracle_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opencode");
    let (mut lists, mut records, mut slim_parts) = (0, 0, 0);
    for directory in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        for file in
            fs::read_dir(&directory).into_iter().flatten().map(|entry| entry.unwrap().path())
        {
            // The pages beside it have the same records.
            if file.ends_with("messages-full.json") {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let body = Json::parse(&text).unwrap();
            let single = body.get("info").map(|_| body);
            lists += usize::from(single.is_none());
            for record in body.elements().into_iter().flatten().chain(single) {
                records += 1;
                for projection in ALL {
                    check(projection, record.text());
                }
                slim_parts += written(SLIM, record.text()).matches("\"slim\":true").count();
            }
        }
    }
    assert!(lists >= 30 && records > 1000 && slim_parts > 1000, "{lists} {records} {slim_parts}");
}

#[test]
fn an_attached_image_comes_out_as_its_size() {
    let path = "../../tests/fixtures/opencode/c-kinds/messages.json";
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let records = Json::parse(&text).unwrap().elements().unwrap();
    let slim: Vec<_> = records.map(|record| written(SLIM, record.text())).collect();
    assert!(slim.iter().all(|record| !record.contains("base64")));
    let image = slim.iter().find_map(|record| {
        let parts = Json::parse(record).unwrap().get("parts")?.elements()?;
        let mut images = parts
            .filter(|part| part.get("mime").is_some_and(|mime| mime.text() == "\"image/png\""));
        images.next().map(|image| image.text().to_owned())
    });
    assert_eq!(
        image.unwrap(),
        r#"{"id":"prt_22bc4feb7002HjHHLtyQncNwYA","sessionID":"ses_dd43b0155ffe8pB45694i1f5Ja","messageID":"msg_22bc4feb4001PU54CfQi9QEOPK","type":"file","mime":"image/png","filename":"gradient.png","byteSize":980,"width":24,"height":24,"slim":true}"#
    );
}
