//! The jsonl store against a model: whatever happens to a session, its log is the list of the
//! events that were acknowledged.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{io::ErrorKind, sync::Arc};

use proptest::prelude::*;
use support::{
    create,
    disk::Disk,
    event_of,
    faulty::{Effect, FaultyFs, Op},
    id, never, open, read,
};
use turnkeep_log::{Event, Seq};
use turnkeep_store::{Access, EventRange, SessionHandle, SessionStore, jsonl::Encoding};

/// What happens next to a session.
#[derive(Clone, Debug)]
enum Step {
    /// A batch, of events of these kinds.
    Append(Vec<Kind>),
    /// A batch that fails after some bytes were written.
    FailWrite(Vec<Kind>, usize),
    /// A batch whose sync fails, which may be stored or not.
    FailSync(Vec<Kind>),
    Flush,
    /// The writer is closed, or dropped, and another store opens the session.
    Reopen {
        close: bool,
    },
    /// The writer is gone in the middle of an append that reached the disk in part.
    Crash(Vec<Kind>, prop::sample::Index),
    /// The reader that was there from the beginning reads a range.
    Read(prop::sample::Index, Option<u64>),
}

#[derive(Clone, Debug)]
enum Kind {
    Delta(String),
    Call(u8),
    TurnEnd,
    Large(u16),
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => "[ -~é😀\n]{0,6}".prop_map(Kind::Delta),
        2 => any::<u8>().prop_map(Kind::Call),
        1 => Just(Kind::TurnEnd),
        1 => (0u16..2000).prop_map(Kind::Large),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let kinds = || prop::collection::vec(kind(), 1..12);
    prop_oneof![
        6 => kinds().prop_map(Step::Append),
        1 => (kinds(), 0usize..400).prop_map(|(kinds, written)| Step::FailWrite(kinds, written)),
        1 => kinds().prop_map(Step::FailSync),
        1 => Just(Step::Flush),
        2 => any::<bool>().prop_map(|close| Step::Reopen { close }),
        2 => (kinds(), any::<prop::sample::Index>()).prop_map(|(kinds, at)| Step::Crash(kinds, at)),
        3 => (any::<prop::sample::Index>(), prop::option::of(0u64..20))
            .prop_map(|(offset, length)| Step::Read(offset, length)),
    ]
}

fn events(kinds: &[Kind], first: u64) -> Vec<Event> {
    let event = |(kind, seq): (&Kind, u64)| match kind {
        Kind::Delta(text) => {
            let text = serde_json::to_string(text).unwrap();
            let chunk = format!(r#"{{"type":"text-delta","index":0,"text":{text}}}"#);
            let data = format!(r#"{{"turn":1,"step":1,"chunk":{chunk}}}"#);
            event_of("assistant/chunk", seq, &data)
        }
        Kind::Call(n) => event_of("tool/call", seq, &format!(r#"{{"callId":"c{n}"}}"#)),
        Kind::TurnEnd => event_of("turn/end", seq, r#"{"turn":1,"reason":{"kind":"completed"}}"#),
        Kind::Large(n) => {
            let noise: Vec<u64> =
                (0..u64::from(*n)).map(|n| (n + seq).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
            event_of("todo/write", seq, &format!("{noise:?}"))
        }
    };
    kinds.iter().zip(first..).map(event).collect()
}

/// A session under test.
struct Session {
    disk: Disk,
    faults: FaultyFs,
    writer: Box<dyn SessionHandle>,
    reader: Box<dyn SessionHandle>,
    /// What was acknowledged.
    model: Vec<Event>,
    /// Where that ends in the file.
    end: usize,
}

impl Session {
    async fn new(encoding: Encoding) -> Self {
        let disk = Disk::new(encoding);
        let faults = FaultyFs::default();
        let writer = create(&disk.store_on(Arc::new(faults.clone())), "s").await;
        writer.flush(&never()).await.unwrap();
        let reader = open(&disk.store(), "s", Access::Read).await;
        let end = disk.bytes("s").len();
        Self { disk, faults, writer, reader, model: Vec::new(), end }
    }

    fn batch(&self, kinds: &[Kind]) -> Vec<Event> {
        events(kinds, self.model.len() as u64)
    }

    async fn reopen(&mut self) {
        let store = self.disk.store_on(Arc::new(self.faults.clone()));
        self.writer = open(&store, "s", Access::Write).await;
    }

    /// Lets go of the session, whatever its writer thinks of it.
    async fn abandon(&mut self) {
        self.writer.close().await.unwrap();
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Append(kinds) => {
                let batch = self.batch(kinds);
                let next = self.writer.append(batch.clone(), &never()).await.unwrap();
                self.model.extend(batch);
                self.end = self.disk.bytes("s").len();
                assert_eq!(next, Seq(self.model.len() as u64));
            }
            Step::FailWrite(kinds, written) => {
                let log = self.disk.log_name();
                let batch = self.batch(kinds);
                let size = self.disk.encode(&turnkeep_log::packed::pack_batch(&batch)).len();
                if (1..size).contains(written) {
                    self.faults.inject(Op::Append, log, 0, 1, Effect::Short(*written));
                }
                self.faults.fail(Op::Append, log, ErrorKind::StorageFull);
                let error = self.writer.append(batch, &never()).await.unwrap_err();
                assert_eq!(error.kind(), "io");
                self.faults.assert_spent();
            }
            Step::FailSync(kinds) => {
                // Past the cut of a torn tail, if there is one, which is synced in another way.
                self.faults.fail(Op::SyncData, self.disk.log_name(), ErrorKind::Other);
                let batch = self.batch(kinds);
                let error = self.writer.append(batch.clone(), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "poisoned");
                self.abandon().await;
                self.reopen().await;
                if read(&*self.writer).await.len() > self.model.len() {
                    self.model.extend(batch);
                    self.end = self.disk.bytes("s").len();
                }
            }
            Step::Flush => self.writer.flush(&never()).await.unwrap(),
            Step::Reopen { close } => {
                if *close {
                    self.writer.close().await.unwrap();
                }
                // Dropped before the next one is opened.
                let store = self.disk.store();
                self.writer = open(&store, "nothing-else", Access::Read).await;
                self.reopen().await;
            }
            Step::Crash(kinds, at) => {
                self.abandon().await;
                let lines = turnkeep_log::packed::pack_batch(&self.batch(kinds));
                let bytes = self.disk.encode(&lines);
                // Without its last byte at least, or it would be a batch.
                let bytes = &bytes[..at.index(bytes.len())];
                // The writer has cut off what a crash before left.
                let log = std::fs::read(self.disk.log("s")).unwrap();
                self.disk.lay("s", &[&log[..self.end], bytes].concat());
                if self.disk.encoding == Encoding::None {
                    // Each whole line counts as written.
                    let whole =
                        bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    self.end += whole;
                    for line in lines[..whole].lines() {
                        self.model.extend(turnkeep_log::records::decode(&line.into()).unwrap());
                    }
                }
                self.reopen().await;
            }
            Step::Read(offset, length) => {
                let offset = offset.index(self.model.len() + 2);
                let range = EventRange { offset: offset as u64, length: *length };
                let events = self.reader.read(range, &never()).await.unwrap();
                let from = offset.min(self.model.len());
                let length = length.map_or(usize::MAX, |length| usize::try_from(length).unwrap());
                let to = from.saturating_add(length).min(self.model.len());
                assert_eq!(events, self.model[from..to]);
            }
        }
    }

    async fn check(&self) {
        assert_eq!(read(&*self.writer).await, self.model);
        assert_eq!(read(&*self.reader).await, self.model);
        let store = self.disk.store();
        assert_eq!(read(&*open(&store, "s", Access::Read).await).await, self.model);
        let ours = store.stat(&id("s"), &never()).await.unwrap();
        assert!(ours.is_some());
    }
}

fn run(encoding: Encoding, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut session = Session::new(encoding).await;
        // So that a handle can be replaced by one of another session.
        support::store_session(&session.disk.store(), "nothing-else", 1).await;
        for step in steps {
            session.step(step).await;
        }
        session.check().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_zstd_log_is_what_was_acknowledged(steps in prop::collection::vec(step(), 1..24)) {
        run(Encoding::Zstd, &steps);
    }

    #[test]
    fn a_plain_log_is_what_was_acknowledged(steps in prop::collection::vec(step(), 1..24)) {
        run(Encoding::None, &steps);
    }
}
