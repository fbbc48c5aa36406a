use super::{Fork, ForkError, cut};
use crate::{
    event::{Event, EventDraft},
    header::{Origin, SessionHeader},
    id::{Seq, SessionId},
    json::JsonText,
};

fn id(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

fn parent() -> SessionHeader {
    SessionHeader {
        cwd: Some("/work".to_owned()),
        parent_session: Some("grandparent".to_owned()),
        seed_length: Some(9),
        origin: Some(Origin::Subagent),
        delegation_depth: 3,
        agent_preset: Some("careful".to_owned()),
        ..SessionHeader::new(id("p"), 1)
    }
}

fn log(types: &[&str]) -> Vec<Event> {
    let data = JsonText::parse(&"{}".into()).unwrap();
    let event = |(seq, name): (u64, &&str)| {
        EventDraft::new(name, &data).complete(Seq(seq), 50 + i64::try_from(seq).unwrap()).unwrap()
    };
    (0..).zip(types).map(event).collect()
}

fn two_turns() -> Vec<Event> {
    log(&["command/run", "turn/start", "step/start", "step/end", "turn/end", "turn/start"])
}

fn fork(events: &[Event], boundary: Option<u64>) -> Result<Fork, ForkError> {
    cut(&parent(), events, boundary.map(Seq), id("c"), 900)
}

#[test]
fn a_fork_is_the_events_up_to_the_boundary_and_a_mark() {
    let events = two_turns();
    let fork = fork(&events, Some(4)).unwrap();
    assert_eq!(fork.events[..5], events[..5]);
    assert_eq!(
        fork.events[5].text().as_str(),
        r#"{"type":"session/end-seed","seq":5,"time":900,"data":{}}"#
    );
    assert_eq!(fork.events.len(), 6);
    assert_eq!(
        fork.header,
        SessionHeader {
            cwd: Some("/work".to_owned()),
            parent_session: Some("p".to_owned()),
            seed_length: Some(5),
            ..SessionHeader::new(id("c"), 900)
        }
    );
}

#[test]
fn a_log_can_be_forked_before_its_first_turn() {
    let fork = fork(&two_turns(), Some(0)).unwrap();
    assert_eq!((fork.header.seed_length, fork.events.len()), (Some(1), 2));
}

#[test]
fn without_a_boundary_all_of_the_log_is_inherited() {
    let fork = fork(&two_turns()[..5], None).unwrap();
    assert_eq!((fork.header.seed_length, fork.events.len()), (Some(5), 6));
}

#[test]
fn a_mark_at_the_cut_is_not_doubled() {
    let events = log(&["turn/start", "turn/end", "session/end-seed", "session/title"]);
    let at_mark = fork(&events, Some(2)).unwrap();
    assert_eq!(at_mark.events, events[..3]);
    assert_eq!(at_mark.header.seed_length, Some(3));
    assert_eq!(fork(&events, Some(3)).unwrap().events.len(), 5);
}

#[test]
fn inside_a_turn_there_is_no_boundary() {
    for (boundary, start) in [(Some(1), 1), (Some(3), 1), (Some(5), 5), (None, 5)] {
        let error = fork(&two_turns(), boundary).unwrap_err();
        assert_eq!(error.kind(), "open_turn");
        assert!(matches!(error, ForkError::OpenTurn { start: Seq(at), .. } if at == start));
    }
    assert_eq!(
        fork(&two_turns(), Some(3)).unwrap_err().to_string(),
        "session \"p\" has a turn open at event 3 that began at event 1; fork it before that \
         event, or at or after the turn's end"
    );
}

#[test]
fn past_the_end_there_is_no_boundary() {
    for (events, boundary, advice) in [
        (two_turns(), Some(6), "choose one from 0 to 5"),
        (two_turns(), Some(u64::MAX), "choose one from 0 to 5"),
        (Vec::new(), Some(0), "it has no events yet"),
        (Vec::new(), None, "it has no events yet"),
    ] {
        let error = fork(&events, boundary).unwrap_err();
        assert_eq!(error.kind(), "invalid_boundary");
        let named = boundary.unwrap_or(0);
        assert_eq!(
            error.to_string(),
            format!("session \"p\" has no event {named} to be forked at; {advice}")
        );
    }
}
