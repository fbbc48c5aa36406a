//! Verifying, against the reader as judge: whatever bytes there are, both say the same, and nothing
//! that was lost is called intact.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::LazyLock;

use proptest::{prelude::*, sample::Index};
use support::{
    disk::{BOTH, Disk},
    event_of, fixtures, id, never,
};
use turnkeep_log::Event;
use turnkeep_store::{
    Access, EventRange, SessionStore,
    error::RecoverError,
    jsonl::{Encoding, JsonlOptions, JsonlStore},
    recover::{Branch, RecoverOptions, Recovery, recover},
    verify::{Progress, Severity, Verification},
};

/// A log with its session.
#[derive(Debug)]
struct Real {
    session: String,
    bytes: Vec<u8>,
}

static REAL: LazyLock<Vec<(Encoding, Real)>> = LazyLock::new(|| {
    let in_proj = |fixture: &fixtures::Fixture| fixture.project() == "--work-proj--";
    let all = fixtures::all("golden").into_iter().filter(in_proj);
    all.map(|fixture| (fixture.encoding, Real { session: fixture.session, bytes: fixture.bytes }))
        .collect()
});

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

async fn read(store: &dyn SessionStore, session: &str) -> Result<Vec<Event>, &'static str> {
    let handle = store.open(&id(session), Access::Read, &never()).await;
    let handle = handle.map_err(|error| error.kind())?;
    handle.read(EventRange::ALL, &never()).await.map_err(|error| error.kind())
}

async fn save(store: &dyn SessionStore, session: &str) -> Result<Recovery, RecoverError> {
    let options = RecoverOptions {
        into: id("saved"),
        branch: Some(Branch::First),
        cwd: Some("/work/proj".to_owned()),
    };
    recover(store, &id(session), &options, &Progress::none(), &never()).await
}

/// Verifies bytes as the log of a session, compares that with what the reader says, and returns
/// both.
async fn judge(
    store: &JsonlStore,
    session: &str,
) -> (Verification, Result<Vec<Event>, &'static str>) {
    let read = read(store, session).await;
    let found = store.verify(&id(session), &Progress::none(), &never()).await.unwrap();
    match &read {
        Ok(events) => {
            assert_eq!(found.refused, None, "{found:#?}");
            assert_eq!(found.events, events.len() as u64, "{found:#?}");
            assert!(found.severity() <= Some(Severity::Incomplete), "{found:#?}");
        }
        Err(kind) => {
            assert_eq!(found.refused, Some(*kind), "{found:#?}");
            assert!(found.severity() > Some(Severity::Incomplete), "{found:#?}");
        }
    }
    assert!(found.found >= found.events, "{found:#?}");
    for finding in &found.findings {
        assert!(finding.offset.is_none_or(|offset| offset <= found.size_bytes.unwrap()));
        assert!(finding.before + finding.after <= found.found, "{found:#?}");
    }
    (found, read)
}

/// What is wrong with a log.
#[derive(Clone, Debug)]
enum Harm {
    Cut(Index),
    Flip(Index, u8),
    Zero(Index, Index),
    Remove(Index, u8),
    Insert(Index, Vec<u8>),
    /// Some bytes of the log are there twice.
    Repeat(Index, Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Harm::Cut),
        (at(), 1u8..).prop_map(|(at, bits)| Harm::Flip(at, bits)),
        (at(), at()).prop_map(|(from, to)| Harm::Zero(from, to)),
        (at(), 1u8..).prop_map(|(at, count)| Harm::Remove(at, count)),
        (at(), prop::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (at(), at()).prop_map(|(from, to)| Harm::Repeat(from, to)),
    ]
}

fn harmed(mut bytes: Vec<u8>, harm: &Harm) -> Vec<u8> {
    let two = |a: &Index, b: &Index| {
        let (a, b) = (a.index(bytes.len()), b.index(bytes.len()));
        (a.min(b), a.max(b))
    };
    match harm {
        Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Harm::Flip(at, bits) => {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        Harm::Zero(from, to) => {
            let (from, to) = two(from, to);
            bytes[from..to].fill(0);
        }
        Harm::Remove(at, count) => {
            let at = at.index(bytes.len());
            let end = (at + usize::from(*count)).min(bytes.len());
            bytes.drain(at..end);
        }
        Harm::Insert(at, more) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, more.iter().copied());
        }
        Harm::Repeat(from, to) => {
            let (from, to) = two(from, to);
            let again = bytes[from..to].to_vec();
            bytes.splice(to..to, again);
        }
    }
    bytes
}

fn real() -> impl Strategy<Value = &'static (Encoding, Real)> {
    any::<Index>().prop_map(|index| index.get(&REAL))
}

/// What one program appends to a made-up log.
#[derive(Clone, Debug)]
enum Piece {
    /// Events that continue the log, or that a number of its last ones are before.
    Batch {
        back: u64,
        count: u64,
        writer: u8,
        ends: bool,
    },
    /// Events that continue the log, in a frame that was written behind unsynced ones.
    Hitched(u64),
    /// Some events are left out before the next ones.
    Skip(u64),
    Garbage(Vec<u8>),
    Line(String),
    Zeros(usize),
    /// The beginning of a batch.
    Torn {
        count: u64,
        cut: Index,
    },
    /// A batch of which a bit is wrong.
    Wrong {
        count: u64,
        at: Index,
    },
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        8 => (prop_oneof![4 => Just(0), 1 => 0u64..4], 1u64..5, 0u8..3, any::<bool>())
            .prop_map(|(back, count, writer, ends)| Piece::Batch { back, count, writer, ends }),
        3 => (1u64..5).prop_map(Piece::Hitched),
        1 => (1u64..3).prop_map(Piece::Skip),
        1 => prop::collection::vec(any::<u8>(), 1..30).prop_map(Piece::Garbage),
        1 => "[ -~]{0,20}".prop_map(Piece::Line),
        1 => (1usize..1500).prop_map(Piece::Zeros),
        2 => (1u64..5, any::<Index>()).prop_map(|(count, cut)| Piece::Torn { count, cut }),
        1 => (1u64..5, any::<Index>()).prop_map(|(count, at)| Piece::Wrong { count, at }),
    ]
}

fn lines(first: u64, count: u64, writer: u8, ends: bool) -> String {
    let end = first + count;
    let line = |seq| {
        let event = if ends && seq + 1 == end {
            event_of("turn/end", seq, r#"{"turn":1,"reason":{"kind":"completed"}}"#)
        } else {
            event_of("todo/write", seq, &format!(r#"{{"todos":["{writer}"]}}"#))
        };
        event.text().to_string() + "\n"
    };
    (first..end).map(line).collect()
}

/// How long the header of a frame without a dictionary is.
fn header_len(frame: &[u8]) -> usize {
    let single_segment = frame[4] & 0x20 != 0;
    let content_size = match frame[4] >> 6 {
        0 => usize::from(single_segment),
        flag => 1 << flag,
    };
    5 + usize::from(!single_segment) + content_size
}

fn made_up(disk: &Disk, pieces: &[Piece]) -> Vec<u8> {
    let mut log = disk.encode(&(support::header("s").to_line() + "\n"));
    let mut next = 0;
    for piece in pieces {
        match piece {
            Piece::Batch { back, count, writer, ends } => {
                let first = next - (*back).min(next);
                log.extend(disk.encode(&lines(first, *count, *writer, *ends)));
                next = first + count;
            }
            Piece::Hitched(count) => {
                let mut batch = disk.encode(&lines(next, *count, 6, false));
                if disk.encoding == Encoding::Zstd {
                    let first_block = header_len(&batch);
                    batch.splice(first_block..first_block, [0; 3]);
                }
                log.extend(batch);
                next += count;
            }
            Piece::Skip(count) => next += count,
            Piece::Garbage(bytes) => log.extend(bytes),
            Piece::Line(text) => log.extend(disk.encode(&format!("{text}\n"))),
            Piece::Zeros(count) => log.resize(log.len() + count, 0),
            Piece::Torn { count, cut } => {
                let batch = disk.encode(&lines(next, *count, 7, false));
                log.extend(&batch[..cut.index(batch.len())]);
            }
            Piece::Wrong { count, at } => {
                let mut batch = disk.encode(&lines(next, *count, 8, false));
                let at = at.index(batch.len());
                batch[at] ^= 4;
                log.extend(batch);
                next += count;
            }
        }
    }
    log
}

/// What is saved is at least what readers give out, in order, and readable again.
async fn check_saved(disk: &Disk, session: &str, before: &[u8], found: &Verification) {
    let store = disk.store();
    let saved = save(&store, session).await;
    assert_eq!(disk.bytes(session), before, "untouched");
    match saved {
        Ok(recovery) => {
            let events = read(&disk.store(), "saved").await.unwrap();
            assert_eq!(events.len() as u64, recovery.kept);
            for (seq, event) in (0..).zip(&events) {
                assert_eq!(event.seq().0, seq);
            }
            if found.refused.is_none() {
                let served = read(&disk.store(), session).await.unwrap();
                assert_eq!(events[..served.len()], served[..]);
            }
            assert_eq!(recovery.stopped.is_some(), recovery.left > 0, "{recovery:#?}");
        }
        Err(error) => {
            assert!(["corrupt", "format_unsupported"].contains(&error.kind()), "{error}");
            assert!(found.refused.is_some(), "{error}: {found:#?}");
            let made = disk.store().stat(&id("saved"), &never()).await.unwrap();
            assert_eq!(made, None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn harm_to_a_real_log_is_never_overlooked(
        (encoding, log) in real(),
        harms in prop::collection::vec(harm(), 1..3),
    ) {
        let disk = Disk::new(*encoding);
        disk.lay(&log.session, &log.bytes);
        block_on(async {
            let whole = read(&disk.store(), &log.session).await.unwrap();
            let mut bytes = log.bytes.clone();
            for harm in &harms {
                if !bytes.is_empty() {
                    bytes = harmed(bytes, harm);
                }
            }
            disk.lay(&log.session, &bytes);
            let (found, read) = judge(&disk.store(), &log.session).await;
            if !found.is_intact() {
                return;
            }
            let events = read.unwrap();
            // Text has no checksum: a letter that became another makes a text all the same.
            if encoding == &Encoding::Zstd {
                assert_eq!(events[..], whole[..events.len()]);
            }
            // A log that was cut between two batches is one that could have been.
            let is_cut = harms.iter().any(|harm| matches!(harm, Harm::Cut(_) | Harm::Remove(..)));
            assert!(is_cut || events.len() == whole.len(), "{found:#?}");
        });
    }

    #[test]
    fn a_made_up_log_is_judged_as_its_reader_judges_it(
        pieces in prop::collection::vec(piece(), 0..14),
        plain in any::<bool>(),
    ) {
        let disk = Disk::new(BOTH[usize::from(plain)]);
        disk.lay("s", &made_up(&disk, &pieces));
        let _ = block_on(judge(&disk.store(), "s"));
    }

    #[test]
    fn any_bytes_are_judged(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        behind_a_header in any::<bool>(),
        plain in any::<bool>(),
    ) {
        let disk = Disk::new(BOTH[usize::from(plain)]);
        let header = if behind_a_header { made_up(&disk, &[]) } else { Vec::new() };
        disk.lay("s", &[header, bytes].concat());
        let _ = block_on(judge(&disk.store(), "s"));
    }

    #[test]
    fn small_limits_are_judged_alike(
        pieces in prop::collection::vec(piece(), 0..8),
        max_frame_bytes in 50u64..600,
    ) {
        let disk = Disk::new(Encoding::Zstd);
        disk.lay("s", &made_up(&disk, &pieces));
        let store = JsonlStore::open(JsonlOptions { max_frame_bytes, ..disk.options() }).unwrap();
        let _ = block_on(judge(&store, "s"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_saved_is_a_log_and_all_that_readers_had(
        pieces in prop::collection::vec(piece(), 0..14),
        plain in any::<bool>(),
    ) {
        let disk = Disk::new(BOTH[usize::from(plain)]);
        let log = made_up(&disk, &pieces);
        disk.lay("s", &log);
        block_on(async {
            let (found, _) = judge(&disk.store(), "s").await;
            check_saved(&disk, "s", &log, &found).await;
        });
    }

    #[test]
    fn what_is_saved_of_a_real_log_was_in_it((encoding, log) in real(), harm in harm()) {
        let disk = Disk::new(*encoding);
        let bytes = harmed(log.bytes.clone(), &harm);
        disk.lay(&log.session, &bytes);
        block_on(async {
            let (found, _) = judge(&disk.store(), &log.session).await;
            check_saved(&disk, &log.session, &bytes, &found).await;
        });
    }
}

/// A cut at every place of a log shows, but for those that leave a log that could have been.
#[test]
fn every_cut_is_judged() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let header = disk.encode(&(support::header("s").to_line() + "\n"));
        let batches = [(0, 3), (3, 2), (5, 1)].map(|(first, count)| lines(first, count, 0, true));
        let mut log = header.clone();
        let mut ends = vec![log.len()];
        for batch in &batches {
            log.extend(disk.encode(batch));
            ends.push(log.len());
        }
        if encoding == Encoding::None {
            // Each line counts.
            ends = log
                .iter()
                .zip(1..)
                .filter(|(byte, _)| **byte == b'\n')
                .map(|(_, end)| end)
                .collect();
        }
        block_on(async {
            for cut in 0..=log.len() {
                disk.lay("s", &log[..cut]);
                let (found, _) = judge(&disk.store(), "s").await;
                assert_eq!(found.is_intact(), ends.contains(&cut), "{cut}: {found:#?}");
                assert_eq!(found.refused.is_some(), cut < header.len());
            }
        });
    }
}
