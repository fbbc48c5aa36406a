//! What clients demand of a turn page, as they check it: a page that breaks one of these rules is
//! thrown away by them, without another try.

use serde_json::Value;

/// Checks a turn page as a client would that asked for this many turns, on from this cursor.
#[track_caller]
pub fn check_turn_page(body: &str, turns: usize, before: Option<&str>) -> Value {
    let page: Value = serde_json::from_str(body).expect("a turn page is JSON");
    assert_ne!(page["partial"], true, "a turn page is never partial");
    let records = page["records"].as_array().expect("records are an array");
    for record in records {
        let info = record["info"].as_object().expect("info is an object");
        let id = info.get("id").and_then(Value::as_str).expect("info.id is a string");
        assert!(!id.is_empty(), "info.id is not empty");
        assert!(record.get("parts").is_none_or(Value::is_array), "parts are an array");
    }
    let count = page["turnCount"].as_u64().expect("turnCount is a natural number");
    assert!(count <= turns as u64, "no more turns than asked for");
    let complete = page["complete"].as_bool().expect("complete is a boolean");
    match &page["cursor"] {
        Value::Null => assert!(complete, "an open page has a cursor"),
        Value::String(cursor) => {
            assert!(!complete, "a complete page has no cursor");
            assert!(!cursor.is_empty(), "a cursor is not empty");
            assert!(!records.is_empty(), "an open page has records");
            assert_ne!(Some(cursor.as_str()), before, "a cursor leads on");
        }
        other => panic!("a cursor is a string or null, not {other}"),
    }
    assert_eq!(page["partsProjection"], "slim-v1");
    let keys: Vec<_> = page.as_object().expect("a page is an object").keys().collect();
    assert_eq!(keys, ["records", "turnCount", "cursor", "complete", "partsProjection"]);
    page
}

/// The ids of a page's records, old to new.
pub fn ids(page: &Value) -> Vec<String> {
    let records = page["records"].as_array().expect("records are an array");
    records.iter().map(|record| record["info"]["id"].as_str().unwrap().to_owned()).collect()
}
