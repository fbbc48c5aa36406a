use super::*;

fn parse(
    anchor: Option<&str>,
    continuation: Option<&str>,
) -> Result<ReconcileStart, ReconcileError> {
    let param = |value: Option<_>| value.map_or(Param::Absent, Param::One);
    ReconcileStart::parse(param(anchor), param(continuation))
}

#[test]
fn one_of_the_two_is_where_to_start() {
    assert_eq!(parse(Some("m"), None), Ok(ReconcileStart::Anchor("m".to_owned())));
    assert_eq!(parse(Some("m"), Some("")), Ok(ReconcileStart::Anchor("m".to_owned())));
    let continuation = Ok(ReconcileStart::Continuation("not looked into".to_owned()));
    assert_eq!(parse(None, Some("not looked into")), continuation);
    assert_eq!(parse(Some(""), Some("not looked into")), continuation);
}

#[test]
fn both_and_neither_are_refused() {
    let refused = Err(ReconcileError::AnchorOrContinuation);
    assert_eq!(parse(None, None), refused);
    assert_eq!(parse(Some(""), Some("")), refused);
    assert_eq!(parse(Some("m"), Some("ocr2.x")), refused);
    assert_eq!(parse(Some(&"m".repeat(513)), Some("ocr2.x")), refused);
    assert_eq!(ReconcileStart::parse(Param::Repeated, Param::Absent), refused);
    assert_eq!(ReconcileStart::parse(Param::Absent, Param::Repeated), refused);
    let anchor = ReconcileStart::parse(Param::One("m"), Param::Repeated);
    assert_eq!(anchor, Ok(ReconcileStart::Anchor("m".to_owned())));
}

#[test]
fn lengths_are_measured_in_utf16_units() {
    assert!(parse(Some(&"\u{1f600}".repeat(256)), None).is_ok());
    for anchor in ["m".repeat(513), "\u{1f600}".repeat(257)] {
        assert_eq!(parse(Some(&anchor), None), Err(ReconcileError::BadAnchor));
    }
    assert!(parse(None, Some(&"\u{e9}".repeat(8192))).is_ok());
    let too_long = "x".repeat(8193);
    assert_eq!(parse(None, Some(&too_long)), Err(ReconcileError::InvalidContinuation));
}
