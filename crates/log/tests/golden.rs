//! Real logs, written by another implementation, and its own verdict on each.
//!
//! Where this crate rules otherwise than the writer did, [`damaged_logs_get_their_verdict`] says so.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::{collections::HashMap, fmt::Write as _, fs, path::PathBuf};

use sha2::{Digest as _, Sha256};
use turnkeep_log::{
    Event, GateError, HeaderError, RecordScan, Seq, SessionHeader, SessionId, Text, Vocabulary,
    gate,
    packed::{lines, pack_batch, unpack},
    records::{Problem, decode_lossy},
};

struct Log {
    file: String,
    header: String,
    events: Text,
    id: SessionId,
    verdict: serde_json::Value,
}

/// The logs without compression whose file starts with `prefix`.
fn logs(prefix: &str) -> Vec<Log> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/dsh");
    let manifest = fs::read_to_string(root.join("manifest.json")).unwrap();
    let manifest: Vec<serde_json::Value> = serde_json::from_str(&manifest).unwrap();
    let logs: Vec<Log> = manifest
        .into_iter()
        .filter(|entry| entry["compression"] == "none")
        .filter(|entry| entry["file"].as_str().unwrap().starts_with(prefix))
        .map(|entry| {
            let file = entry["file"].as_str().unwrap();
            let text = decode_lossy(fs::read(root.join(file)).unwrap());
            let (header, events) = text.split_once('\n').unwrap();
            Log {
                file: file.to_owned(),
                header: header.to_owned(),
                events: text.slice_of(events),
                id: SessionId::new(entry["id"].as_str().unwrap()).unwrap(),
                verdict: entry["verdict"].clone(),
            }
        })
        .collect();
    assert!(logs.len() >= 10, "fixtures are missing");
    logs
}

fn scan(text: &Text) -> (Vec<Event>, RecordScan) {
    let mut scan = RecordScan::new(Seq(0));
    scan.feed(text);
    (scan.take_events(), scan)
}

/// The digest by which two readers agree on what a log says.
fn logical_sha256(events: &[Event]) -> String {
    let text: Vec<&str> = events.iter().map(|event| event.text().as_str()).collect();
    Sha256::digest(text.join("\n")).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn assert_reads_as(log: &Log, events: &[Event]) {
    assert_eq!(events.len() as u64, log.verdict["events"].as_u64().unwrap(), "{}", log.file);
    assert_eq!(logical_sha256(events), log.verdict["logicalSha256"], "{}", log.file);
}

#[test]
fn golden_logs_read_as_their_writer_reads_them() {
    for log in logs("golden/") {
        let header = SessionHeader::parse(&log.header, Some(&log.id)).unwrap();
        assert_eq!(header.to_line(), log.header, "{}", log.file);
        let (events, scan) = scan(&log.events);
        assert_eq!(scan.problem(), None, "{}", log.file);
        assert_eq!(scan.accepted_bytes(), log.events.len() as u64, "{}", log.file);
        assert_reads_as(&log, &events);
        gate::check(&log.id, &events, &Vocabulary::v0()).unwrap();
    }
}

#[test]
fn a_log_reads_the_same_line_by_line() {
    for log in logs("golden/") {
        let mut scan = RecordScan::new(Seq(0));
        for line in log.events.split_inclusive('\n') {
            scan.feed(&log.events.slice_of(line));
        }
        assert_eq!(scan.accepted_bytes(), log.events.len() as u64);
        assert_eq!(scan.accepted_lines(), log.events.lines().count() as u64);
        assert_reads_as(&log, &scan.take_events());
    }
}

#[test]
fn rows_are_packed_as_their_writer_packs_them() {
    let mut rows = 0;
    for log in logs("golden/") {
        for line in log.events.split_inclusive('\n').filter(|line| line.contains("\"seq0\"")) {
            let events = unpack(&log.events.slice_of(line)).unwrap();
            assert_eq!(pack_batch(&events), line, "{}", log.file);
            rows += 1;
        }
    }
    assert!(rows >= 30, "{rows}");
}

#[test]
fn repacked_logs_say_the_same() {
    for log in logs("golden/") {
        let (events, _) = scan(&log.events);
        let packed = pack_batch(&events);
        let plain = lines(&events);
        assert!(packed.len() <= plain.len());
        for text in [packed, plain] {
            let (again, scan) = scan(&Text::from(text));
            assert_eq!(scan.problem(), None, "{}", log.file);
            assert_eq!(again, events, "{}", log.file);
            assert_reads_as(&log, &again);
        }
    }
}

#[test]
fn damaged_logs_get_their_verdict() {
    let logs: HashMap<String, Log> = logs("damaged/")
        .into_iter()
        .map(|log| (log.file.trim_start_matches("damaged/raw-").replace(".jsonl", ""), log))
        .collect();
    let vocabulary = Vocabulary::v0();
    let mut seen = Vec::new();
    let mut log = |name: &'static str| {
        seen.push(name);
        let log = &logs[name];
        (log, scan(&log.events))
    };

    // A tail that no finished turn follows is left out, and the verdict is that of the rest.
    let (torn, (events, scan)) = log("torn");
    assert_reads_as(torn, &events);
    assert_eq!(scan.problem(), Some(&Problem::Unterminated { line: 36 }));
    assert_eq!(scan.committed(), Ok(()));
    let end = torn.events.rfind('\n').unwrap() as u64 + 1;
    assert_eq!((scan.accepted_bytes(), scan.accepted_lines()), (end, 35));

    let (bad_tail, (events, scan)) = log("bad-json-tail");
    assert_reads_as(bad_tail, &events);
    assert!(matches!(scan.problem(), Some(Problem::Unparsable { line: 36, .. })));
    assert_eq!(scan.committed(), Ok(()));

    // Before a finished turn, the same is corruption, in the writer's own words.
    for (name, words) in [
        ("gap-committed", "seq gap in committed region at line 36 (expected 124, got 127)"),
        ("blank-line", "unparsable committed event at line 3"),
    ] {
        let (log, (_, scan)) = log(name);
        assert!(log.verdict["message"].as_str().unwrap().contains(words));
        assert!(scan.committed().unwrap_err().to_string().contains(words), "{name}");
    }

    for name in ["unknown-ignorable", "open-turn"] {
        let (log, (events, scan)) = log(name);
        assert_reads_as(log, &events);
        assert_eq!(scan.problem(), None);
        gate::check(&log.id, &events, &vocabulary).unwrap();
    }

    // The writer's build projected old turn events; reads here change nothing.
    let (extension, (events, scan)) = log("extension-turn-end");
    assert_eq!((events.len(), scan.problem()), (126, None));
    assert!(events[124].text().contains("trigger"));
    gate::check(&extension.id, &events, &vocabulary).unwrap();

    for (name, event_type) in
        [("unknown-type", "acme/telemetry"), ("header-delta", "request/header-delta")]
    {
        let (log, (events, _)) = log(name);
        let error = gate::check(&log.id, &events, &vocabulary).unwrap_err();
        assert_eq!(error.kind(), "format_unsupported");
        let start =
            format!("session \"{}\" contains event type \"{event_type}\" (seq 124) ", log.id);
        assert!(error.to_string().starts_with(&start), "{error}");
    }

    for (name, words) in [
        ("message-without-id", "session event at seq 124 lacks an identified message"),
        ("legacy-fallback", "unsupported legacy request/header reason \"fallback\""),
    ] {
        let (log, (events, _)) = log(name);
        let error = gate::check(&log.id, &events, &vocabulary).unwrap_err();
        assert!(matches!(error, GateError::Corrupt { seq: Seq(124), .. }), "{name}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(log.verdict["message"].as_str().unwrap().contains(words));
    }

    let (future, _) = log("future-version");
    let error = SessionHeader::parse(&future.header, Some(&future.id)).unwrap_err();
    assert_eq!(error.kind(), "format_unsupported");
    let start = format!("session \"{}\" uses log format v42, ", future.id);
    assert!(error.to_string().starts_with(&start));
    assert!(error.to_string().contains("written by a newer harness — upgrade the harness to open"));

    let (retired, _) = log("retired-header-field");
    let error = SessionHeader::parse(&retired.header, Some(&retired.id)).unwrap_err();
    assert!(matches!(error, HeaderError::Corrupt { .. }));
    assert!(error.to_string().contains(retired.verdict["message"].as_str().unwrap()), "{error}");

    assert_eq!(seen.len(), logs.len(), "a damaged log without a verdict here");
}
