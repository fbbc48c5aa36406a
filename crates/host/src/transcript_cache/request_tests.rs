use turnkeep_log::json::Json;

use super::{Budget, Generation, Invalid, Scope, message_of_json, message_of_query, put_of_body};

fn body<T>(text: &str, parse: impl FnOnce(Json<'_>) -> Result<T, Invalid>) -> Result<T, Invalid> {
    parse(Json::parse(text).unwrap())
}

fn scope() -> Scope {
    Scope {
        transport: "local".to_owned(),
        generation: 1,
        directory: "/w".to_owned(),
        session: "s".to_owned(),
    }
}

#[test]
fn a_scope_may_be_inlined() {
    let inner = r#"{"transport":"local","generation":1,"directory":"/w","sessionID":"s"}"#;
    for text in [
        inner.to_owned(),
        format!(r#"{{"scope":{inner}}}"#),
        format!(r#"{{"scope":null,{}"#, inner.trim_start_matches('{')),
        inner.replace("1,", "\"1\","),
        inner.replace("1,", "1.0,"),
    ] {
        assert_eq!(body(&text, Scope::of_body), Ok(scope()), "{text}");
    }
}

#[test]
fn all_four_parts_of_a_scope_are_required() {
    let good = r#"{"transport":"local","generation":1,"directory":"/w","sessionID":"s"}"#;
    let long = format!("\"{}\"", "x".repeat(513));
    let long_directory = format!("\"{}\"", "/".repeat(4097));
    for (from, to) in [
        ("\"local\"", "\"\""),
        ("\"local\"", "1"),
        ("\"local\"", long.as_str()),
        ("transport", "other"),
        ("1", "1.5"),
        ("1", "null"),
        ("1", "\"1.5\""),
        ("1", "\"\""),
        ("1", "\"-\""),
        ("1", "\"+1\""),
        ("1", "\" 1\""),
        ("1", "9007199254740992"),
        ("1", "\"9007199254740992\""),
        ("1", "\"99999999999999999999\""),
        ("1", "1e400"),
        ("\"/w\"", "[\"/w\"]"),
        ("\"/w\"", long_directory.as_str()),
        ("\"s\"", "\"\\ud800\""),
        ("\"s\"", "{}"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_eq!(body(&text, Scope::of_body), Err(Invalid::Scope), "{text}");
    }
    for text in ["[]", "{}", r#"{"scope":[]}"#, r#"{"scope":false}"#, r#"{"scope":"s"}"#] {
        assert_eq!(body(text, Scope::of_body), Err(Invalid::Scope), "{text}");
    }
}

#[test]
fn ids_are_as_long_as_on_every_route() {
    let fits = "😀".repeat(256);
    assert_eq!(message_of_query(Some(&fits)), Ok(fits.clone()));
    assert_eq!(message_of_query(Some(&format!("{fits}x"))), Err(Invalid::MessageId));
    assert_eq!(message_of_query(None), Err(Invalid::MessageId));
    let escaped = format!("\"{}\"", r"\ud83d\ude00".repeat(256));
    assert_eq!(body(&escaped, |id| message_of_json(Some(id))), Ok(fits));
    for bad in ["1", "\"\"", "null", "\"\\ud83d\""] {
        assert_eq!(body(bad, |id| message_of_json(Some(id))), Err(Invalid::MessageId), "{bad}");
    }
}

#[test]
fn a_query_has_digits_for_the_generation() {
    let of = |generation: &'static str| {
        Scope::of_query(|key| {
            let parts = [("transport", "local"), ("directory", "/w"), ("sessionID", "s")];
            let other = parts.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
            if key == "generation" { Some(generation) } else { other }
        })
    };
    assert_eq!(of("1"), Ok(scope()));
    assert_eq!(of("-2"), Ok(Scope { generation: -2, ..scope() }));
    for bad in ["1.5", "1e0", "", "x", "0x1"] {
        assert_eq!(of(bad), Err(Invalid::Scope), "{bad}");
    }
}

#[test]
fn what_is_to_be_kept_is_an_object_and_an_array() {
    let scope = r#""transport":"local","generation":1,"directory":"/w","sessionID":"s""#;
    let with = |rest: &str| body(&format!("{{{scope},{rest}}}"), put_of_body).map(|_| ());
    assert_eq!(with(r#""info":{"id":"m"},"parts":[]"#), Ok(()));
    for (rest, invalid) in [
        (r#""info":[],"parts":[]"#, Invalid::Payload),
        (r#""parts":[]"#, Invalid::Payload),
        (r#""info":{"id":"m"},"parts":"x""#, Invalid::Payload),
        (r#""info":{"id":"m"}"#, Invalid::Payload),
        (r#""info":{"id":1},"parts":[]"#, Invalid::MessageId),
        (r#""info":{},"parts":[]"#, Invalid::MessageId),
    ] {
        assert_eq!(with(rest), Err(invalid), "{rest}");
    }
    assert_eq!(body("[]", put_of_body).map(|_| ()), Err(Invalid::Payload));
    assert_eq!(body(r#"{"info":[]}"#, put_of_body).map(|_| ()), Err(Invalid::Scope));
    let many = format!(r#""info":{{"id":"m"}},"parts":[{}1]"#, "1,".repeat(2 << 20));
    assert_eq!(with(&many), Err(Invalid::Payload));
}

#[test]
fn a_budget_is_a_finite_number() {
    let protect = r#"{"transport":"local","generation":1,"directory":"/w","sessionID":"s"}"#;
    let budget = body(&format!(r#"{{"maxBytes":1.5,"protect":[{protect}]}}"#), Budget::of_body);
    assert_eq!(budget, Ok(Budget { max_bytes: 1.5, protect: vec![scope()] }));
    for bad in [
        "[]",
        "{}",
        r#"{"maxBytes":"1"}"#,
        r#"{"maxBytes":1e999}"#,
        r#"{"maxBytes":1,"protect":null}"#,
        r#"{"maxBytes":1,"protect":{}}"#,
    ] {
        assert_eq!(body(bad, Budget::of_body), Err(Invalid::Payload), "{bad}");
    }
    let bad_scope = body(r#"{"maxBytes":1,"protect":[{}]}"#, Budget::of_body);
    assert_eq!(bad_scope, Err(Invalid::Scope));
    let bad_generation = body(r#"{"transport":"local"}"#, Generation::of_body);
    assert_eq!(bad_generation, Err(Invalid::Generation));
}
