//! The scanner against `serde_json` as an independent judge.

use proptest::prelude::*;

use super::{Json, Kind, Walk, write_compact, write_number, write_str, write_units};

#[test]
fn accepts_and_refuses_what_json_parse_does() {
    let good = [
        "null",
        " true ",
        "-0",
        "0.5e+10",
        "1E5",
        "\"\"",
        "\"\\u00e9\\ud83d\"",
        "[]",
        "{}",
        "[1,[2,{\"a\":[]}],\"x\"]",
        "{\"a\":{},\"a\":[]}",
        "\t\r\n{ \"a\" : 1 , \"b\" : 2 }\n",
    ];
    for text in good {
        assert!(Json::parse(text).is_ok(), "{text}");
    }
    let bad = [
        "",
        " ",
        "nul",
        "+1",
        "01",
        "1.",
        ".5",
        "1e",
        "-",
        "\"",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12",
        "[1,]",
        "[,1]",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "[1 2]",
        "[1}",
        "{]",
        "1 2",
        "\u{feff}1",
        "\u{a0}1",
        "[\"\u{1}\"]",
    ];
    for text in bad {
        assert!(Json::parse(text).is_err(), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err(), "{text}");
    }
}

#[test]
fn depth_is_bounded_by_memory_alone() {
    let depth = 200_000;
    let text = "[".repeat(depth) + &"]".repeat(depth);
    let value = Json::parse(&text).unwrap();
    assert_eq!(value.elements().unwrap().count(), 1);
    assert!(Json::parse(&"[".repeat(depth)).is_err());
}

#[test]
fn containers_close_in_the_order_they_opened() {
    for depth in [1, 2, 63, 64, 65, 127, 128, 129, 1000] {
        let (open, close): (Vec<&str>, Vec<&str>) =
            (0..depth).map(|at| if at % 3 == 0 { ("{\"a\":", "}") } else { ("[", "]") }).unzip();
        let close: Vec<&str> = close.into_iter().rev().collect();
        let text = open.concat() + "1" + &close.concat();
        assert!(Json::parse(&text).is_ok(), "{text}");
        for at in 0..depth {
            let mut wrong = close.clone();
            wrong[at] = if wrong[at] == "}" { "]" } else { "}" };
            assert!(Json::parse(&(open.concat() + "1" + &wrong.concat())).is_err());
        }
    }
}

#[test]
fn members_keep_order_and_duplicates_and_get_takes_the_last() {
    let value = Json::parse(r#" {"b" : 1, "\u0061":[1,{"x":"}"}], "b":"two" } "#).unwrap();
    let keys: Vec<_> = value.members().unwrap().map(|member| member.key.raw()).collect();
    assert_eq!(keys, ["b", "\\u0061", "b"]);
    assert_eq!(value.get("b").unwrap().text(), "\"two\"");
    assert_eq!(value.path(&["a"]).unwrap().text(), r#"[1,{"x":"}"}]"#);
    assert_eq!(value.get("c"), None);
    assert_eq!(Json::parse("[1]").unwrap().get("b"), None);
}

#[test]
fn numbers_are_javascript_numbers() {
    let integer = |text| Json::parse(text).unwrap().as_safe_integer();
    assert_eq!(integer("1.0"), Some(1));
    assert_eq!(integer("1e3"), Some(1000));
    assert_eq!(integer("-0"), Some(0));
    assert_eq!(integer("999999999999999"), Some(999_999_999_999_999));
    assert_eq!(integer("1234567890123456"), Some(1_234_567_890_123_456));
    assert_eq!(integer("-7"), Some(-7));
    assert_eq!(integer("9007199254740991"), Some(9_007_199_254_740_991));
    assert_eq!(integer("9007199254740992"), None);
    assert_eq!(integer("1.5"), None);
    assert_eq!(integer("1e400"), None);
    assert_eq!(integer("\"1\""), None);
    assert_eq!(Json::parse("-0").unwrap().as_natural(), None);
    assert_eq!(Json::parse("7").unwrap().as_natural(), Some(7));
    assert_eq!(Json::parse("1e400").unwrap().as_f64(), Some(f64::INFINITY));
}

#[test]
fn strings_are_code_units() {
    let string = Json::parse(r#""a\ud83d\ude00\ud83d\n\u0000é""#).unwrap().as_str().unwrap();
    assert_eq!(string.utf16_len(), 7);
    assert_eq!(string.decode(), None);
    assert_eq!(string.decode_lossy(), "a😀\u{fffd}\n\0é");
    let mut out = String::new();
    write_units(&mut out, string.units());
    assert_eq!(out, r#""a😀\ud83d\n\u0000é""#);
    let equal = |literal, text| Json::parse(literal).unwrap().as_str().unwrap() == text;
    assert!(equal(r#""\u0041b""#, "Ab") && equal(r#""\\""#, "\\") && equal(r#""""#, ""));
    assert!(!equal(r#""\\""#, r"\\") && !equal(r#""\n""#, r"\n") && !equal(r#""a""#, "ab"));
}

#[test]
fn truthiness_is_javascripts() {
    let truthy = |text| Json::parse(text).unwrap().is_truthy();
    for text in ["true", "1", "-1e-3", "\"false\"", "\" \"", "[]", "{}"] {
        assert!(truthy(text), "{text}");
    }
    for text in ["false", "0", "-0", "0.0", "\"\"", "null"] {
        assert!(!truthy(text), "{text}");
    }
}

#[test]
fn numbers_print_as_javascript_prints_them() {
    let cases = [
        (1.0, "1"),
        (1000.0, "1000"),
        (-0.0, "0"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (123_456_789_012_345_680_000.0, "123456789012345680000"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (0.1, "0.1"),
        (4.435_375_000_000_022, "4.435375000000022"),
        (f64::INFINITY, "null"),
        (9_007_199_254_740_993.0, "9007199254740992"),
    ];
    for (number, printed) in cases {
        let mut out = String::new();
        write_number(&mut out, number);
        assert_eq!(out, printed);
    }
}

fn arbitrary_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,40}".prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::Array),
            prop::collection::vec((".{0,12}", inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Rebuilds a value from spans alone.
fn rebuild(value: Json<'_>) -> serde_json::Value {
    match value.kind() {
        Kind::Object => value
            .members()
            .unwrap()
            .map(|member| (member.key.decode_lossy().into_owned(), rebuild(member.value)))
            .collect(),
        Kind::Array => value.elements().unwrap().map(rebuild).collect(),
        Kind::String => value.as_str().unwrap().decode_lossy().into_owned().into(),
        _ => serde_json::from_str(value.text()).unwrap(),
    }
}

/// Rebuilds a value by walking it.
fn rebuild_walking(walk: &mut Walk<'_>) -> serde_json::Value {
    match walk.kind() {
        Kind::Object => {
            let mut members = serde_json::Map::new();
            walk.enter();
            while let Some(key) = walk.next_key() {
                members.insert(key.decode_lossy().into_owned(), rebuild_walking(walk));
            }
            members.into()
        }
        Kind::Array => {
            let mut elements = Vec::new();
            walk.enter();
            while walk.next_element() {
                let start = walk.offset();
                let element = rebuild_walking(walk);
                assert_eq!(rebuild(walk.since(start)), element);
                elements.push(element);
            }
            elements.into()
        }
        _ => rebuild(walk.value()),
    }
}

#[test]
fn a_walk_in_any_order_stays_in_the_text() {
    let value = Json::parse(r#"{"a":[1,"x"],"b":{}}"#).unwrap();
    let mut walk = Walk::over(value);
    for _ in 0..30 {
        walk.enter();
        walk.next_element();
        walk.next_key();
        walk.value();
        assert!(walk.offset() <= value.text().len());
        assert_eq!(walk.since(usize::MAX).text(), "");
    }
}

#[test]
fn the_rest_of_the_units_can_be_read_again() {
    let value = Json::parse(r#""a\u002c\/b\ud83d\ude00""#).unwrap();
    let mut units = value.as_str().unwrap().units();
    assert_eq!(units.by_ref().nth(1), Some(u16::from(b',')));
    assert_eq!(units.rest(), *"/b\u{1f600}");
}

#[test]
fn strings_are_compared_as_what_they_spell() {
    let spelled = |raw: &str, text: &str| {
        Json::parse(&format!("\"{raw}\"")).unwrap().as_str().unwrap() == *text
    };
    let same = [("", ""), ("é", "é"), (r"\u00e9", "é"), (r"\\n", r"\n"), (r"\n", "\n")];
    let same_long = [(r"\ud83d\ude00", "\u{1f600}"), (r"a\/b", "a/b"), ("a/b", "a/b")];
    for (raw, text) in same.into_iter().chain(same_long) {
        assert!(spelled(raw, text), "{raw} {text}");
    }
    for (raw, text) in [
        (r"\n", r"\n"),
        ("", "a"),
        ("a", ""),
        ("a", "b"),
        (r"\ud83d", "\u{fffd}"),
        ("ab", "a"),
        (r"\\", r"\\"),
    ] {
        assert!(!spelled(raw, text), "{raw} {text}");
    }
}

proptest! {
    #[test]
    fn spans_rebuild_the_value(value in arbitrary_json(), pretty in any::<bool>()) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        let json = Json::parse(&text).unwrap();
        let mut walk = Walk::over(json);
        prop_assert_eq!(&rebuild_walking(&mut walk), &value);
        prop_assert_eq!(walk.offset(), json.text().len());
        prop_assert_eq!(walk.since(0), json);
        prop_assert_eq!(rebuild(json), value);
    }

    #[test]
    fn members_are_found_on_the_way(value in arbitrary_json(), pretty in any::<bool>()) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        let mut found = Vec::new();
        let parsed = Json::parse_members(&text, |member| found.push(member)).unwrap();
        prop_assert_eq!(parsed, Json::parse(&text).unwrap());
        let walked: Vec<_> = parsed.members().into_iter().flatten().collect();
        prop_assert_eq!(found.len(), walked.len());
        for (found, walked) in found.iter().zip(&walked) {
            prop_assert_eq!((found.key.raw(), found.value), (walked.key.raw(), walked.value));
        }
    }

    #[test]
    fn compacting_removes_white_space_alone(value in arbitrary_json()) {
        let mut out = String::new();
        write_compact(&mut out, Json::parse(&serde_json::to_string_pretty(&value).unwrap()).unwrap());
        prop_assert_eq!(out, value.to_string());
    }

    #[test]
    fn judges_mutated_text_as_serde_does(value in arbitrary_json(), at in any::<prop::sample::Index>(), with in "[ -~]") {
        let mut text: Vec<char> = value.to_string().chars().collect();
        let at = at.index(text.len());
        text[at] = with.chars().next().unwrap();
        let text: String = text.into_iter().collect();
        // serde_json refuses numbers past the double range, which JSON.parse takes as infinite.
        let serde = serde_json::from_str::<Box<serde_json::value::RawValue>>(&text);
        prop_assert_eq!(Json::parse(&text).is_ok(), serde.is_ok(), "{}", text);
        prop_assert_eq!(Json::parse_members(&text, |_| ()).ok(), Json::parse(&text).ok());
    }

    #[test]
    fn never_panics_on_text(text in ".{0,200}") {
        if let Ok(value) = Json::parse(&text) {
            let _ = (value.members().map(Iterator::count), value.elements().map(Iterator::count));
        }
    }

    #[test]
    fn written_strings_read_back(text in ".{0,60}") {
        let mut out = String::new();
        write_str(&mut out, &text);
        prop_assert_eq!(&out, &serde_json::to_string(&text).unwrap().replace("\\u007f", "\u{7f}"));
        let literal = Json::parse(&out).unwrap().as_str().unwrap();
        prop_assert_eq!(literal.decode().unwrap(), text.as_str());
        prop_assert_eq!(literal.utf16_len(), text.encode_utf16().count());
    }
}
