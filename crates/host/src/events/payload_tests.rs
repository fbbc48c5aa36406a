use turnkeep_log::Text;

use super::{Concerns, Facts, Origin, Published};

fn read(data: &str) -> Option<(Option<String>, Option<String>, String)> {
    let event = Published::from_block(&Text::from(data))?;
    assert_eq!(event.origin, Origin::Upstream);
    Some((event.directory, event.project, event.payload.to_string()))
}

#[test]
fn an_event_is_taken_out_of_its_wrapper() {
    assert_eq!(
        read(
            r#" {"directory":"/a\u0062","project":"p","payload": {"type":"t","properties":{ }} } "#
        ),
        Some((
            Some("/ab".to_owned()),
            Some("p".to_owned()),
            r#"{"type":"t","properties":{ }}"#.to_owned()
        ))
    );
    assert_eq!(
        read(r#"{"payload":{"type":"t","properties":{"directory":"/other"}}}"#),
        Some((None, None, r#"{"type":"t","properties":{"directory":"/other"}}"#.to_owned())),
        "the wrapper has the last word"
    );
}

#[test]
fn an_event_without_a_wrapper_says_where_it_is_in_one_of_three_places() {
    for event in [
        r#"{"type":"t","directory":"/a","properties":{"directory":"/b"}}"#,
        r#"{"type":"t","properties":{"directory":"/a","info":{"directory":"/b"}}}"#,
        r#"{"type":"t","directory":"","properties":{"info":{"directory":"/a"}}}"#,
    ] {
        assert_eq!(read(event), Some((Some("/a".to_owned()), None, event.to_owned())));
    }
    let bare = r#"{"type":"t","payload":{"kind":"x"},"project":"p"}"#;
    assert_eq!(read(bare), Some((None, None, bare.to_owned())), "no event is wrapped in there");
}

#[test]
fn what_is_no_object_with_a_type_is_no_event() {
    for data in ["", "x", "[]", "1", "{}", r#"{"payload":{}}"#, r#"{"type":"#, r#"{"type":"t"} {}"#]
    {
        assert_eq!(read(data), None, "{data}");
    }
}

#[test]
fn an_event_says_which_session_it_is_about() {
    let one = |id: &str| Concerns::One(id.to_owned());
    for (payload, concerns) in [
        (
            r#"{"type":"message.updated","properties":{"info":{"id":"m","sessionID":"s"}}}"#,
            one("s"),
        ),
        (r#"{"type":"message.part.updated","properties":{"part":{"sessionID":"s"}}}"#, one("s")),
        (r#"{"type":"message.part.delta","properties":{"sessionID":"s"}}"#, one("s")),
        (r#"{"type":"session.updated","properties":{"info":{"id":"s"}}}"#, one("s")),
        (r#"{"type":"session.next.step","data":{"sessionID":"s"}}"#, one("s")),
        (r#"{"type":"sync","syncEvent":{"aggregateID":"s","data":{}}}"#, one("s")),
        (r#"{"type":"todo.updated","properties":{"sessionID":"s"}}"#, one("s")),
        (r#"{"type":"message.updated","properties":{"info":{"id":"m"}}}"#, Concerns::Unknown),
        (r#"{"type":"session.idle","properties":{}}"#, Concerns::Unknown),
        (r#"{"type":"sync"}"#, Concerns::Unknown),
        (r#"{"type":"file.edited","properties":{"file":"a"}}"#, Concerns::NoSession),
        (r#"{"type":"project.updated","properties":{"info":{"id":"p"}}}"#, Concerns::NoSession),
    ] {
        assert_eq!(Facts::of(payload).unwrap().concerns, concerns, "{payload}");
    }
}

#[test]
fn what_is_said_of_a_connection_is_told_apart() {
    let facts =
        |kind: &str| Facts::of(&format!(r#"{{"type":"{kind}","properties":{{}}}}"#)).unwrap();
    assert!(
        facts("server.connected").is_of_connection && facts("server.heartbeat").is_of_connection
    );
    assert!(!facts("server.instance.disposed").is_of_connection);
    assert!(facts("sync").is_sync && !facts("message.updated").is_sync);
}

#[test]
fn what_has_no_type_is_no_event() {
    for payload in ["", "{", "[]", "{}", r#"{"type":1}"#] {
        assert_eq!(Facts::of(payload), None, "{payload}");
    }
}
