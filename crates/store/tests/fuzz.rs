//! Inputs that nobody would write, for a while: frames, rows, headers, JSON, and whole logs read by the
//! store. Nothing may panic, nothing may take more memory than its size allows for, and what is
//! accepted must be what a plain reference makes of it.
//!
//! The engine is proptest, for it makes failing inputs small; the inputs come from real logs, changed
//! where the format has its joints. `just fuzz SECONDS` tries each target for longer.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod fuzzing;
mod support;

/// The walk over frame headers, which is no part of the crate's interface.
#[path = "../src/jsonl/frames/scan.rs"]
#[allow(dead_code, reason = "the crate uses all of it")]
mod scan;

use std::{fs, path::Path};

use fuzzing::{
    Meter, Outcome, Tried, alone,
    corpus::Log,
    fuzz,
    mutants::{self, Mutant},
    reference::{self, No},
    within,
};
use peak_alloc::PeakAlloc;
use proptest::{collection::vec, prelude::*};
use scan::{FrameScan, scan_frame};
use serde_json::{Value, value::RawValue};
use support::{
    disk::{compression, lay, log_name},
    event, id, never,
};
use turnkeep_log::{
    SessionHeader, Text,
    json::{Json, Kind},
    packed,
    records::decode,
};
use turnkeep_store::{
    Access, EventRange, ListQuery, SessionStore,
    jsonl::{Encoding, JsonlOptions, JsonlStore},
};

/// Counts what is allocated by everything written in Rust.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a frame may unpack to.
const LIMIT: usize = 1 << 20;

/// What reading may take besides what depends on the input: windows, the runtime, names.
const BASE: usize = 4 << 20;

/// How many bytes of memory each byte of text may take. A packed row is the worst case: three bytes
/// of it become an event of some two hundred.
const FACTOR: usize = 128;

#[test]
fn frames() {
    let inputs = || {
        prop_oneof![
            4 => Mutant::any(Encoding::Zstd).prop_map(|mutant| mutant.bytes()),
            1 => vec(any::<u8>(), 0..80).prop_map(|rest| [&scan::MAGIC[..], &rest].concat()),
        ]
    };
    fuzz("frames", inputs, Clone::clone, |_, bytes| {
        let mut at = 0;
        // Frame by frame, as far as they go.
        while at < bytes.len() {
            let rest = &bytes[at..];
            let scanned = within(1 << 10, || scan_frame(rest))?;
            // Only the bytes of a frame matter, and all of them.
            let length = match scanned {
                FrameScan::Complete(frame) => {
                    prop_assert_eq!(scan_frame(&rest[..frame.len]), scanned);
                    for cut in [0, 3, frame.len / 2, frame.len - 1] {
                        prop_assert_eq!(scan_frame(&rest[..cut]), FrameScan::Incomplete);
                    }
                    Some(frame)
                }
                FrameScan::Incomplete | FrameScan::Invalid(_) => None,
            };
            match reference::next_frame(rest, LIMIT) {
                Some((text, taken)) if text.len() <= LIMIT => {
                    let frame = length.ok_or(TestCaseError::fail("a good frame is not found"))?;
                    prop_assert_eq!(frame.len, taken);
                    prop_assert!(text.len() <= frame.unpacked);
                    at += taken;
                }
                _ => break,
            }
        }
        Ok(if at == 0 { Outcome::Refused } else { Outcome::Accepted })
    });
}

#[test]
fn rows() {
    fuzz(
        "rows",
        mutants::line,
        |line| line.clone().into_bytes(),
        |_, bytes| {
            let line = std::str::from_utf8(bytes).unwrap();
            let text = Text::from(line);
            let decoded = within((64 << 10) + FACTOR * line.len(), || decode(&text))?;
            // A record is one line; what has more is looked at as a log.
            match reference::record(line) {
                Err(No::Unknown) => return Ok(Outcome::Unknown),
                Err(No::Refused) => {
                    prop_assert!(decoded.is_err(), "accepted");
                    return Ok(Outcome::Refused);
                }
                Ok(expected) => {
                    let events = decoded.map_err(|error| TestCaseError::fail(error.to_string()))?;
                    prop_assert_eq!(events.len(), expected.len());
                    for (event, expected) in events.iter().zip(&expected) {
                        let value: Value = serde_json::from_str(event.text()).unwrap();
                        prop_assert_eq!(&value, expected);
                        prop_assert_eq!(Some(event.event_type()), expected["type"].as_str());
                        #[expect(clippy::cast_precision_loss, reason = "safe integers")]
                        let (seq, time) = (event.seq().0 as f64, event.time() as f64);
                        prop_assert_eq!(Some(seq), expected["seq"].as_f64());
                        prop_assert_eq!(Some(time), expected["time"].as_f64());
                    }
                    // What is packed is unpacked to the same.
                    if !line.contains(['\n', '\r']) {
                        let packed = packed::pack_batch(&events);
                        let again: Vec<_> =
                            packed.lines().flat_map(|line| decode(&line.into()).unwrap()).collect();
                        prop_assert_eq!(support::texts(&again), support::texts(&events));
                    }
                }
            }
            Ok(Outcome::Accepted)
        },
    );
}

#[test]
fn headers() {
    let inputs = || prop_oneof![6 => mutants::header(), 1 => mutants::line()];
    fuzz(
        "headers",
        inputs,
        |line| line.clone().into_bytes(),
        |_, bytes| {
            let line = std::str::from_utf8(bytes).unwrap();
            let parsed = within((64 << 10) + 8 * line.len(), || SessionHeader::parse(line, None))?;
            match reference::header(line) {
                Err(No::Unknown) => return Ok(Outcome::Unknown),
                Err(No::Refused) => {
                    prop_assert!(parsed.is_err(), "accepted");
                    return Ok(Outcome::Refused);
                }
                Ok(expected) => {
                    let header = parsed.map_err(|error| TestCaseError::fail(error.to_string()))?;
                    let found = reference::Header {
                        id: header.id.as_str().to_owned(),
                        created_at: header.created_at,
                        cwd: header.cwd.clone(),
                        depth: header.delegation_depth,
                        seed: header.seed_length,
                    };
                    prop_assert_eq!(found, expected);
                    // What is written of it is read as the same.
                    prop_assert_eq!(SessionHeader::parse(&header.to_line(), None), Ok(header));
                }
            }
            Ok(Outcome::Accepted)
        },
    );
}

#[test]
fn json() {
    fuzz(
        "json",
        mutants::line,
        |line| line.clone().into_bytes(),
        |_, bytes| {
            let text = std::str::from_utf8(bytes).unwrap();
            let parsed = within((64 << 10) + 2 * text.len(), || Json::parse(text))?;
            let judged = serde_json::from_str::<Box<RawValue>>(text).is_ok();
            prop_assert_eq!(parsed.is_ok(), judged);
            let mut members = Vec::new();
            let again = Json::parse_members(text, |member| members.push(member));
            prop_assert_eq!(again.is_ok(), judged);
            if let (Ok(json), Ok(value)) = (parsed, serde_json::from_str::<Value>(text)) {
                prop_assert_eq!(rebuild(json), value);
            }
            Ok(if judged { Outcome::Accepted } else { Outcome::Refused })
        },
    );
}

fn rebuild(value: Json<'_>) -> Value {
    match value.kind() {
        Kind::Object => value
            .members()
            .unwrap()
            .map(|member| (member.key.decode_lossy().into_owned(), rebuild(member.value)))
            .collect(),
        Kind::Array => value.elements().unwrap().map(rebuild).collect(),
        Kind::String => value.as_str().unwrap().decode_lossy().into_owned().into(),
        _ => serde_json::from_str(value.text()).unwrap(),
    }
}

#[test]
fn compressed_logs() {
    logs("compressed_logs", Encoding::Zstd);
}

#[test]
fn plain_logs() {
    logs("plain_logs", Encoding::None);
}

/// Reads whole logs through the store.
fn logs(target: &str, encoding: Encoding) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let inputs = || (Mutant::any(encoding), any::<[u8; 2]>());
    let dir = tempfile::tempdir().unwrap();
    fuzz(
        target,
        inputs,
        |(mutant, _)| mutant.bytes(),
        |(mutant, at), bytes| runtime.block_on(read_log(dir.path(), bytes, mutant.log(), *at)),
    );
}

async fn read_log(dir: &Path, bytes: &[u8], log: &Log, at: [u8; 2]) -> Tried {
    // A root for each of the few sessions, cleared of what the last try left.
    let root = dir.join(&log.session);
    let path = root.join(log.project).join(&log.session).join(log_name(log.encoding));
    for left in fs::read_dir(path.parent().unwrap()).into_iter().flatten() {
        fs::remove_file(left.unwrap().path()).unwrap();
    }
    lay(&path, bytes);
    let expected = reference::log(bytes, log.encoding, LIMIT);
    let options = JsonlOptions {
        compression: compression(log.encoding),
        max_frame_bytes: LIMIT as u64,
        ..JsonlOptions::new(&root)
    };
    let store = JsonlStore::open(options).unwrap();
    let session = id(&log.session);

    // All that reading does, within bounds.
    let meter = Meter::start();
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    let _ = store.stat(&session, &never()).await;
    let mut outcomes = Vec::new();
    for access in [Access::Read, Access::Write] {
        outcomes.push(match store.open(&session, access, &never()).await {
            Err(error) => Err(error.to_string()),
            Ok(handle) => match handle.read(EventRange::ALL, &never()).await {
                Err(error) => Err(error.to_string()),
                Ok(events) => Ok((handle, events)),
            },
        });
    }
    let texts = bytes.len()
        + expected.as_ref().map_or(LIMIT, |reading| {
            reading.events.iter().map(|event| event.to_string().len()).sum::<usize>()
        });
    meter.check(BASE + 16 * texts)?;
    prop_assert_eq!(list.entries.len(), 1);
    prop_assert_eq!(&fs::read(&path).unwrap(), bytes, "changed by reading");

    let writer = outcomes.pop().unwrap();
    let reader = outcomes.pop().unwrap();
    prop_assert_eq!(reader.as_ref().err().is_some(), writer.as_ref().err().is_some());
    let reading = match expected {
        // The reference cannot tell, or does not know where the log belongs.
        Err(No::Unknown) => return Ok(Outcome::Unknown),
        Err(No::Refused) => {
            prop_assert!(reader.is_err(), "accepted {} events", reader.unwrap().1.len());
            return Ok(Outcome::Refused);
        }
        Ok(reading) => reading,
    };
    let placed = ["/work/proj", "/work/proj/workspace"].map(|cwd| Some(cwd.to_owned()));
    if reading.header.id != log.session || !placed.contains(&reading.header.cwd) {
        return Ok(Outcome::Unknown);
    }
    // A frame that lost a sector may unpack to anything, and to more than is allowed: it is refused
    // for that, before anyone asks whether it is the torn end of the log.
    let lost_a_sector = || bytes.windows(64).any(|bytes| bytes.iter().all(|byte| *byte == 0));
    let is_long = |error: &String| error.contains("unpacks to more than");
    if reader.as_ref().err().is_some_and(is_long) && lost_a_sector() {
        return Ok(Outcome::Unknown);
    }
    let (reader, events) = reader.map_err(TestCaseError::fail)?;
    let values: Vec<Value> =
        events.iter().map(|event| serde_json::from_str(event.text()).unwrap()).collect();
    prop_assert_eq!(&values, &reading.events);

    // A part of it is a part of it.
    let from = usize::from(at[0]) % (events.len() + 1);
    let count = usize::from(at[1]);
    let range = EventRange { offset: from as u64, length: Some(count as u64) };
    let part = reader.read(range, &never()).await;
    let part = part.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&part[..], &events[from..(from + count).min(events.len())]);

    // Now and then it is continued.
    if at[0].is_multiple_of(8) {
        let (writer, known) = writer.unwrap();
        prop_assert_eq!(&known, &events);
        let next = event(events.len() as u64);
        let appended = writer.append(vec![next.clone()], &never()).await;
        appended.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let continued = reader.read(EventRange::ALL, &never()).await;
        let continued = continued.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&continued[..events.len()], &events[..]);
        prop_assert_eq!(&continued[events.len()..], &[next]);
    }
    Ok(Outcome::Accepted)
}

/// Logs that unpack to far more than they hold, or say that they do: the limit is what they cost.
#[test]
fn bombs_cost_what_they_are_allowed() {
    let _alone = alone();
    let header = support::header("s").to_line() + "\n";
    let zeros = "\0".repeat(64 << 20);
    let huge = support::disk::pack(&zeros);
    drop(zeros);
    // Says that it has 2^60 bytes.
    let liar = [&scan::MAGIC[..], &[0b1110_0100], &(1_u64 << 60).to_le_bytes()].concat();
    // A window of 2^41 bytes, and then nothing.
    let window = [&scan::MAGIC[..], &[0b100, 0xFF], &[0b1010_1000, 0, 0], b"abc"].concat();
    // The largest window that is unpacked with piece by piece, and then nothing.
    let wide = [&scan::MAGIC[..], &[0b100, 17 << 3], &[0b1010_1000, 0, 0], b"abc"].concat();
    // A run of 2 MiB, again and again.
    let run = [0xF8_u8 | 0b010, 0xFF, 0xFF, b'a'];
    let runs = [&scan::MAGIC[..], &[0, 0x58], &run.repeat(1000), &[0b001, 0, 0]].concat();
    // A row of a hundred thousand members, each of which repeats a long name.
    let row = format!(
        r#"{{"type":"tool-call-chunks","seq0":0,"time0":0,"data":{{"turn":1,"step":1,"index":0,"id":"{}","dt":[0{}],"args":["a"{}]}}}}"#,
        "i".repeat(300_000),
        ",0".repeat(99_998),
        r#","a""#.repeat(99_999),
    );
    let row = support::disk::pack(&(row + "\n"));
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("sessions");
    let path = root.join(support::disk::PROJECT).join("s").join("session.jsonl.zstd");
    let options = JsonlOptions { max_frame_bytes: LIMIT as u64, ..JsonlOptions::new(&root) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let bombs = [
        ("huge", huge),
        ("liar", liar),
        ("window", window),
        ("wide", wide),
        ("runs", runs),
        ("row", row),
    ];
    for (name, bomb) in bombs {
        lay(&path, &[support::disk::pack(&header), bomb].concat());
        let store = JsonlStore::open(options.clone()).unwrap();
        let resident = Resident::start();
        let meter = Meter::start();
        let outcome = runtime.block_on(async {
            let handle = store.open(&id("s"), Access::Write, &never()).await;
            let handle = handle.map_err(|error| error.kind())?;
            let read = handle.read(EventRange::ALL, &never()).await;
            read.map(|events| events.len()).map_err(|error| error.kind())
        });
        println!("{name}: {outcome:?}, {:?} KiB resident", resident.grown());
        meter.check(BASE + 4 * LIMIT).unwrap();
        // What libzstd takes is not seen by the meter.
        assert!(resident.grown().is_none_or(|kib| kib < 32 << 10), "{name}");
    }
}

/// What the process has in memory, whoever allocated it. Only Linux tells.
struct Resident {
    before: Option<u64>,
}

impl Resident {
    fn start() -> Self {
        // Forgets the peak until now.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self { before: Self::peak() }
    }

    /// The peak since then, less what there was, in KiB.
    fn grown(&self) -> Option<u64> {
        Some(Self::peak()?.saturating_sub(self.before?))
    }

    fn peak() -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }
}
