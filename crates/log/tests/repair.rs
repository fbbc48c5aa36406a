//! Real logs, and what their own writer made of each when it took the session up again.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::{fs, path::PathBuf};

use turnkeep_log::{
    Blank, Event, RecordScan, Seq, SessionHeader, SessionId, TurnState, Vocabulary, fork, gate,
    records::decode_lossy, repair, seed, validate,
};

struct Log {
    file: String,
    header: String,
    events: Vec<Event>,
    verdict: serde_json::Value,
}

/// The logs without compression that their writer could read.
fn logs() -> Vec<Log> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/dsh");
    let manifest = fs::read_to_string(root.join("manifest.json")).unwrap();
    let manifest: Vec<serde_json::Value> = serde_json::from_str(&manifest).unwrap();
    let readable = manifest
        .into_iter()
        .filter(|entry| entry["compression"] == "none" && entry["verdict"]["ok"] == true);
    readable
        .map(|entry| {
            let file = entry["file"].as_str().unwrap().to_owned();
            let text = decode_lossy(fs::read(root.join(&file)).unwrap());
            let (header, events) = text.split_once('\n').unwrap();
            let mut scan = RecordScan::new(Seq(0));
            scan.feed(&text.slice_of(events));
            scan.committed().unwrap();
            let (header, events) = (header.to_owned(), scan.take_events());
            Log { file, header, events, verdict: entry["verdict"].clone() }
        })
        .collect()
}

fn log(file: &str) -> Log {
    logs().into_iter().find(|log| log.file == file).unwrap()
}

/// Those of them that nobody damaged.
fn golden() -> impl Iterator<Item = Log> {
    logs().into_iter().filter(|log| log.file.starts_with("golden/"))
}

/// Each prefix of a log, none and all of it included, with the state after it.
fn prefixes(events: &[Event]) -> impl Iterator<Item = (&[Event], TurnState)> {
    let mut state = TurnState::default();
    (0..=events.len()).map(move |length| {
        if let Some(last) = length.checked_sub(1) {
            state.push(&events[last]);
        }
        (&events[..length], state.clone())
    })
}

#[test]
fn logs_are_closed_as_their_writer_closes_them() {
    assert!(golden().count() >= 10, "fixtures are missing");
    let mut closed = Vec::new();
    for log in logs() {
        assert_eq!(log.events.len(), log.verdict["events"], "{}", log.file);
        let mut whole = log.events.clone();
        whole.extend(repair::closers(&log.events));
        let inspect = &log.verdict["inspect"];
        assert_eq!(whole.len(), inspect["events"], "{}", log.file);
        let tail = whole[whole.len() - 4..].iter();
        let tail: Vec<_> =
            tail.map(|event| format!("{}:{}", event.seq(), event.event_type())).collect();
        assert_eq!(serde_json::json!(tail), inspect["tail"], "{}", log.file);
        if whole.len() > log.events.len() {
            closed.push(log.file);
        }
    }
    assert_eq!(closed, ["damaged/raw-open-turn.jsonl"]);
}

/// This log was cut after a `tool/call`; what follows up to the mark are its writer's closers.
#[test]
fn closers_are_the_bytes_their_writer_wrote() {
    let log = log("golden/tool-outcome-unknown/session.jsonl");
    let at = log.events.iter().position(seed::is_mark).unwrap();
    let (cut, written) = (&log.events[..at - 3], &log.events[at - 3..at]);
    let closers = repair::closers(cut);
    assert_eq!(closers.len(), written.len());
    for (ours, theirs) in closers.iter().zip(written) {
        // The times of the stored log were spread out later on.
        let time = format!("\"time\":{},", theirs.time());
        let theirs = theirs.text().replacen(&time, &format!("\"time\":{},", cut[at - 4].time()), 1);
        assert_eq!(ours.text().as_str(), theirs);
    }
    let mark = seed::mark_after(written.last(), log.events[at].time());
    assert_eq!(mark.as_ref(), Some(&log.events[at]));
}

#[test]
fn any_prefix_of_a_real_log_can_be_closed() {
    let session = SessionId::new("s").unwrap();
    let mut closed = 0;
    for log in golden() {
        for (prefix, state) in prefixes(&log.events) {
            let closers = state.closers();
            assert_eq!(closers.is_empty(), !state.is_open());
            gate::check(&session, &closers, &Vocabulary::v0()).unwrap();
            let mut after = state.clone();
            for (at, closer) in closers.iter().enumerate() {
                assert_eq!(closer.seq(), Seq((prefix.len() + at) as u64));
                assert_eq!(closer.time(), prefix.last().unwrap().time());
                assert_eq!(&Event::parse(closer.text()).unwrap(), closer);
                after.push(closer);
            }
            assert!(!after.is_open() && after.closers().is_empty());
            closed += usize::from(!closers.is_empty());
        }
    }
    assert!(closed > 2000, "{closed}");
}

#[test]
fn the_state_of_a_prefix_is_that_of_reading_it_at_once() {
    for log in golden() {
        for (prefix, state) in prefixes(&log.events).step_by(1 + log.events.len() / 100) {
            assert_eq!(repair::closers(prefix), state.closers(), "{} {}", log.file, prefix.len());
        }
    }
}

#[test]
fn a_real_log_can_be_forked_exactly_where_no_turn_is_open() {
    let child = SessionId::new("child").unwrap();
    for log in golden() {
        let header = SessionHeader::parse(&log.header, None).unwrap();
        for (prefix, state) in prefixes(&log.events).skip(1) {
            let boundary = prefix.last().unwrap().seq();
            let fork = fork::cut(&header, &log.events, Some(boundary), child.clone(), 9);
            assert_eq!(fork.is_err(), state.is_open());
            let Ok(fork) = fork else { continue };
            assert_eq!(fork.events[..prefix.len()], *prefix);
            assert!(seed::is_mark(fork.events.last().unwrap()));
            assert_eq!(fork.header.seed_length, Some(prefix.len() as u64));
            assert_eq!(fork.header.cwd, header.cwd);
        }
    }
}

/// The stored child begins with its parent's first turn and a mark.
#[test]
fn a_fork_is_what_its_writer_made_of_it() {
    let parent = log("golden/subagent-fork-parent/session.jsonl");
    let child = log("golden/subagent-fork-child/session.jsonl");
    let header = |log: &Log| SessionHeader::parse(&log.header, None).unwrap();
    let (parent_header, child_header) = (header(&parent), header(&child));
    let length = child_header.seed_length.unwrap();
    let at = child.events.iter().position(seed::is_mark).unwrap();
    assert_eq!(at as u64, length);
    let fork = fork::cut(
        &parent_header,
        &parent.events,
        Some(Seq(length - 1)),
        child_header.id.clone(),
        child_header.created_at,
    );
    let fork = fork.unwrap();
    assert_eq!(fork.events[..at], child.events[..at]);
    assert_eq!(fork.events[at].event_type(), child.events[at].event_type());
    assert_eq!(fork.events[at].seq(), child.events[at].seq());
    // A subagent made the stored one, which its maker adds.
    let made = SessionHeader { origin: child_header.origin, delegation_depth: 1, ..fork.header };
    assert_eq!(made, child_header);
}

#[test]
fn real_sessions_are_not_blank() {
    for log in logs() {
        let blank = Blank::of(&log.events);
        assert!(!blank.blank, "{}", log.file);
        let prompt = log.events.iter().rfind(|event| {
            event.event_type() == "user/message"
                && event.data().path(&["source", "kind"]).unwrap().text() == "\"user\""
        });
        assert_eq!(blank.last_prompt_at, prompt.map(Event::time), "{}", log.file);
    }
}

#[test]
fn sessions_can_be_taken_up_from_real_logs_once_closed() {
    let session = SessionId::new("s").unwrap();
    for log in golden() {
        let seqs = validate::surface(&session, &log.events).unwrap();
        let replaced = log
            .events
            .iter()
            .filter(|event| event.surface_op().is_some_and(|op| op.text() != "\"append\""));
        let messages = log.events.iter().filter(|event| event.surface_op().is_some());
        // Those here that replace anything replace one message each.
        assert_eq!(seqs.len() + replaced.count(), messages.count(), "{}", log.file);
        for (prefix, state) in prefixes(&log.events).step_by(1 + log.events.len() / 50) {
            let mut whole = prefix.to_vec();
            whole.extend(state.closers());
            validate::surface(&session, &whole).unwrap();
        }
    }
}
