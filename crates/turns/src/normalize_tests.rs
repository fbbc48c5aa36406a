use proptest::prelude::*;
use turnkeep_log::json::Json;

use crate::oracle::{Js, records, spelling};

fn normal(text: &str) -> String {
    let mut out = String::from("before ");
    super::write(Json::parse(text).unwrap(), &mut out);
    out.strip_prefix("before ").unwrap().to_owned()
}

#[test]
fn numbers_are_printed_as_doubles() {
    let cases = [
        ("1.0", "1"),
        ("1e3", "1000"),
        ("-0", "0"),
        ("0", "0"),
        ("-5", "-5"),
        ("9007199254740993", "9007199254740992"),
        ("999999999999999", "999999999999999"),
        ("1e21", "1e+21"),
        ("1e-7", "1e-7"),
        ("1e400", "null"),
        ("-1e400", "null"),
    ];
    for (text, printed) in cases {
        assert_eq!(normal(text), printed);
    }
}

#[test]
fn strings_have_the_fewest_escapes() {
    assert_eq!(normal(r#""\u00e9\/\u2028\u007f""#), "\"é/\u{2028}\u{7f}\"");
    assert_eq!(normal(r#""\u000a\u000b\"\\""#), r#""\n\u000b\"\\""#);
    assert_eq!(normal(r#""\uD83D\uDE00\uD83D""#), r#""😀\ud83d""#);
}

#[test]
fn objects_have_each_key_once_in_the_order_javascript_has() {
    assert_eq!(normal(r#"{"b":1,"a":2,"b":{"c":[]}}"#), r#"{"b":{"c":[]},"a":2}"#);
    assert_eq!(normal(r#"{"b":1,"10":2,"9":3}"#), r#"{"9":3,"10":2,"b":1}"#);
    assert_eq!(
        normal(r#"{"4294967295":1,"01":2,"-1":3,"4294967294":4,"0":5}"#),
        r#"{"0":5,"4294967294":4,"4294967295":1,"01":2,"-1":3}"#
    );
    assert_eq!(normal(r#"{"\u0061":1,"a":2}"#), r#"{"a":2}"#);
    assert_eq!(normal(r#"{"":1,"":2}"#), r#"{"":2}"#);
    assert_eq!(normal("{ }"), "{}");
    assert_eq!(normal("[ 1 , [ ] ,{ \"a\" : [ 2 ] } ]"), r#"[1,[],{"a":[2]}]"#);
}

#[test]
fn what_is_normal_is_copied_as_it_is() {
    for text in [r#"{"start":1796030447737,"end":2}"#, "{}", r#"{"a":"b","c":null,"d":true}"#] {
        assert!(super::is_flat_and_normal(Json::parse(text).unwrap()), "{text}");
        assert_eq!(normal(text), text);
    }
    for text in [
        r#"{"a": 1}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"7":1}"#,
        r#"{"a":-0}"#,
        r#"{"a":[]}"#,
        r#"{"a":"\/"}"#,
        r#"{"\u0061":1}"#,
    ] {
        assert!(!super::is_flat_and_normal(Json::parse(text).unwrap()), "{text}");
    }
}

#[test]
fn no_nesting_is_too_deep_and_none_costs_more_than_its_text() {
    let depth = 200_000;
    let arrays = "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(normal(&arrays), arrays);
    // A key twice on every level: whoever rewrites level by level copies the inner ones each time.
    let objects = r#"{"a":0,"7":0,"a":"#.repeat(depth) + "0" + &"}".repeat(depth);
    let printed = r#"{"7":0,"a":"#.repeat(depth) + "0" + &"}".repeat(depth);
    assert!(normal(&objects) == printed);
}

#[test]
fn many_keys_are_sorted_not_searched() {
    let count = 50_000;
    let members = |keys: &mut dyn Iterator<Item = u32>| {
        let members: Vec<_> = keys.map(|key| format!("\"k{key}\":{key}")).collect();
        format!("{{{}}}", members.join(","))
    };
    let once = members(&mut (0..count));
    let twice = members(&mut (0..count).chain(0..count));
    assert!(normal(&twice) == once);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn prints_what_javascript_prints(text in prop_oneof![spelling::json(), records::record()]) {
        let printed = normal(&text);
        prop_assert_eq!(&printed, &Js::parse(&text).stringify());
        prop_assert_eq!(&normal(&printed), &printed);
    }
}
