use serde_json::{Value, json};

use super::without_reasoning;

const R: &str = r#"{"type":"reasoning","text":"\u0041"}"#;
const T: &str = r#"{ "type":"text","text":"say \"reasoning\"", "n": 1.0e2 }"#;

fn parts(parts: &[&str]) -> String {
    format!(
        r#"{{"info":{{"id":"m","tokens":{{"reasoning":3}}}}, "parts" : [ {} ]}}"#,
        parts.join(" , ")
    )
}

#[test]
fn reasoning_is_cut_and_all_else_is_byte_for_byte() {
    let left = |before: &[&str]| without_reasoning(&parts(before));
    assert_eq!(left(&[T, T]), None);
    assert_eq!(left(&[]), None);
    assert_eq!(left(&[R]).unwrap(), parts(&[""]));
    assert_eq!(left(&[R, R]).unwrap(), parts(&[""]));
    assert_eq!(left(&[R, T]).unwrap(), parts(&[T]));
    assert_eq!(left(&[T, R]).unwrap(), parts(&[T]));
    assert_eq!(left(&[T, R, T]).unwrap(), parts(&[T, T]));
    assert_eq!(left(&[R, T, R, R, T, R]).unwrap(), parts(&[T, T]));
}

#[test]
fn every_form_that_holds_messages_is_known() {
    let (with, without) = (parts(&[T, R]), parts(&[T]));
    for form in ["[M]", "[1,null,M,[],M]", r#"{"records":[M,M],"x":1}"#, r#"{"record":M}"#, "M"] {
        let (with, without) = (form.replace('M', &with), form.replace('M', &without));
        assert_eq!(without_reasoning(&with).as_deref(), Some(&*without), "{form}");
    }
    for other in ["null", "1", r#""x""#, "{}", "[]", "not JSON", "", r#"{"other":[M]}"#, "[[M]]"] {
        assert_eq!(without_reasoning(&other.replace('M', &with)), None, "{other}");
    }
}

#[test]
fn what_only_looks_like_reasoning_stays() {
    let odd = [r#""reasoning""#, r#"{"type":["reasoning"]}"#, r#"{"kind":"reasoning"}"#, "null"];
    assert_eq!(without_reasoning(&parts(&odd)), None);
    assert_eq!(without_reasoning(r#"[{"parts":{"type":"reasoning"}}]"#), None);
}

#[test]
fn escapes_and_repeated_keys_hide_nothing() {
    let escaped = r#"{"\u0074ype":"reasonin\u0067"}"#;
    assert_eq!(without_reasoning(&parts(&[T, escaped])).unwrap(), parts(&[T]));
    let twice = format!(r#"[{{"parts":[{R}],"parts":[{R},{T}]}}]"#);
    assert_eq!(without_reasoning(&twice).unwrap(), format!(r#"[{{"parts":[],"parts":[{T}]}}]"#));
}

#[test]
fn random_lists_lose_their_reasoning_and_nothing_else() {
    let mut seed = 7_u32;
    let mut next = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) % below
    };
    for _ in 0..500 {
        let records: Vec<_> = (0..next(5))
            .map(|_| {
                let kinds = ["text", "reasoning", "tool"];
                let part =
                    |at| json!({ "type": kinds[next(3) as usize], "at": at, "more": [1, {}] });
                json!({ "info": {}, "parts": (0..5).map(part).collect::<Vec<_>>() })
            })
            .collect();
        let mut expected = records.clone();
        for record in &mut expected {
            record["parts"].as_array_mut().unwrap().retain(|part| part["type"] != "reasoning");
        }
        let with = Value::from(records).to_string();
        let without = without_reasoning(&with).unwrap_or(with);
        assert_eq!(without, Value::from(expected).to_string());
    }
}
