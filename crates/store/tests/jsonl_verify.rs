//! Verifying jsonl logs: real ones, damaged ones, forks, and sessions in the wrong place.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::fs;

use support::{
    append, create,
    disk::{BOTH, Disk, lay, log_name, pack},
    event_of,
    fixtures::{self, Fixture},
    id, never, store_session,
};
use turnkeep_log::SessionHeader;
use turnkeep_store::{
    Access, EventRange, SessionStore,
    jsonl::{Encoding, JsonlOptions, JsonlStore},
    verify::{FindingKind as Kind, Progress, Severity, Verification},
};

fn rooted(fixture: &Fixture) -> Disk {
    let disk = Disk::new(fixture.encoding);
    let dir = disk.root().join(fixture.project()).join(&fixture.session);
    lay(&dir.join(log_name(fixture.encoding)), &fixture.bytes);
    disk
}

async fn verify(store: &dyn SessionStore, session: &str) -> Verification {
    store.verify(&id(session), &Progress::none(), &never()).await.unwrap()
}

fn kinds(verification: &Verification) -> Vec<&'static str> {
    verification.findings.iter().map(|finding| finding.kind.as_str()).collect()
}

/// What a reader of the store says: how many events, or which kind of error.
async fn read(store: &dyn SessionStore, session: &str) -> Result<u64, &'static str> {
    let handle = store.open(&id(session), Access::Read, &never()).await;
    let handle = handle.map_err(|error| error.kind())?;
    let events = handle.read(EventRange::ALL, &never()).await.map_err(|error| error.kind())?;
    Ok(events.len() as u64)
}

/// Both must come to the same verdict.
async fn compare(store: &dyn SessionStore, session: &str) -> Verification {
    let read = read(store, session).await;
    let verification = verify(store, session).await;
    match read {
        Ok(events) => {
            assert_eq!(verification.refused, None, "{verification:#?}");
            assert_eq!(verification.events, events, "{verification:#?}");
            assert!(verification.severity() <= Some(Severity::Incomplete), "{verification:#?}");
        }
        Err(kind) => {
            assert_eq!(verification.refused, Some(kind), "{verification:#?}");
            assert!(verification.severity() > Some(Severity::Incomplete), "{verification:#?}");
        }
    }
    verification
}

#[tokio::test]
async fn real_logs_are_intact() {
    for fixture in fixtures::all("golden") {
        let disk = rooted(&fixture);
        let found = compare(&disk.store(), &fixture.session).await;
        assert!(found.is_intact(), "{}: {found:#?}", fixture.name);
        assert_eq!(found.found, found.events);
        assert_eq!(found.size_bytes, Some(fixture.bytes.len() as u64));
        assert!(!found.writer_active && !found.pending && found.branches.is_empty());
        // It leaves nothing behind.
        let dir = disk.root().join(fixture.project()).join(&fixture.session);
        assert_eq!(support::disk::names(&dir), [log_name(fixture.encoding)]);
    }
}

/// The name of a damaged log, its verdict, the findings with their offsets, and how many events are
/// read before and behind the first of them.
type Expected = (&'static str, &'static str, &'static [(Kind, u64)], u64, u64);

#[tokio::test]
async fn damaged_logs_have_their_verdicts() {
    let expected: &[Expected] = &[
        ("zstd-torn-1byte.zstd", "incomplete", &[(Kind::TornTail, 3191)], 123, 1),
        ("zstd-torn-magic2.zstd", "incomplete", &[(Kind::TornTail, 3296)], 124, 0),
        ("zstd-checksum-mid.zstd", "damaged", &[(Kind::BadFrame, 136)], 0, 116),
        ("zstd-garbage-tail.zstd", "damaged", &[(Kind::GarbageTail, 3296)], 124, 0),
        ("zstd-zero-tail.zstd", "incomplete", &[(Kind::ZeroedTail, 3296)], 124, 0),
        ("zstd-complete-frame-torn-record.zstd", "damaged", &[(Kind::BadRecord, 3296)], 124, 0),
        ("zstd-empty.zstd", "damaged", &[(Kind::TruncatedHeader, 0)], 0, 0),
        ("raw-torn.jsonl", "incomplete", &[(Kind::TornTail, 9388)], 124, 0),
        ("raw-gap-committed.jsonl", "damaged", &[(Kind::SeqGap, 9388)], 124, 2),
        (
            "raw-bad-json-tail.jsonl",
            "incomplete",
            &[(Kind::BadRecord, 9388), (Kind::UncommittedTail, 9388)],
            124,
            0,
        ),
        ("raw-unknown-type.jsonl", "unsupported", &[(Kind::UnknownType, 9388)], 124, 0),
        ("raw-unknown-ignorable.jsonl", "intact", &[], 0, 0),
        ("raw-extension-turn-end.jsonl", "intact", &[], 0, 0),
        ("raw-open-turn.jsonl", "intact", &[], 0, 0),
        ("raw-future-version.jsonl", "unsupported", &[(Kind::Newer, 0)], 0, 0),
        ("raw-retired-header-field.jsonl", "damaged", &[(Kind::BadHeader, 0)], 0, 124),
        ("raw-legacy-fallback.jsonl", "damaged", &[(Kind::MalformedMessage, 9388)], 124, 0),
        ("raw-header-delta.jsonl", "unsupported", &[(Kind::RetiredType, 9388)], 124, 0),
        ("raw-message-without-id.jsonl", "damaged", &[(Kind::MalformedMessage, 9388)], 124, 0),
        ("raw-blank-line.jsonl", "damaged", &[(Kind::BadRecord, 547)], 2, 122),
    ];
    let fixtures = fixtures::all("damaged");
    assert_eq!(fixtures.len(), expected.len(), "a verdict for every log");
    let mut wrong = Vec::new();
    for (name, verdict, findings, before, after) in expected {
        let fixture = fixtures.iter().find(|fixture| fixture.name.ends_with(name)).unwrap();
        let disk = rooted(fixture);
        let found = compare(&disk.store(), &fixture.session).await;
        let got: Vec<_> = found
            .findings
            .iter()
            .map(|finding| (finding.kind, finding.offset.unwrap_or(u64::MAX)))
            .collect();
        let first = found.findings.first();
        let (b, a) = first.map_or((0, 0), |first| (first.before, first.after));
        if found.verdict() != *verdict || got != *findings || (b, a) != (*before, *after) {
            wrong.push(format!("{name}: {} {got:?} {b} {a}", found.verdict()));
        }
        assert_eq!(disk.bytes(&fixture.session), fixture.bytes, "{name}: untouched");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lines of `todo/write` events, with a text that tells writers apart.
fn lines(first: u64, count: u64, writer: &str) -> String {
    let event = |seq| event_of("todo/write", seq, &format!(r#"{{"todos":["{writer}"]}}"#));
    (first..first + count).fold(String::new(), |lines, seq| lines + event(seq).text() + "\n")
}

const TURN_END: &str = r#"{"turn":1,"reason":{"kind":"completed"}}"#;

fn turn_end(seq: u64) -> String {
    event_of("turn/end", seq, TURN_END).text().to_string() + "\n"
}

/// The log of a session `s` with these batches.
fn log_of(disk: &Disk, batches: &[&str]) -> Vec<u8> {
    let header = support::header("s").to_line() + "\n";
    let parts = [&[header.as_str()], batches].concat();
    parts.iter().flat_map(|part| disk.encode(part)).collect()
}

#[tokio::test]
async fn two_writers_make_a_fork_and_both_are_shown() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        // Two programs that take no lock: each went on from event 4, and both again.
        let batches = [
            &*lines(0, 4, "a"),
            &lines(4, 3, "a"),
            &lines(4, 2, "b"),
            &lines(7, 1, "a"),
            &lines(6, 2, "b"),
            &turn_end(8),
        ];
        disk.lay("s", &log_of(&disk, &batches));
        let found = compare(&disk.store(), "s").await;
        let offset = log_of(&disk, &batches[..2]).len() as u64;
        assert_eq!(kinds(&found), ["fork"], "{encoding:?} {found:#?}");
        let fork = &found.findings[0];
        assert_eq!(fork.offset, Some(offset));
        assert_eq!((fork.before, fork.after), (7, 6));
        assert!(fork.message.contains("from event 4: events 4 to 8"), "{}", fork.message);
        let branches: Vec<_> = found
            .branches
            .iter()
            .map(|of| (of.first.0, of.end.0, of.offset, of.differs_at.map(|seq| seq.0)))
            .collect();
        let theirs = log_of(&disk, &batches[..1]).len() as u64;
        // The turn's end continues whoever was there last.
        assert_eq!(branches, [(4, 8, Some(theirs), None), (4, 9, Some(offset), Some(4))]);
        assert_eq!(found.branches[1].first_time, Some(1_700_000_000_004));
        assert_eq!(found.branches[1].last_time, Some(1_700_000_000_008));
        assert_eq!((found.events, found.found), (7, 13));
    }
}

#[tokio::test]
async fn a_batch_that_was_written_twice_is_no_fork() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let batches = [&*lines(0, 4, "a"), &lines(2, 2, "a"), &lines(4, 1, "a"), &turn_end(5)];
        disk.lay("s", &log_of(&disk, &batches));
        let found = compare(&disk.store(), "s").await;
        assert_eq!(kinds(&found), ["seq_duplicate"], "{encoding:?} {found:#?}");
        assert!(found.branches.iter().all(|branch| branch.differs_at.is_none()));
    }
}

#[tokio::test]
async fn every_fault_is_told_not_only_the_first() {
    // Two bad frames, garbage between others, and a torn end.
    let disk = Disk::new(Encoding::Zstd);
    let batches: Vec<String> = (0..8).map(|batch| lines(batch * 3, 3, "a")).collect();
    let mut frames: Vec<Vec<u8>> = batches.iter().map(|batch| pack(batch)).collect();
    for bad in [1, 4] {
        let middle = frames[bad].len() / 2;
        frames[bad][middle] ^= 0x55;
    }
    frames.insert(6, b"no frame at all".to_vec());
    let last = frames.pop().unwrap();
    frames.push(last[..last.len() - 5].to_vec());
    let header = pack(&(support::header("s").to_line() + "\n"));
    let bytes = [header, frames.concat()].concat();
    disk.lay("s", &bytes);
    let found = compare(&disk.store(), "s").await;
    let told: Vec<_> = found
        .findings
        .iter()
        .map(|finding| (finding.kind.as_str(), finding.lost.clone(), finding.before, finding.after))
        .collect();
    let torn_yields = found.found - 15;
    assert_eq!(
        told,
        [
            ("bad_frame", Some(3..6), 3, 12 + torn_yields),
            ("bad_frame", Some(12..15), 9, 6 + torn_yields),
            ("garbage", None, 12, 3 + torn_yields),
            ("torn_tail", None, 15, torn_yields),
        ],
        "{found:#?}"
    );

    let disk = Disk::new(Encoding::None);
    let text = [
        &*lines(0, 2, "a"),
        "no record\n",
        "nor this\n",
        &lines(4, 2, "a"),
        "\n",
        &lines(6, 1, "a"),
        &lines(9, 1, "a"),
        &turn_end(10),
        "{\"type\":\"tu",
    ];
    disk.lay("s", &log_of(&disk, &text));
    let found = compare(&disk.store(), "s").await;
    let told: Vec<_> = found
        .findings
        .iter()
        .map(|finding| (finding.kind.as_str(), finding.line, finding.count, finding.lost.clone()))
        .collect();
    assert_eq!(
        told,
        [
            ("bad_record", Some(3), 2, Some(2..4)),
            ("bad_record", Some(7), 1, None),
            ("seq_gap", Some(9), 1, Some(7..9)),
            ("torn_tail", None, 1, None),
        ],
        "{found:#?}"
    );
    assert_eq!((found.events, found.found), (2, 7));
}

#[tokio::test]
async fn lines_that_were_never_committed_are_a_tail() {
    let disk = Disk::new(Encoding::None);
    let text = [&*lines(0, 2, "a"), &lines(5, 2, "a")];
    disk.lay("s", &log_of(&disk, &text));
    let found = compare(&disk.store(), "s").await;
    assert_eq!(kinds(&found), ["seq_gap", "uncommitted_tail"]);
    assert_eq!(found.verdict(), "incomplete");
    assert_eq!((found.findings[1].before, found.findings[1].after), (2, 2));
}

#[tokio::test]
async fn what_readers_refuse_in_order_is_told_by_type() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let strange = |seq, event_type| event_of(event_type, seq, "{}").text().to_string() + "\n";
        let batches = [
            lines(0, 2, "a") + &strange(2, "acme/a") + &strange(3, "acme/b"),
            strange(4, "acme/a") + &strange(5, "mode/set") + &strange(6, "user/message"),
        ];
        disk.lay("s", &log_of(&disk, &[&batches[0], &batches[1]]));
        let found = compare(&disk.store(), "s").await;
        let told: Vec<_> = found
            .findings
            .iter()
            .map(|finding| (finding.kind.as_str(), finding.seq.unwrap().0, finding.count))
            .collect();
        assert_eq!(
            told,
            [
                ("unknown_type", 2, 2),
                ("unknown_type", 3, 1),
                ("retired_type", 5, 1),
                ("malformed_message", 6, 1)
            ],
            "{found:#?}"
        );
        assert_eq!(found.refused, Some("format_unsupported"));
        assert_eq!((found.findings[0].before, found.findings[0].after), (2, 4));
        if encoding == Encoding::None {
            let line = found.findings[0].offset.unwrap();
            assert_eq!(line, log_of(&disk, &[&lines(0, 2, "a")]).len() as u64);
        }
    }
}

#[tokio::test]
async fn headers_that_are_wrong_do_not_hide_the_events() {
    for encoding in BOTH {
        let other =
            SessionHeader { cwd: Some("/work/proj".to_owned()), ..support::header("other") };
        let elsewhere = SessionHeader { cwd: Some("/else".to_owned()), ..support::header("s") };
        for (header, kind) in [
            (other.to_line(), "wrong_id"),
            (elsewhere.to_line(), "wrong_place"),
            ("{\"type\":\"session\",\"version\":0}".to_owned(), "bad_header"),
            ("not JSON".to_owned(), "bad_header"),
        ] {
            let disk = Disk::new(encoding);
            let log = [disk.encode(&(header + "\n")), disk.encode(&lines(0, 5, "a"))].concat();
            disk.lay("s", &log);
            let found = compare(&disk.store(), "s").await;
            assert_eq!(kinds(&found), [kind]);
            assert_eq!((found.events, found.found), (5, 5));
        }
    }
    // The header's frame is damaged, is missing, or has bytes before it.
    let disk = Disk::new(Encoding::Zstd);
    let log = log_of(&disk, &[&lines(0, 5, "a")]);
    let header = log_of(&disk, &[]).len();
    let mut damaged = log.clone();
    damaged[header / 2] ^= 1;
    let shifted = [b"garbage".as_slice(), &log].concat();
    for (bytes, offset_of_events) in [(damaged, 0), (log[header..].to_vec(), 0), (shifted, 7)] {
        disk.lay("s", &bytes);
        let found = compare(&disk.store(), "s").await;
        assert_eq!(found.findings[0].kind.as_str(), "bad_header", "{found:#?}");
        assert_eq!(
            found.found,
            if offset_of_events == 0 && bytes.len() < log.len() { 4 } else { 5 }
        );
    }
}

#[tokio::test]
async fn sessions_in_the_wrong_place_are_told() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "s", 3).await;
    let log = disk.bytes("s");

    // A newer harness has taken it over.
    fs::write(disk.session_dir("s").join("session.v2.jsonl.zstd"), "x").unwrap();
    let found = compare(&disk.store(), "s").await;
    assert_eq!(kinds(&found), ["newer"]);
    fs::remove_file(disk.session_dir("s").join("session.v2.jsonl.zstd")).unwrap();
    assert!(compare(&disk.store(), "s").await.is_intact());

    // A copy in another project.
    let copy = disk.root().join("--copy--").join("s").join(disk.log_name());
    lay(&copy, &log);
    let found = compare(&disk.store(), "s").await;
    assert_eq!(kinds(&found)[..2], ["duplicate_session"; 2]);
    assert!(
        found
            .findings
            .iter()
            .any(|finding| finding.kind == Kind::WrongPlace
                && finding.path.as_deref() == Some(&copy))
    );
    fs::remove_file(&copy).unwrap();

    // The layout of early builds.
    fs::write(disk.root().join("--work-proj--").join("flat.jsonl"), "x").unwrap();
    assert_eq!(kinds(&compare(&disk.store(), "flat").await), ["obsolete"]);

    // The other encoding is looked into all the same.
    let text =
        support::header("t").to_line() + "\n" + &lines(0, 4, "a") + "broken\n" + &turn_end(5);
    lay(&disk.session_dir("t").join("session.jsonl"), text.as_bytes());
    let found = compare(&disk.store(), "t").await;
    assert_eq!(kinds(&found), ["other_encoding", "bad_record"], "{found:#?}");
    assert_eq!((found.events, found.findings[1].lost.clone()), (4, Some(4..5)));

    assert_eq!(
        disk.store().verify(&id("no"), &Progress::none(), &never()).await.unwrap_err().kind(),
        "not_found"
    );
    let cancelled = support::cancelled();
    let refused = disk.store().verify(&id("s"), &Progress::none(), &cancelled).await;
    assert_eq!(refused.unwrap_err().kind(), "cancelled");
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_told() {
    let disk = Disk::new(Encoding::None);
    fs::create_dir_all(disk.session_dir("s").join("session.jsonl")).unwrap();
    let found = verify(&disk.store(), "s").await;
    assert_eq!(kinds(&found), ["unreadable"]);
    assert_eq!(found.refused, Some("io"));
}

#[tokio::test]
async fn a_writer_at_work_is_told_and_not_disturbed() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        let pending = create(&store, "s").await;
        let found = verify(&store, "s").await;
        assert!(found.pending && found.is_intact() && found.events == 0);
        append(&*pending, 0, 3).await;
        for store in [&store, &disk.store()] {
            let found = compare(store, "s").await;
            assert!(found.is_intact() && found.writer_active, "{found:#?}");
            assert_eq!(found.events, 3);
        }
        // What an append has written so far: no part of the log for its own store.
        disk.add("s", &disk.encode(&lines(3, 2, "a"))[..9]);
        assert!(compare(&store, "s").await.is_intact());
        let found = compare(&disk.store(), "s").await;
        assert_eq!(kinds(&found), ["torn_tail"]);
        assert!(found.writer_active);
        pending.close().await.unwrap();
        assert!(!verify(&disk.store(), "s").await.writer_active);
    }
}

/// A frame of a few kilobytes that unpacks to gigabytes, between good ones.
#[tokio::test]
async fn a_bomb_is_passed_over() {
    let disk = Disk::new(Encoding::Zstd);
    let run: u32 = 128 << 10;
    let block = |last: u32| (run << 3 | 1 << 1 | last).to_le_bytes();
    let mut bomb = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    for _ in 0..40_000 {
        bomb.extend_from_slice(&block(0)[..3]);
        bomb.push(b'x');
    }
    bomb.extend_from_slice(&block(1)[..3]);
    bomb.push(b'x');
    let log = [log_of(&disk, &[&lines(0, 2, "a")]), bomb, pack(&lines(4, 2, "a"))].concat();
    disk.lay("s", &log);
    let options = JsonlOptions { max_frame_bytes: 1 << 20, ..disk.options() };
    let store = JsonlStore::open(options).unwrap();
    let found = compare(&store, "s").await;
    assert_eq!(kinds(&found), ["too_large"], "{found:#?}");
    assert_eq!((found.findings[0].lost.clone(), found.found), (Some(2..4), 4));
}

#[tokio::test]
async fn any_number_of_faults_takes_bounded_room() {
    let disk = Disk::new(Encoding::None);
    let text: String =
        (0..5000).fold(String::new(), |text, n| text + "no\n" + &lines(n * 2, 1, "a"));
    disk.lay("s", &log_of(&disk, &[&text, &turn_end(10_000)]));
    let found = compare(&disk.store(), "s").await;
    assert_eq!(found.findings.len(), 1000);
    assert!(found.omitted > 3000);
    assert_eq!(found.found, 5001);
}

#[tokio::test]
async fn progress_comes_to_its_end() {
    let disk = Disk::new(Encoding::Zstd);
    store_session(&disk.store(), "s", 300).await;
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = std::sync::Arc::clone(&told);
    let progress = Progress::new(move |done, of| sink.lock().unwrap().push((done, of)));
    disk.store().verify(&id("s"), &progress, &never()).await.unwrap();
    let size = disk.bytes("s").len() as u64;
    let told = told.lock().unwrap();
    assert!(told.iter().all(|(done, of)| done <= of && *of == size));
    assert!(told.is_sorted() && told.len() > 1);
}

#[test]
fn kinds_have_words_of_their_own() {
    let words: std::collections::BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(words.len(), Kind::ALL.len());
}
