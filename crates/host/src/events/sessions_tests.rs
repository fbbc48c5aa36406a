use super::{LastEvents, MAX_SESSIONS};

#[test]
fn what_happens_elsewhere_changes_nothing() {
    let mut events = LastEvents::default();
    events.note("a".to_owned(), 1);
    events.note("b".to_owned(), 2);
    assert_eq!((events.of("a"), events.of("b"), events.of("c")), (1, 2, 0));
}

#[test]
fn what_may_be_of_any_session_is_of_each() {
    let mut events = LastEvents::default();
    events.note("a".to_owned(), 1);
    events.note_unknown(2);
    assert_eq!((events.of("a"), events.of("b")), (2, 2));
}

#[test]
fn a_session_that_is_forgotten_does_not_seem_quiet() {
    let mut events = LastEvents::default();
    events.note("first".to_owned(), 1);
    for number in 2..=MAX_SESSIONS as u64 + 1 {
        events.note(format!("s{number}"), number);
    }
    assert!(events.by_session.len() <= MAX_SESSIONS);
    assert!(events.of("first") >= 1);
    assert_eq!(events.of(&format!("s{}", MAX_SESSIONS + 1)), MAX_SESSIONS as u64 + 1);
}
