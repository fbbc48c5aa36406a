use super::*;

fn project(body: &str, reasoning: bool) -> Result<String, MessageError> {
    exact(body, reasoning, &LiveText::default())
}

const DIFFS: &str = r#"{"title":"t","diffs":[{"file":"a","patch":"P","additions":1}]}"#;
const REDUCED: &str =
    r#"{"title":"t","diffs":[{"file":"a","additions":1}],"diffCount":1,"hasDiffs":true}"#;

#[test]
fn a_message_keeps_its_bytes() {
    let message = r#"{"info":{"id":"m", "n":1.0},"parts":[{"type":"file","url":"data:,x"},{"type":"tool","state":{"output":"O"}}] }"#;
    assert_eq!(project(message, true).as_deref(), Ok(message));
    assert_eq!(project(&format!(" {message}\n"), true).as_deref(), Ok(message));
}

#[test]
fn diffs_lose_their_patches_and_the_parts_stay() {
    let parts = r#"[{"type":"text","text":"t"}]"#;
    let message = |summary: &str| format!(r#"{{"info":{{"summary":{summary}}},"parts":{parts}}}"#);
    assert_eq!(project(&message(DIFFS), true), Ok(message(REDUCED)));
}

#[test]
fn a_bare_info_is_reduced_too() {
    let bare = |summary: &str| format!(r#"{{"id":"m","summary":{summary}}}"#);
    assert_eq!(project(&bare(DIFFS), true), Ok(bare(REDUCED)));
    // An `info` that is no object counts for nothing.
    for info in ["null", "7", "[]"] {
        let odd = |summary: &str| {
            format!(r#"{{"info":{info},"summary":{summary},"parts":[{{"type":"reasoning"}}]}}"#)
        };
        assert_eq!(project(&odd(DIFFS), true), Ok(odd(REDUCED)), "{info}");
        let without = odd(REDUCED).replace(r#"{"type":"reasoning"}"#, "");
        assert_eq!(project(&odd(DIFFS), false), Ok(without), "{info}");
    }
    // Where there is one, the message's own summary is none of a message.
    let both = format!(r#"{{"info":{{"id":"m"}},"summary":{DIFFS}}}"#);
    assert_eq!(project(&both, true), Ok(both));
}

#[test]
fn reasoning_is_left_out_on_request_and_its_tokens_stay() {
    let message = r#"{"info":{"tokens":{"reasoning":42}},"parts":[{"type":"reasoning"},{"type":"text"},{"type":"reasoning"}]}"#;
    assert_eq!(project(message, true).as_deref(), Ok(message));
    let without = r#"{"info":{"tokens":{"reasoning":42}},"parts":[{"type":"text"}]}"#;
    assert_eq!(project(message, false).as_deref(), Ok(without));
}

#[test]
fn what_is_no_object_is_no_message() {
    assert_eq!(project("{}", true).as_deref(), Ok("{}"));
    for body in ["", "[]", "null", "\"x\"", "7", "<html>", "{", " "] {
        assert_eq!(project(body, true), Err(MessageError::Upstream), "{body:?}");
    }
}

#[test]
fn ids_are_measured_in_utf16_units() {
    let longest = "\u{1f600}".repeat(256);
    assert_eq!(check_session("ses_1"), Ok(()));
    assert_eq!(check_session(&longest), Ok(()));
    assert_eq!(parse_message(Param::One(&longest)), Ok(longest.as_str()));
    for id in ["", &*"\u{1f600}".repeat(257), &*"m".repeat(513)] {
        assert_eq!(check_session(id), Err(MessageError::BadSession));
        assert_eq!(parse_message(Param::One(id)), Err(MessageError::BadMessage));
    }
    assert_eq!(parse_message(Param::Absent), Err(MessageError::BadMessage));
    assert_eq!(parse_message(Param::Repeated), Err(MessageError::BadMessage));
}
