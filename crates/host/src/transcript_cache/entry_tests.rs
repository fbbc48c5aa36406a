use serde_json::{Value, json};
use turnkeep_log::json::Json;

use super::{Completeness, Entry, Reasoning, Scope};

fn entry(info: &str, parts: &str) -> Entry {
    Entry::new("m".to_owned(), Json::parse(info).unwrap(), Json::parse(parts).unwrap()).unwrap()
}

fn told(entry: Entry, reasoning: Reasoning) -> Value {
    let scope = Scope {
        transport: "local".to_owned(),
        generation: -7,
        directory: "/w \"x\"".to_owned(),
        session: "s".to_owned(),
    };
    let mut text = String::new();
    entry.into_record(5).write(&scope, reasoning, &mut text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn hash_is_64_hex_digits_of_the_canonical_text() {
    let one = entry(r#"{"id":"m","n":1.0}"#, r#"[{"b":"\u00e9","a":2}]"#);
    let other = entry(r#" {"n":1, "id":"m"} "#, r#"[ {"a":2,"b":"é"} ]"#);
    assert_eq!((&one.hash, one.bytes), (&other.hash, other.bytes));
    // `printf '…' | sha256sum` of {"info":{"id":"m","n":1},"parts":[{"a":2,"b":"é"}]}
    assert_eq!(one.hash, "20cab385d24daeb632194902c3b37d28ea4b8643cfad1959a037bd14e6a0f9f7");
    assert_eq!(one.bytes, 52);
    assert_ne!(one.hash, entry(r#"{"id":"m","n":1}"#, r#"[{"a":2,"b":"e"}]"#).hash);
    assert_eq!(one.info, r#"{"id":"m","n":1.0}"#, "it is kept as it came");
}

#[test]
fn open_assistant_is_not_settled_finish_or_completed_is() {
    for (info, is_settled) in [
        (r#"{"role":"user"}"#, true),
        (r"{}", true),
        (r#"{"role":1}"#, true),
        (r#"{"role":"assistant"}"#, false),
        (r#"{"role":"assistant","time":{"completed":0}}"#, true),
        (r#"{"role":"assistant","time":{"completed":"1"}}"#, false),
        (r#"{"role":"assistant","finish":"stop"}"#, true),
        (r#"{"role":"assistant","finish":""}"#, false),
        (r#"{"role":"assistant","finish":true}"#, false),
        (r#"{"role":"assistant","clientRole":"user"}"#, true),
        (r#"{"role":"user","clientRole":"assistant"}"#, false),
        (r#"{"role":"assistant","clientRole":null}"#, false),
        (r#"{"role":"assistant","clientRole":7}"#, true),
    ] {
        assert_eq!(entry(info, "[]").is_settled, is_settled, "{info}");
    }
}

#[test]
fn created_is_0_unless_it_is_a_finite_number() {
    for (info, created) in [
        (r#"{"time":{"created":12}}"#, 12.0),
        (r#"{"time":{"created":-1.5}}"#, -1.5),
        (r#"{"time":{"created":"12"}}"#, 0.0),
        (r#"{"time":{"created":1e999}}"#, 0.0),
        (r#"{"time":7}"#, 0.0),
        (r"{}", 0.0),
    ] {
        assert!((entry(info, "[]").created - created).abs() < 1e-9, "{info}");
    }
}

#[test]
fn a_message_is_slim_when_a_part_says_so() {
    let slim = |parts| entry("{}", parts).completeness == Completeness::Slim;
    assert!(slim(r#"[{"type":"text"},{"slim":true}]"#));
    for full in [r"[]", r#"[{"slim":1}]"#, r#"[{"slim":"true"}]"#, r#"[[{"slim":true}],true,null]"#]
    {
        assert!(!slim(full), "{full}");
    }
}

#[test]
fn a_record_says_all_there_is_to_know_of_it() {
    let parts =
        json!([{ "type": "tool", "slim": true }, { "type": "text", "text": "\u{2028}" }, 3]);
    let info = json!({ "id": "m", "time": { "created": 12.5 } });
    let entry = entry(&info.to_string(), &parts.to_string());
    let (hash, bytes) = (entry.hash.clone(), entry.bytes);
    assert_eq!(entry.part_completeness(), r#"["slim","full","full"]"#);
    let expected = json!({
        "scope": {
            "transport": "local", "generation": -7, "directory": "/w \"x\"", "sessionID": "s",
        },
        "messageID": "m",
        "info": info,
        "parts": parts,
        "partCompleteness": ["slim", "full", "full"],
        "completeness": "slim",
        "contentHash": hash,
        "byteSize": bytes,
        "lastAccessedAt": 5,
        "sortKey": { "created": 12.5, "messageID": "m" },
    });
    let told = told(entry, Reasoning::Include);
    assert_eq!(told, expected);
    assert!(told.as_object().unwrap().keys().eq(expected.as_object().unwrap().keys()));
}

#[test]
fn part_completeness_lines_up_with_parts_without_reasoning() {
    let parts = r#"[{"type":"reasoning","slim":true}, {"type":"text"},{"type":"reasoning"},7]"#;
    let all = told(entry("{}", parts), Reasoning::Include);
    assert_eq!(all["partCompleteness"], json!(["slim", "full", "full", "full"]));
    let some = told(entry("{}", parts), Reasoning::LeaveOut);
    assert_eq!(some["parts"], json!([{ "type": "text" }, 7]));
    assert_eq!(some["partCompleteness"], json!(["full", "full"]));
    // These are of what is kept.
    for key in ["completeness", "contentHash", "byteSize"] {
        assert_eq!(some[key], all[key], "{key}");
    }
    let none = told(entry("{}", r#"[{"type":"reasoning"}]"#), Reasoning::LeaveOut);
    assert_eq!((&none["parts"], &none["partCompleteness"]), (&json!([]), &json!([])));
}
