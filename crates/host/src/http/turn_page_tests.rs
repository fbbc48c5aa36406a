use turnkeep_turns::TurnPageError;

use super::{Query, read};
use crate::driver::TurnPageRequest;

fn request(raw: &str) -> Result<TurnPageRequest, TurnPageError> {
    read(&Query::parse(Some(raw)), 100)
}

#[test]
fn everything_has_a_default() {
    let request = request("").unwrap();
    assert_eq!((request.query.turns, request.query.width), (3, 100));
    assert_eq!((request.query.before, request.directory), (None, None));
    assert!(request.include_reasoning);
}

#[test]
fn parameters_are_read_as_the_wire_has_them() {
    let request = request("turns=+4&scanLimit=040&before=a%2Bb&directory=%2Fw+x&other=1").unwrap();
    assert_eq!((request.query.turns, request.query.width), (4, 40));
    assert_eq!(request.query.before.as_deref(), Some("a+b"));
    assert_eq!(request.directory.as_deref(), Some("/w x"));
}

#[test]
fn mistakes_are_told_in_order() {
    assert_eq!(request("turns=1&turns=2"), Err(TurnPageError::BadTurns));
    assert_eq!(request("turns=&scanLimit=x"), Err(TurnPageError::BadTurns));
    assert_eq!(request("turns=11"), Err(TurnPageError::BadTurns));
    assert_eq!(request("turns=3.0"), Err(TurnPageError::BadTurns));
    assert_eq!(request("scanLimit=9"), Err(TurnPageError::BadScanLimit));
    assert_eq!(request("scanLimit=50&scanLimit=50"), Err(TurnPageError::BadScanLimit));
}

#[test]
fn repeated_texts_count_as_absent() {
    let request = request("before=a&before=b&directory=/a&directory=/b").unwrap();
    assert_eq!((request.query.before, request.directory), (None, None));
}

#[test]
fn only_the_very_word_leaves_reasoning_out() {
    for (raw, included) in [
        ("includeReasoning=false", false),
        ("includeReasoning=false&includeReasoning=true", false),
        ("includeReasoning=true&includeReasoning=false", true),
        ("includeReasoning=False", true),
        ("includeReasoning=0", true),
        ("includeReasoning=", true),
    ] {
        assert_eq!(request(raw).unwrap().include_reasoning, included, "{raw}");
    }
}
