//! Real logs: the whole transcript, and each prefix of it.

use serde_json::Value;
use turnkeep_log::{Event, RecordScan, Seq, SessionHeader, SessionId, Text};

use super::{Fold, all, check, fold, id_of, is_boundary};

/// The logs, with how many prompts a person reading them counts.
pub(in crate::fold) const LOGS: [(&str, usize); 10] = [
    // One prompt; the compaction in the middle of its turn is none.
    ("compaction-recovery", 1),
    ("error-finish", 1),
    // One prompt, and a snapshot of the runtime that a plugin put beside it.
    ("packed-chunks", 1),
    ("parallel-tool-calls", 1),
    // The inherited prompt and the one from the parent.
    ("subagent-fork-child", 2),
    ("subagent-fork-parent", 2),
    ("text-turn", 1),
    ("todo-write", 1),
    ("tool-outcome-unknown", 2),
    // Two turns that the goal started, one command that a person typed.
    ("web-goal-multi-turn", 1),
];

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures");

/// The session and the events of a log, packed rows unpacked.
pub(in crate::fold) fn read(name: &str) -> (SessionId, Vec<Event>) {
    let log = std::fs::read_to_string(format!("{FIXTURES}/dsh/golden/{name}/session.jsonl"));
    let log = log.unwrap();
    let (first, rest) = log.split_once('\n').unwrap();
    let mut scan = RecordScan::new(Seq(0));
    scan.feed(&Text::from(rest));
    scan.committed().unwrap();
    (SessionHeader::parse(first, None).unwrap().id, scan.take_events())
}

#[test]
fn real_logs_fold_to_the_transcripts_worked_out_from_them() {
    for (name, _) in LOGS {
        let expected = std::fs::read_to_string(format!("{FIXTURES}/fold/{name}.json")).unwrap();
        let expected: Vec<Value> = serde_json::from_str(&expected).unwrap();
        let (session, events) = read(name);
        let found = all(&fold(&session, &events));
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
            // The order of the members, too.
            assert_eq!(found.to_string(), expected.to_string(), "{name}");
        }
        assert_eq!(found.len(), expected.len(), "{name}");
    }
}

#[test]
fn the_prompts_of_real_logs_are_those_a_reader_counts() {
    for (name, prompts) in LOGS {
        let (session, events) = read(name);
        let records = all(&fold(&session, &events));
        assert_eq!(records.iter().filter(|record| is_boundary(record)).count(), prompts, "{name}");
    }
}

#[test]
fn what_a_log_says_of_its_session() {
    let said = |name: &str| {
        let (session, events) = read(name);
        let fold = fold(&session, &events);
        (fold.title().map(str::to_owned), fold.last_prompt_at(), fold.blank())
    };
    let titled = |title: &str, time| (Some(title.to_owned()), Some(time), false);
    assert_eq!(said("text-turn"), titled("Reply with exactly the word:", 1_785_974_400_028));
    assert_eq!(
        said("tool-outcome-unknown"),
        titled("Perform one side-effecting remote mutati", 1_785_974_400_091)
    );
    // Nobody wrote a message there: the goal did.
    assert_eq!(said("web-goal-multi-turn"), (None, None, false));
}

#[test]
fn every_prefix_of_a_real_log_has_a_transcript_that_only_grows() {
    for (name, _) in LOGS {
        let (_, events) = read(name);
        let session = SessionId::new("s").unwrap();
        let mut fold = Fold::new(&session);
        let mut before: Vec<Value> = Vec::new();
        for event in &events {
            fold.push(event);
            // Long logs have long runs of deltas: one in some is enough there.
            let every = events.len() as u64 / 100;
            if event.event_type() == "assistant/chunk" && event.seq().0 % (every + 1) != 0 {
                continue;
            }
            let now = all(&fold);
            check(&fold);
            assert_grown(&before, &now, event);
            before = now;
        }
        assert_eq!(before, all(&super::fold(&session, &events)), "{name}");
    }
}

/// Records stay in their order, and keep their ids and the ids and types of their parts. Ones that
/// were left out until now may come in between.
fn assert_grown(before: &[Value], now: &[Value], event: &Event) {
    let mut now = now.iter();
    for old in before {
        let new = now.find(|new| id_of(new) == id_of(old));
        let new = new.unwrap_or_else(|| panic!("{} is gone at {}", id_of(old), event.seq()));
        let kinds = |record: &Value| -> Vec<(String, String)> {
            let parts = record["parts"].as_array().unwrap().iter();
            parts.map(|part| (part["id"].to_string(), part["type"].to_string())).collect()
        };
        let (old, new) = (kinds(old), kinds(new));
        assert!(old.iter().all(|part| new.contains(part)), "{old:?} {new:?} at {}", event.seq());
    }
}

#[test]
fn a_log_read_twice_over_a_seam_folds_once() {
    let (session, events) = read("subagent-fork-parent");
    let whole = all(&fold(&session, &events));
    for at in [0, 1, 60, 110, 157, 158, 159, events.len()] {
        let mut fold = fold(&session, &events[..at]);
        for event in &events[at / 2..] {
            fold.push(event);
        }
        assert_eq!(fold.next_seq(), Seq(events.len() as u64));
        assert_eq!(all(&fold), whole);
    }
}
