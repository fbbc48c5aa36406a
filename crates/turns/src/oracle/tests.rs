//! The oracle against `serde_json`, where that can follow, and against what Node prints.

use proptest::prelude::*;

use crate::oracle::{Js, spelling};

#[test]
fn prints_what_node_prints() {
    // The right column is the output of `JSON.stringify(JSON.parse(text))` under Node 20.
    let cases = [
        ("1e3", "1000"),
        ("-0", "0"),
        ("1.0", "1"),
        ("9007199254740993", "9007199254740992"),
        ("123456789012345678901", "123456789012345680000"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("1.5e300", "1.5e+300"),
        ("0.000001", "0.000001"),
        ("1e-7", "1e-7"),
        ("-2.50E-8", "-2.5e-8"),
        ("1e400", "null"),
        ("5e-324", "5e-324"),
        (r#""\u00e9\/\u001F\ud83d\ude00\uD83D""#, r#""é/\u001f😀\ud83d""#),
        (
            r#" { "b" : 1, "10":2, "9" : 3, "b": [ ] , "01":4, "4294967295":5,"4294967294":6 } "#,
            r#"{"9":3,"10":2,"4294967294":6,"b":[],"01":4,"4294967295":5}"#,
        ),
    ];
    for (text, printed) in cases {
        assert_eq!(Js::parse(text).stringify(), printed);
    }
}

proptest! {
    #[test]
    fn agrees_with_serde_where_serde_can_follow(text in spelling::json()) {
        let value: Result<serde_json::Value, _> = serde_json::from_str(&text);
        // What it cannot: lone surrogates, infinite numbers, and keys that are array indices.
        let has_index = ["\"0\"", "\"7\"", "\"10\"", "\\u003"].iter().any(|key| text.contains(key));
        if let Ok(value) = value && !has_index {
            let ours: serde_json::Value = serde_json::from_str(&Js::parse(&text).stringify()).unwrap();
            prop_assert_eq!(doubles(ours).to_string(), doubles(value).to_string());
        }
    }
}

/// Numbers as doubles, as JavaScript has them.
fn doubles(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => {
            // The sum turns a negative zero into zero.
            (number.as_f64().unwrap() + 0.0).into()
        }
        serde_json::Value::Array(elements) => elements.into_iter().map(doubles).collect(),
        serde_json::Value::Object(members) => {
            members.into_iter().map(|(key, value)| (key, doubles(value))).collect()
        }
        other => other,
    }
}
