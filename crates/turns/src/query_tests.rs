use super::*;

#[test]
fn integers_are_strict() {
    for (text, value) in
        [("3", 3), (" 3", 3), ("03", 3), ("\u{feff}3\u{3000}", 3), ("1", 1), ("10", 10)]
    {
        assert_eq!(parse_turns(Param::One(text)), Ok(value), "{text:?}");
    }
    let overlong = "9".repeat(400);
    for text in [
        "", " ", "0", "11", "-1", "-0", "abc", "3.0", "3e0", "0x3", "+3", "3 3", "\u{85}3",
        "\u{663}", "null", &overlong,
    ] {
        assert_eq!(parse_turns(Param::One(text)), Err(TurnPageError::BadTurns), "{text:?}");
    }
    assert_eq!(parse_turns(Param::Absent), Ok(3));
    assert_eq!(parse_turns(Param::Repeated), Err(TurnPageError::BadTurns));
    assert_eq!(parse_turns(Param::One(&format!("{}7", "0".repeat(400)))), Ok(7));
}

#[test]
fn scan_limits_have_a_configured_default() {
    assert_eq!(parse_scan_limit(Param::Absent, 64), Ok(64));
    assert_eq!(parse_scan_limit(Param::One("10"), 64), Ok(10));
    assert_eq!(parse_scan_limit(Param::One("200"), 64), Ok(200));
    for text in ["9", "201", "0", "nope", ""] {
        let parsed = parse_scan_limit(Param::One(text), 64);
        assert_eq!(parsed, Err(TurnPageError::BadScanLimit), "{text:?}");
    }
    assert_eq!(parse_scan_limit(Param::Repeated, 64), Err(TurnPageError::BadScanLimit));
    let settings = [None, Some("50"), Some("9"), Some("201"), Some("abc"), Some("")];
    assert_eq!(settings.map(configured_scan_limit), [100, 50, 100, 100, 100, 100]);
}

#[test]
fn before_counts_only_as_one_non_empty_string() {
    assert_eq!(parse_before(Param::One("6")), Some("6".to_owned()));
    assert_eq!(parse_before(Param::One("")), None);
    assert_eq!(parse_before(Param::Absent), None);
    assert_eq!(parse_before(Param::Repeated), None);
}

#[test]
fn values_of_a_key_make_a_parameter() {
    assert_eq!(Param::from_values([]), Param::Absent);
    assert_eq!(Param::from_values(["a"]), Param::One("a"));
    assert_eq!(Param::from_values(["a", "b"]), Param::Repeated);
}

#[test]
fn session_ids_are_measured_in_utf16_units() {
    assert_eq!(check_session("s"), Ok(()));
    assert_eq!(check_session(""), Err(TurnPageError::BadSession));
    assert_eq!(check_session(&"\u{1f600}".repeat(256)), Ok(()));
    assert_eq!(check_session(&"\u{1f600}".repeat(257)), Err(TurnPageError::BadSession));
}
