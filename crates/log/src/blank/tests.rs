use super::Blank;
use crate::event::Event;

fn event(event_type: &str, time: i64, data: &str) -> Event {
    let text = format!(r#"{{"type":"{event_type}","seq":0,"time":{time},"data":{data}}}"#);
    Event::parse(&text.into()).unwrap()
}

fn said_by(kind: &str, time: i64) -> Event {
    event("user/message", time, &format!(r#"{{"source":{{"kind":"{kind}"}}}}"#))
}

#[test]
fn a_session_is_blank_until_its_first_turn() {
    assert_eq!(Blank::of(&[]), Blank { blank: true, last_prompt_at: None });
    let before = [event("session/title", 1, "{}"), said_by("user", 2), event("turn/end", 3, "{}")];
    assert!(Blank::of(&before).blank);
    let mut state = Blank::of(&before);
    state.push(&event("turn/start", 4, "null"));
    state.push(&event("turn/end", 5, "{}"));
    assert_eq!(state, Blank { blank: false, last_prompt_at: Some(2) });
}

#[test]
fn only_what_a_person_said_is_a_prompt() {
    let log = [said_by("user", 10), said_by("plugin", 20), said_by("goal", 30)];
    assert_eq!(Blank::of(&log).last_prompt_at, Some(10));
    for data in ["null", "[]", "{}", r#"{"source":"user"}"#, r#"{"source":{"kind":["user"]}}"#] {
        assert_eq!(Blank::of(&[event("user/message", 1, data)]).last_prompt_at, None, "{data}");
    }
    let other = event("command/run", 40, r#"{"source":{"kind":"user"}}"#);
    assert_eq!(Blank::of(&[other]).last_prompt_at, None);
    assert_eq!(Blank::of(&[said_by(r"\u0075ser", 5)]).last_prompt_at, Some(5));
}

#[test]
fn the_last_prompt_is_the_last_in_the_log() {
    assert_eq!(Blank::of(&[said_by("user", 10), said_by("user", 7)]).last_prompt_at, Some(7));
}

#[test]
fn a_session_was_updated_when_it_was_made_or_last_spoken_to() {
    let updated = |last_prompt_at| Blank { blank: false, last_prompt_at }.updated_at(100);
    assert_eq!(updated(None), 100);
    assert_eq!(updated(Some(99)), 100);
    assert_eq!(updated(Some(-1)), 100);
    assert_eq!(updated(Some(101)), 101);
}
