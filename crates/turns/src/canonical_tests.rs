use turnkeep_log::json::Json;

fn canonical(text: &str) -> String {
    let mut out = String::new();
    assert!(super::write(Json::parse(text).unwrap(), usize::MAX, &mut out));
    out
}

#[test]
fn texts_that_say_the_same_are_spelled_the_same() {
    for text in [
        r#"{"b":[{"d":1.0,"c":"\u00e9\/"}],"a":null}"#,
        r#" { "a" : null , "b" : [ { "c" : "é/" , "d" : 1e0 } ] } "#,
        r#"{"a":1,"b":[{"\u0063":"é/","d":2,"d":1}],"a":null}"#,
    ] {
        assert_eq!(canonical(text), r#"{"a":null,"b":[{"c":"é/","d":1}]}"#, "{text}");
    }
}

#[test]
fn keys_are_sorted_by_utf_16_units_after_array_indices() {
    // U+1F600 is written with a surrogate, which is smaller than U+FF5E.
    let text =
        r#"{"～":1,"😀":2,"é":3,"z":4,"B":5,"10":6,"9":7,"01":8,"":9,"-1":10,"4294967295":11}"#;
    let sorted =
        r#"{"9":7,"10":6,"":9,"-1":10,"01":8,"4294967295":11,"B":5,"z":4,"é":3,"😀":2,"～":1}"#;
    assert_eq!(canonical(text), sorted);
}

#[test]
fn scalars_and_empty_containers_are_values_too() {
    for (text, canonical_text) in
        [("1e21", "1e+21"), ("[ ]", "[]"), ("{ }", "{}"), (r#""\/""#, r#""/""#)]
    {
        assert_eq!(canonical(text), canonical_text);
    }
}

#[test]
fn too_many_values_are_refused_before_they_are_held() {
    let value = Json::parse(r#"{"a":[1,2]}"#).unwrap();
    let mut out = String::new();
    assert!(!super::write(value, 3, &mut out));
    assert_eq!(out, "");
    assert!(super::write(value, 4, &mut out));
    assert_eq!(out, r#"{"a":[1,2]}"#);
}

#[test]
fn deep_nesting_is_no_danger() {
    let text = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(canonical(&text), text);
}
