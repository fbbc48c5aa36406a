use turnkeep_log::{Blank, Event, Seq};

use super::{Calls, MOST_CALLS, MOST_TURNS, Outline, Turn};
use crate::contract::steps::event_of;

fn outline(events: &[Event]) -> Outline {
    let mut outline = Outline::default();
    outline.extend(events);
    outline
}

/// Events of these types and payloads, one after the other.
fn log(events: &[(&str, &str)]) -> Vec<Event> {
    events.iter().zip(0..).map(|((name, data), seq)| event_of(name, seq, data)).collect()
}

const START: (&str, &str) = ("turn/start", r#"{"turn":1}"#);
const END: (&str, &str) = ("turn/end", r#"{"turn":1,"reason":{"kind":"completed"}}"#);
const RESULT: (&str, &str) =
    ("tool/result", r#"{"turn":1,"step":1,"message":{"source":{"kind":"tool","callId":"a"}}}"#);

#[test]
fn an_empty_log_is_blank() {
    let hints = Outline::default().hints();
    assert!(hints.blank);
    assert_eq!((hints.event_count, hints.turns, hints.open_calls), (0, 0, Some(0)));
    assert_eq!((hints.title, hints.open_turn, hints.last_event_at), (None, None, None));
}

#[test]
fn a_turn_and_its_calls_are_open_until_they_end() {
    let call = ("tool/call", r#"{"turn":1,"step":1,"callId":"a"}"#);
    let other = ("tool/call", r#"{"turn":1,"step":1,"callId":"\u0062"}"#);
    let events = log(&[START, call, other, RESULT, END, START]);
    let after = |count: usize| {
        let hints = outline(&events[..count]).hints();
        (hints.open_turn, hints.open_calls)
    };
    assert_eq!(after(1), (Some(Seq(0)), Some(0)));
    assert_eq!(after(3), (Some(Seq(0)), Some(2)));
    assert_eq!(after(4), (Some(Seq(0)), Some(1)), "the other one");
    assert_eq!(after(5), (None, Some(0)), "nobody waits for it any more");
    assert_eq!(after(6), (Some(Seq(5)), Some(0)));
    let turns = outline(&events).turns;
    let ended = Turn { start: Seq(0), end: Some(Seq(4)) };
    assert_eq!(turns, [ended, Turn { start: Seq(5), end: None }]);
}

#[test]
fn an_id_is_the_same_however_it_is_escaped() {
    let call = ("tool/call", r#"{"callId":"\u0061"}"#);
    assert_eq!(outline(&log(&[START, call, RESULT])).open_calls(), Some(0));
    // Half a surrogate pair is an id as well.
    let lone = ("tool/call", r#"{"callId":"\ud83d"}"#);
    let answer = ("tool/result", r#"{"message":{"source":{"callId":"\uD83D"}}}"#);
    assert_eq!(outline(&log(&[START, lone])).open_calls(), Some(1));
    assert_eq!(outline(&log(&[START, lone, answer])).open_calls(), Some(0));
}

#[test]
fn the_last_title_counts_if_it_is_one() {
    let titles = [
        ("session/title", r#"{"title":"first"}"#),
        ("session/title", r#"{"title":"half \ud83d"}"#),
        ("session/title", r#"{"title":7}"#),
    ];
    assert_eq!(outline(&log(&titles[..1])).hints().title.as_deref(), Some("first"));
    assert_eq!(outline(&log(&titles)).hints().title.as_deref(), Some("half \u{fffd}"));
}

#[test]
fn blank_and_last_prompt_are_what_the_fold_of_the_log_says() {
    let said = ("user/message", r#"{"source":{"kind":"user"}}"#);
    let plugin = ("user/message", r#"{"source":{"kind":"plugin","plugin":"p"}}"#);
    let events = log(&[plugin, said, START, plugin, END]);
    for count in 0..=events.len() {
        let events = &events[..count];
        let (hints, fold) = (outline(events).hints(), Blank::of(events));
        assert_eq!((hints.blank, hints.last_prompt_at), (fold.blank, fold.last_prompt_at));
    }
}

#[test]
fn it_goes_on_from_any_event() {
    let call = ("tool/call", r#"{"callId":"a"}"#);
    let title = ("session/title", r#"{"title":"t"}"#);
    let events = log(&[START, call, RESULT, END, title, START, call]);
    let whole = outline(&events);
    for cut in 0..=events.len() {
        let mut parts = outline(&events[..cut]);
        parts.extend(&events[cut..]);
        assert_eq!(parts, whole, "cut at {cut}");
        // Also when it is shown again what it has seen.
        parts.extend(&events[..cut]);
        parts.extend(&events);
        assert_eq!(parts, whole);
    }
    let mut gap = outline(&events[..2]);
    gap.extend(&events[3..]);
    assert_eq!(gap, outline(&events[..2]), "a gap is not passed over");
}

#[test]
fn it_does_not_grow_with_the_log() {
    let turns: Vec<_> = (0..MOST_TURNS * 2 + 10).flat_map(|_| [START, END]).collect();
    let long = outline(&log(&turns));
    assert_eq!(long.turns.len(), MOST_TURNS);
    assert_eq!(long.turn_count(), (turns.len() / 2) as u64);
    assert_eq!(long.turns.back().unwrap().end, Some(Seq(turns.len() as u64 - 1)));

    let mut events = log(&[START]);
    for seq in 1..=MOST_CALLS as u64 + 1 {
        events.push(event_of("tool/call", seq, &format!(r#"{{"callId":"c{seq}"}}"#)));
    }
    let mut busy = outline(&events);
    assert_eq!((busy.calls.clone(), busy.open_calls()), (Calls::Uncounted, None));
    busy.extend(&[event_of("turn/end", events.len() as u64, END.1)]);
    assert_eq!(busy.open_calls(), Some(0));
}
