use reqwest::StatusCode;

use super::{Trouble, refusal, text};

#[test]
fn known_refusals_are_told_apart() {
    let not_found = r#"{"name":"NotFoundError","data":{"message":"Session not found: ses_x"}}"#;
    assert_eq!(refusal(StatusCode::NOT_FOUND, not_found), Trouble::NotFound);
    let no_message = r#"{"name":"NotFoundError","data":{"message":"Message not found: msg_x"}}"#;
    assert_eq!(refusal(StatusCode::NOT_FOUND, no_message), Trouble::MessageNotFound);
    let bad_cursor = r#"{"_tag":"BadRequest"}"#;
    assert_eq!(refusal(StatusCode::BAD_REQUEST, bad_cursor), Trouble::BadCursor);
    let poison = r#"{"name":"BadRequest","data":{"message":"Expected …","kind":"Body"}}"#;
    assert_eq!(refusal(StatusCode::BAD_REQUEST, poison), Trouble::Unencodable);
}

#[test]
fn other_refusals_are_not_taken_for_them() {
    for (status, body) in [
        (400, r#"{"name":"BadRequest","data":{"message":"…","kind":"Query"}}"#),
        (400, "{}"),
        (400, "not JSON"),
        (404, "{}"),
        (404, r#"{"_tag":"BadRequest"}"#),
        (500, r#"{"name":"NotFoundError"}"#),
        (500, r#"{"name":"UnknownError","data":{"message":"…","ref":"err_1"}}"#),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(refusal(status, body), Trouble::Unexpected, "{status} {body}");
    }
}

#[test]
fn bodies_are_read_as_a_browser_would() {
    assert_eq!(&*text(b"\xef\xbb\xbf[]".to_vec()), "[]");
    assert_eq!(&*text(b"[\"\xff\"]".to_vec()), "[\"\u{fffd}\"]");
    assert_eq!(&*text(Vec::new()), "");
}
