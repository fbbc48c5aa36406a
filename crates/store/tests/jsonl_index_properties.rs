//! Reading with an index is reading without one, whatever has become of the log and of the index.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::fs;

use proptest::{prelude::*, sample::Index};
use support::{
    create,
    disk::{Disk, INDEX},
    event_of, id, never, open,
};
use turnkeep_log::{Blank, Event, packed};
use turnkeep_store::{Access, EventRange, SessionStore, error::ReadError, jsonl::Encoding};

#[derive(Clone, Debug)]
enum Kind {
    Delta(u8),
    /// So many kilobytes that do not compress.
    Large(u8),
    TurnStart,
    TurnEnd,
    Call(u8),
    Answer(u8),
    Title(String),
    Said,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => any::<u8>().prop_map(Kind::Delta),
        2 => (0u8..12).prop_map(Kind::Large),
        1 => Just(Kind::TurnStart),
        1 => Just(Kind::TurnEnd),
        1 => (0u8..3).prop_map(Kind::Call),
        1 => (0u8..3).prop_map(Kind::Answer),
        1 => "[ -~é😀]{0,9}".prop_map(Kind::Title),
        1 => Just(Kind::Said),
    ]
}

fn event(kind: &Kind, seq: u64) -> Event {
    match kind {
        Kind::Delta(text) => {
            let chunk = format!(r#"{{"type":"text-delta","index":0,"text":"{text}"}}"#);
            event_of("assistant/chunk", seq, &format!(r#"{{"turn":1,"step":1,"chunk":{chunk}}}"#))
        }
        Kind::Large(kilobytes) => {
            let count = u64::from(*kilobytes) * 52;
            let noise = (0..count).map(|n| (n + seq * 999).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            event_of("todo/write", seq, &format!("{:?}", noise.collect::<Vec<_>>()))
        }
        Kind::TurnStart => event_of("turn/start", seq, r#"{"turn":1}"#),
        Kind::TurnEnd => event_of("turn/end", seq, r#"{"turn":1,"reason":{"kind":"completed"}}"#),
        Kind::Call(call) => event_of("tool/call", seq, &format!(r#"{{"callId":"c{call}"}}"#)),
        Kind::Answer(call) => {
            let block = format!(r#"{{"type":"tool-result","toolCallId":"c{call}","content":[]}}"#);
            let source = format!(r#"{{"kind":"tool","callId":"c{call}"}}"#);
            let message =
                format!(r#"{{"id":"m","role":"user","content":[{block}],"source":{source}}}"#);
            event_of("tool/result", seq, &format!(r#"{{"message":{message}}}"#))
        }
        Kind::Title(title) => {
            let title = serde_json::to_string(title).unwrap();
            event_of("session/title", seq, &format!(r#"{{"title":{title}}}"#))
        }
        Kind::Said => {
            let said = r#"{"id":"m","role":"user","content":[],"source":{"kind":"user"}}"#;
            event_of("user/message", seq, said)
        }
    }
}

type Batches = Vec<Vec<Kind>>;

fn batches() -> impl Strategy<Value = Batches> {
    prop::collection::vec(prop::collection::vec(kind(), 1..8), 0..10)
}

/// What becomes of a session after it was closed.
#[derive(Clone, Debug)]
enum Change {
    /// Someone goes on with it who makes no index.
    Grow(Vec<Kind>),
    /// A writer of ours goes on with it.
    GoOn(Vec<Kind>),
    /// The log is cut.
    Cut(Index),
    /// One byte of the log is another.
    Flip(Index, u8),
    /// Something that is no record comes behind it.
    Behind(Vec<u8>),
    /// The log is another one.
    Replace(Batches),
    /// The index is cut, or changed.
    CutIndex(Index),
    FlipIndex(Index, u8),
    /// The index is the one of another session.
    OtherIndex(Batches),
    /// The index is the one from the beginning.
    OldIndex,
    NoIndex,
}

fn change() -> impl Strategy<Value = Change> {
    let kinds = || prop::collection::vec(kind(), 1..8);
    let byte = || (any::<Index>(), any::<u8>());
    prop_oneof![
        3 => kinds().prop_map(Change::Grow),
        2 => kinds().prop_map(Change::GoOn),
        2 => any::<Index>().prop_map(Change::Cut),
        2 => byte().prop_map(|(at, byte)| Change::Flip(at, byte)),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Change::Behind),
        1 => batches().prop_map(Change::Replace),
        1 => any::<Index>().prop_map(Change::CutIndex),
        1 => byte().prop_map(|(at, byte)| Change::FlipIndex(at, byte)),
        1 => batches().prop_map(Change::OtherIndex),
        2 => Just(Change::OldIndex),
        1 => Just(Change::NoIndex),
    ]
}

/// Stores a session in batches, closing it now and then.
async fn store(disk: &Disk, name: &str, batches: &Batches) {
    let store = disk.store();
    let mut writer = create(&store, name).await;
    writer.flush(&never()).await.unwrap();
    let mut next = 0;
    for (batch, close) in batches.iter().zip([false, false, true].into_iter().cycle()) {
        let events: Vec<_> = batch.iter().zip(next..).map(|(kind, seq)| event(kind, seq)).collect();
        next += events.len() as u64;
        writer.append(events, &never()).await.unwrap();
        if close {
            writer.close().await.unwrap();
            writer = open(&store, name, Access::Write).await;
        }
    }
    writer.close().await.unwrap();
}

struct Session {
    disk: Disk,
    /// The index from the beginning.
    old: Vec<u8>,
    /// What could be read when the log was last in order.
    good: Vec<Event>,
    /// Whether a byte was changed.
    flipped: bool,
}

impl Session {
    fn index(&self) -> std::path::PathBuf {
        self.disk.session_dir("s").join(INDEX)
    }

    /// All events, read without an index; what can be read by a fresh store.
    async fn all(&self) -> Option<Vec<Event>> {
        read(&self.disk, EventRange::ALL).await.ok()
    }

    async fn change(&mut self, change: &Change) {
        let log = self.disk.bytes("s");
        let alter = |bytes: &mut Vec<u8>, at: &Index, byte: u8| {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
            }
        };
        match change {
            Change::Grow(kinds) => {
                let next = self.all().await.map_or(0, |events| events.len() as u64);
                let events: Vec<_> =
                    kinds.iter().zip(next..).map(|(kind, seq)| event(kind, seq)).collect();
                self.disk.add("s", &self.disk.encode(&packed::pack_batch(&events)));
            }
            Change::GoOn(kinds) => {
                let Ok(writer) = self.disk.store().open(&id("s"), Access::Write, &never()).await
                else {
                    return;
                };
                let next = writer.read(EventRange::ALL, &never()).await.unwrap().len() as u64;
                let events = kinds.iter().zip(next..).map(|(kind, seq)| event(kind, seq));
                writer.append(events.collect(), &never()).await.unwrap();
                writer.close().await.unwrap();
            }
            Change::Cut(at) => self.disk.lay("s", &log[..at.index(log.len() + 1)]),
            Change::Flip(at, byte) => {
                self.flipped = true;
                let mut log = log;
                alter(&mut log, at, *byte);
                self.disk.lay("s", &log);
            }
            Change::Behind(bytes) => self.disk.add("s", bytes),
            Change::Replace(batches) => {
                let other = Disk::new(self.disk.encoding);
                store(&other, "s", batches).await;
                self.disk.lay("s", &other.bytes("s"));
            }
            Change::CutIndex(at) => {
                let mut bytes = fs::read(self.index()).unwrap_or_default();
                bytes.truncate(at.index(bytes.len() + 1));
                fs::write(self.index(), bytes).unwrap();
            }
            Change::FlipIndex(at, byte) => {
                let mut bytes = fs::read(self.index()).unwrap_or_default();
                alter(&mut bytes, at, *byte);
                fs::write(self.index(), bytes).unwrap();
            }
            Change::OtherIndex(batches) => {
                let other = Disk::new(self.disk.encoding);
                store(&other, "s", batches).await;
                fs::copy(other.session_dir("s").join(INDEX), self.index()).unwrap();
            }
            Change::OldIndex => fs::write(self.index(), &self.old).unwrap(),
            Change::NoIndex => drop(fs::remove_file(self.index())),
        }
    }

    /// Compares what a fresh store says with and without the index.
    async fn compare(&self, range: EventRange, intact: bool) {
        let kept = fs::read(self.index()).ok();
        let with = read(&self.disk, range).await;
        let hints = self.hints().await;
        let _ = fs::remove_file(self.index());
        let without = read(&self.disk, range).await;
        if let Some(kept) = kept {
            fs::write(self.index(), kept).unwrap();
        }
        if let Some(hints) = hints.filter(|_| intact) {
            let blank = Blank::of(&self.good);
            assert_eq!(hints.event_count, self.good.len() as u64);
            assert_eq!((hints.blank, hints.last_prompt_at), (blank.blank, blank.last_prompt_at));
            assert_eq!(hints.last_event_at, self.good.last().map(Event::time));
        }
        let kinds = |read: &Result<Vec<Event>, ReadError>| match read {
            Ok(events) => Ok(events.clone()),
            Err(error) => Err((error.kind(), error.to_string())),
        };
        if kinds(&with) == kinds(&without) {
            return;
        }
        // A log that is damaged elsewhere gives what was good when it was checked.
        assert!(!intact, "{:?} with the index, {:?} without", kinds(&with), kinds(&without));
        let from = usize::try_from(range.offset).unwrap().min(self.good.len());
        let (good, with) = (&self.good[from..], with.unwrap());
        assert!(good.starts_with(&with) || with.starts_with(good), "neither, nor what was good");
    }

    async fn hints(&self) -> Option<turnkeep_store::SessionHints> {
        self.disk.store().stat(&id("s"), &never()).await.ok()??.hints
    }
}

async fn read(disk: &Disk, range: EventRange) -> Result<Vec<Event>, ReadError> {
    match disk.store().open(&id("s"), Access::Read, &never()).await {
        Ok(reader) => reader.read(range, &never()).await,
        // The head is read without any index.
        Err(_) => Ok(Vec::new()),
    }
}

fn run(encoding: Encoding, batches: &Batches, changes: &[Change], ranges: &[(Index, Option<u64>)]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let disk = Disk::new(encoding);
        store(&disk, "s", batches).await;
        let old = fs::read(disk.session_dir("s").join(INDEX)).unwrap();
        let mut session = Session { disk, old, good: Vec::new(), flipped: false };
        for step in 0..=changes.len() {
            let all = session.all().await;
            let intact = all.is_some() && !session.flipped;
            if let Some(events) = all.filter(|_| intact) {
                session.good = events;
            }
            for (offset, length) in ranges {
                let offset = offset.index(session.good.len() + 2) as u64;
                session.compare(EventRange { offset, length: *length }, intact).await;
            }
            if let Some(change) = changes.get(step) {
                session.change(change).await;
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_zstd_log_reads_the_same_with_an_index(
        batches in batches(),
        changes in prop::collection::vec(change(), 0..5),
        ranges in prop::collection::vec((any::<Index>(), prop::option::of(0u64..12)), 1..4),
    ) {
        run(Encoding::Zstd, &batches, &changes, &ranges);
    }

    #[test]
    fn a_plain_log_reads_the_same_with_an_index(
        batches in batches(),
        changes in prop::collection::vec(change(), 0..5),
        ranges in prop::collection::vec((any::<Index>(), prop::option::of(0u64..12)), 1..4),
    ) {
        run(Encoding::None, &batches, &changes, &ranges);
    }
}
