//! The jsonl store on real logs: intact ones, and ones that were damaged by hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, process::Command};

use support::{
    append,
    disk::{BOTH, Disk, lay, log_name, pack, unpack},
    fixtures::{self, Fixture, Verdict, sha256},
    id, never, open, read, read_range, seqs,
};
use turnkeep_log::{Event, SessionHeader, records};
use turnkeep_store::{Access, EventRange, ListQuery, SessionState, SessionStore, jsonl::Encoding};

/// A root that holds one of the logs.
fn rooted(fixture: &Fixture) -> Disk {
    let disk = Disk::new(fixture.encoding);
    let dir = disk.root().join(fixture.project()).join(&fixture.session);
    lay(&dir.join(log_name(fixture.encoding)), &fixture.bytes);
    disk
}

async fn read_fixture(fixture: &Fixture) -> Vec<Event> {
    let disk = rooted(fixture);
    read(&*open(&disk.store(), &fixture.session, Access::Read).await).await
}

/// The text of each frame.
fn frames(bytes: &[u8]) -> Vec<String> {
    use std::io::Read as _;
    let mut rest = bytes;
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let mut text = String::new();
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap();
        decoder.read_to_string(&mut text).unwrap();
        frames.push(text);
    }
    frames
}

/// The events of the records of a text, without the store's reader.
fn events_of(text: &str) -> Vec<Event> {
    text.lines().flat_map(|line| records::decode(&line.into()).unwrap()).collect()
}

#[tokio::test]
async fn real_logs_read_as_their_own_reader_reads_them() {
    let golden = fixtures::all("golden");
    assert!(golden.len() >= 20);
    for fixture in golden {
        let Verdict::Events { count, sha256: expected } = &fixture.verdict else {
            panic!("{}", fixture.name)
        };
        let disk = rooted(&fixture);
        for access in [Access::Read, Access::Write] {
            let store = disk.store();
            let handle = open(&store, &fixture.session, access).await;
            let events = read(&*handle).await;
            assert_eq!(events.len(), *count, "{}", fixture.name);
            assert_eq!(sha256(&events), *expected, "{}", fixture.name);
            // Every place in it is a place to read from.
            for offset in (0..events.len()).step_by(53) {
                let range = EventRange { offset: offset as u64, length: Some(5) };
                let slice = handle.read(range, &never()).await.unwrap();
                assert_eq!(slice, events[offset..events.len().min(offset + 5)]);
            }
        }
        // Reading and opening change nothing.
        let path = disk.root().join(fixture.project()).join(&fixture.session);
        assert_eq!(fs::read(path.join(log_name(fixture.encoding))).unwrap(), fixture.bytes);
    }
}

#[tokio::test]
async fn both_encodings_of_a_log_hold_the_same_text() {
    for fixture in fixtures::all("golden") {
        if fixture.encoding == Encoding::Zstd {
            let plain = fixtures::named("golden", fixture.name.strip_suffix(".zstd").unwrap());
            assert_eq!(frames(&fixture.bytes).concat().into_bytes(), plain.bytes);
        }
    }
}

/// Written again, batch by batch, a real log has the bytes that its own writer gave it.
#[tokio::test]
async fn real_logs_are_written_as_their_own_writer_writes_them() {
    for fixture in fixtures::all("golden") {
        if fixture.encoding == Encoding::None {
            continue;
        }
        let plain = fixtures::named("golden", fixture.name.strip_suffix(".zstd").unwrap());
        let frames = frames(&fixture.bytes);
        let (header, batches) = frames.split_first().unwrap();
        let header = SessionHeader::parse(header.trim_end(), None).unwrap();
        for encoding in BOTH {
            let disk = Disk::new(encoding);
            let store = disk.store();
            let handle = store.create(header.clone(), &never()).await.unwrap();
            for batch in batches {
                handle.append(events_of(batch), &never()).await.unwrap();
            }
            let path = disk.root().join(fixture.project()).join(&fixture.session);
            let path = path.join(disk.log_name());
            let text = match encoding {
                Encoding::None => fs::read_to_string(&path).unwrap(),
                Encoding::Zstd => {
                    let bytes = fs::read(&path).unwrap();
                    assert_eq!(self::frames(&bytes), frames, "one frame a batch");
                    let output = Command::new("zstd").arg("-dcf").arg(&path).output().unwrap();
                    assert!(output.status.success());
                    assert_eq!(output.stdout, plain.bytes, "what the zstd command prints");
                    unpack(&bytes)
                }
            };
            assert_eq!(text.into_bytes(), plain.bytes, "{} {encoding:?}", fixture.name);
        }
    }
}

/// What is expected of a damaged log.
enum Expected {
    /// As many events of the intact log.
    Events(usize),
    /// Its kind, and a part of its text.
    Refused(&'static str, &'static str),
}

/// The hand-damaged logs. All were made from one intact log of 124 events.
fn damaged() -> Vec<(Fixture, Expected)> {
    use Expected::{Events, Refused};
    let intact = fixtures::named("golden", "packed-chunks/session.jsonl.zstd");
    let frames = frames(&intact.bytes);
    let without_last_frame = events_of(&frames[1..frames.len() - 1].concat()).len();
    assert!(without_last_frame < 124);
    let verdicts = [
        // The batch was not acknowledged, however much of it is there.
        ("zstd-torn-1byte.zstd", Events(without_last_frame)),
        ("zstd-torn-magic2.zstd", Events(124)),
        ("zstd-checksum-mid.zstd", Refused("corrupt", "frame at byte 136 failed validation")),
        ("zstd-garbage-tail.zstd", Refused("corrupt", "invalid frame magic at byte 3296")),
        ("zstd-zero-tail.zstd", Events(124)),
        (
            "zstd-complete-frame-torn-record.zstd",
            Refused("corrupt", "complete frame contains a torn JSONL record"),
        ),
        ("zstd-empty.zstd", Refused("corrupt", "empty or header-less")),
        ("raw-torn.jsonl", Events(124)),
        (
            "raw-gap-committed.jsonl",
            Refused("corrupt", "seq gap in committed region at line 36 (expected 124, got 127)"),
        ),
        ("raw-bad-json-tail.jsonl", Events(124)),
        ("raw-unknown-type.jsonl", Refused("format_unsupported", "\"acme/telemetry\" (seq 124)")),
        ("raw-unknown-ignorable.jsonl", Events(125)),
        ("raw-extension-turn-end.jsonl", Events(126)),
        ("raw-open-turn.jsonl", Events(126)),
        (
            "raw-future-version.jsonl",
            Refused("format_unsupported", "uses log format v42, but this build reads only v0"),
        ),
        (
            "raw-retired-header-field.jsonl",
            Refused("corrupt", "uses retired policy baseline fields"),
        ),
        ("raw-legacy-fallback.jsonl", Refused("corrupt", "fallback")),
        ("raw-header-delta.jsonl", Refused("format_unsupported", "request/header-delta")),
        ("raw-message-without-id.jsonl", Refused("corrupt", "event at seq 124")),
        ("raw-blank-line.jsonl", Refused("corrupt", "unparsable committed event at line 3")),
    ];
    let mut fixtures = fixtures::all("damaged");
    assert_eq!(fixtures.len(), verdicts.len(), "a verdict for every log");
    let take = |(name, expected): (&str, Expected)| {
        let at = fixtures.iter().position(|fixture| fixture.name.ends_with(name)).unwrap();
        (fixtures.swap_remove(at), expected)
    };
    verdicts.into_iter().map(take).collect()
}

#[tokio::test]
async fn damaged_logs_are_judged_by_where_the_damage_is() {
    let intact = read_fixture(&fixtures::named("golden", "packed-chunks/session.jsonl")).await;
    for (fixture, expected) in damaged() {
        let name = &fixture.name;
        let disk = rooted(&fixture);
        let store = disk.store();
        let opened = store.open(&id(&fixture.session), Access::Read, &never()).await;
        let outcome = match opened {
            Ok(handle) => match handle.read(EventRange::ALL, &never()).await {
                Ok(events) => Ok(events),
                Err(error) => Err((error.kind(), error.to_string())),
            },
            Err(error) => Err((error.kind(), error.to_string())),
        };
        let writer = store.open(&id(&fixture.session), Access::Write, &never()).await;
        match expected {
            Expected::Events(count) => {
                let events = outcome.unwrap();
                assert_eq!(events.len(), count, "{name}");
                let shared = count.min(intact.len());
                assert_eq!(events[..shared], intact[..shared], "{name}");
                if let Verdict::Events { count: theirs, sha256: expected } = &fixture.verdict
                    && *theirs == count
                {
                    assert_eq!(sha256(&events), *expected, "{name}");
                }
                assert_eq!(read(&*writer.unwrap()).await, events, "{name}");
            }
            Expected::Refused(kind, fragment) => {
                let (found, text) = outcome.unwrap_err();
                assert_eq!(found, kind, "{name}: {text}");
                assert!(text.contains(fragment), "{name}: {text}");
                let path = disk.root().join(fixture.project()).join(&fixture.session);
                let path = path.join(log_name(fixture.encoding)).display().to_string();
                assert!(text.ends_with(&format!(" (raw log: {path})")), "{name}: {text}");
                assert_eq!(writer.unwrap_err().kind(), kind, "{name}");
                // Refused twice: the first refusal gave the claim back.
                let again = store.open(&id(&fixture.session), Access::Write, &never()).await;
                assert_eq!(again.unwrap_err().kind(), kind, "{name}");
            }
        }
        assert_eq!(disk.bytes(&fixture.session), fixture.bytes, "{name}: untouched");
    }
}

#[tokio::test]
async fn what_is_left_of_a_damaged_log_can_be_continued() {
    for (fixture, expected) in damaged() {
        let Expected::Events(count) = expected else { continue };
        let name = &fixture.name;
        let disk = rooted(&fixture);
        let session = &fixture.session;
        let before = read_fixture(&fixture).await;
        let writer = open(&disk.store(), session, Access::Write).await;
        append(&*writer, count as u64, 2).await;
        writer.close().await.unwrap();

        let after = read(&*open(&disk.store(), session, Access::Write).await).await;
        assert_eq!(after[..count], before, "{name}");
        assert_eq!(after.len(), count + 2, "{name}");
        // Nothing before the tail was touched.
        let kept = match fixture.encoding {
            Encoding::Zstd => frames(&disk.bytes(session)),
            Encoding::None => vec![disk.text(session)],
        };
        assert_eq!(events_of(kept.concat().split_once('\n').unwrap().1).len(), count + 2, "{name}");
        // What could be taken for a record was copied before it was cut.
        let copies: Vec<_> = disk
            .names(session)
            .into_iter()
            .filter(|name| name.starts_with("turnkeep.cut-"))
            .collect();
        let legible =
            name.ends_with("zstd-torn-1byte.zstd") || name.ends_with("raw-bad-json-tail.jsonl");
        assert_eq!(copies.len(), usize::from(legible), "{name}: {copies:?}");
        for copy in copies {
            let offset: usize = copy.strip_prefix("turnkeep.cut-").unwrap().parse().unwrap();
            let bytes = fs::read(disk.session_dir(session).join(copy)).unwrap();
            assert_eq!(bytes, fixture.bytes[offset..], "{name}");
        }
    }
}

#[tokio::test]
async fn a_listing_reads_headers_alone() {
    for (fixture, _) in damaged() {
        let disk = rooted(&fixture);
        let list = disk.store().list(&ListQuery::default(), &never()).await.unwrap();
        assert_eq!(list.entries.len(), 1, "{}", fixture.name);
        let entry = &list.entries[0];
        let expected = if fixture.name.ends_with("raw-future-version.jsonl") {
            SessionState::Newer
        } else if ["zstd-empty.zstd", "raw-retired-header-field.jsonl"]
            .iter()
            .any(|name| fixture.name.ends_with(name))
        {
            SessionState::Damaged
        } else {
            SessionState::Ok
        };
        assert_eq!(entry.state, expected, "{}", fixture.name);
        assert_eq!(entry.id.as_str(), fixture.session);
        assert_eq!(entry.stat.is_some(), expected == SessionState::Ok);
        let reason = entry.reason.clone().unwrap_or_default();
        assert_eq!(reason.is_empty(), expected == SessionState::Ok, "{reason}");
        let root = disk.root().display().to_string();
        assert!(!reason.contains(&root), "no path in a reason: {reason}");
    }
}

#[tokio::test]
async fn frames_of_other_writers_are_read() {
    let plain = fixtures::named("golden", "text-turn/session.jsonl");
    let text = String::from_utf8(plain.bytes.clone()).unwrap();
    let expected = read_fixture(&plain).await;
    let (header, records) = text.split_at(text.find('\n').unwrap() + 1);
    let lines: Vec<_> = records.split_inclusive('\n').collect();
    // With a size and without a checksum; raw blocks alone; one line a frame.
    let sized = |text: &str| {
        let mut frame = Vec::with_capacity(text.len() + 1000);
        zstd_safe::compress(&mut frame, text.as_bytes(), 19).unwrap();
        frame
    };
    let raw = |text: &str| {
        let size = u32::try_from(text.len()).unwrap();
        let block = (size << 3 | 1).to_le_bytes();
        [&[0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58], &block[..3], text.as_bytes()].concat()
    };
    let logs = [
        [sized(header), sized(records)].concat(),
        [raw(header), raw(records)].concat(),
        [pack(header), lines.iter().flat_map(|line| pack(line)).collect()].concat(),
        [sized(header), raw(lines[0]), pack(&lines[1..].concat())].concat(),
    ];
    for bytes in logs {
        let disk = Disk::new(Encoding::Zstd);
        disk.lay(&plain.session, &bytes);
        let handle = open(&disk.store(), &plain.session, Access::Write).await;
        assert_eq!(read(&*handle).await, expected);
        let next = expected.len() as u64;
        append(&*handle, next, 1).await;
        assert_eq!(read_range(&*handle, next - 1, 9).await, [next - 1, next]);
        assert_eq!(seqs(&read(&*handle).await).len(), expected.len() + 1);
    }
}
