//! Any interleaving of publishing, appending, flushing, failing and closing, judged by a model: the
//! log is what was accepted, in the order in which it was accepted.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use support::{append, batch, disk::Disk as Folder, event, faulty::FaultyFs, id, never, read};
use turnkeep_log::Event;
use turnkeep_log::Vocabulary;
use turnkeep_store::{
    Access, EventRange, LiveOptions, Routed, SessionHandle, SessionStore,
    contract::{live, steps},
    error::{CloseError, OpenError},
    jsonl::{Encoding, JsonlOptions, JsonlStore},
    memory::{Disk, MemoryStore},
};

/// Small enough that a few events fill it.
const LIVE: LiveOptions =
    LiveOptions { window: Duration::from_millis(200), max_events: 4, max_bytes: 400 };

#[derive(Clone, Debug)]
enum Op {
    /// As many events as this, the first of them so far off the seq that it has to have.
    Publish(u64, i64),
    Append(u64, i64),
    /// An append, and before it is done an event that follows it.
    AppendAndPublish(u64),
    FlushHandle,
    FlushSession,
    FlushStore,
    Wait(u64),
    Failing(bool),
    Close,
    Dispose,
    Drop,
}

fn op() -> impl Strategy<Value = Op> {
    let off = || prop_oneof![8 => Just(0_i64), 1 => -2_i64..3];
    prop_oneof![
        8 => (1_u64..7, off()).prop_map(|(count, off)| Op::Publish(count, off)),
        4 => (0_u64..4, off()).prop_map(|(count, off)| Op::Append(count, off)),
        2 => (1_u64..4).prop_map(Op::AppendAndPublish),
        2 => Just(Op::FlushHandle),
        2 => Just(Op::FlushSession),
        1 => Just(Op::FlushStore),
        3 => (0_u64..300).prop_map(Op::Wait),
        3 => any::<bool>().prop_map(Op::Failing),
        1 => Just(Op::Close),
        1 => Just(Op::Dispose),
        1 => Just(Op::Drop),
    ]
}

/// A place that fails when it is told to.
trait Place {
    fn store(&self) -> Arc<dyn SessionStore>;
    fn set_failing(&self, failing: bool);
}

impl Place for Disk {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(MemoryStore::with_options(self, Vocabulary::v0(), LIVE))
    }

    fn set_failing(&self, failing: bool) {
        self.set_full(failing);
    }
}

impl Place for (Folder, FaultyFs) {
    fn store(&self) -> Arc<dyn SessionStore> {
        let options = JsonlOptions { live: LIVE, ..self.0.options() };
        Arc::new(JsonlStore::open_on(options, Arc::new(self.1.clone())).unwrap())
    }

    fn set_failing(&self, failing: bool) {
        self.1.set_full(failing);
    }
}

/// A session, and what must come of it.
struct Run<'a> {
    place: &'a dyn Place,
    store: Arc<dyn SessionStore>,
    writer: Box<dyn SessionHandle>,
    failing: bool,
    accepted: Vec<Event>,
}

impl<'a> Run<'a> {
    async fn start(place: &'a dyn Place) -> Self {
        let store = place.store();
        let writer = steps::create(&*store, "s").await;
        append(&*writer, 0, 1).await;
        Self { place, store, writer, failing: false, accepted: batch(0, 1) }
    }

    fn next(&self) -> u64 {
        self.accepted.len() as u64
    }

    fn off(&self, off: i64) -> u64 {
        self.next().saturating_add_signed(off)
    }

    async fn apply(&mut self, op: Op) {
        match op {
            Op::Publish(count, off) => {
                for _ in 0..count {
                    self.publish(self.off(off)).await;
                }
            }
            Op::Append(count, off) => self.append(count, self.off(off)).await,
            Op::AppendAndPublish(count) => self.append_and_publish(count).await,
            Op::FlushHandle => {
                let flushed = self.writer.flush(&never()).await;
                self.flushed(flushed.is_ok()).await;
            }
            Op::FlushSession => {
                let flushed = self.store.flush_session(&id("s"), &never()).await;
                assert!(!matches!(flushed, Ok(Routed::NoWriter)));
                self.flushed(flushed.is_ok()).await;
            }
            Op::FlushStore => {
                let flushed = self.store.flush(&never()).await;
                self.flushed(flushed.is_ok()).await;
            }
            Op::Wait(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            Op::Failing(failing) => {
                self.failing = failing;
                self.place.set_failing(failing);
            }
            Op::Close => {
                let closed = self.writer.close().await;
                self.ended(closed).await;
            }
            Op::Dispose => {
                let disposed = self.store.dispose(&id("s")).await;
                let disposed = disposed.map(|routed| assert_eq!(routed, Routed::ToWriter));
                self.ended(disposed).await;
            }
            Op::Drop => self.drop_handle().await,
        }
        let stored = self.stored().await;
        assert_eq!(stored, self.accepted[..stored.len()], "a prefix of what was accepted");
    }

    async fn publish(&mut self, seq: u64) {
        match self.store.publish(&id("s"), event(seq)).await {
            Ok(routed) => {
                assert_eq!(routed, Routed::ToWriter);
                assert_eq!(seq, self.next());
                self.accepted.push(event(seq));
            }
            Err(error) if seq == self.next() => {
                // There was no room.
                assert!(self.failing, "{error}");
                assert_eq!(error.kind(), "io");
            }
            Err(error) => assert_eq!(error.kind(), "seq_mismatch"),
        }
    }

    async fn append(&mut self, count: u64, first: u64) {
        match self.writer.append(batch(first, count), &never()).await {
            Ok(next) => {
                assert!(count == 0 || first == self.next());
                self.accepted.extend(batch(first, count));
                assert_eq!(next.0, self.next());
                assert_eq!(self.stored().await, self.accepted);
            }
            Err(error) if error.kind() == "seq_mismatch" => assert_ne!(first, self.next()),
            Err(error) => assert!(self.failing, "{error}"),
        }
    }

    async fn append_and_publish(&mut self, count: u64) {
        let (never, id, next) = (never(), id("s"), self.next());
        let (appended, published) = tokio::join!(
            biased;
            self.writer.append(batch(next, count), &never),
            self.store.publish(&id, event(next + count)),
        );
        if appended.is_ok() {
            self.accepted.extend(batch(next, count));
            assert!(published.is_ok());
            self.accepted.push(event(next + count));
        } else {
            assert!(self.failing);
            assert_eq!(published.unwrap_err().kind(), "seq_mismatch");
        }
    }

    async fn flushed(&self, succeeded: bool) {
        if succeeded {
            assert_eq!(self.stored().await, self.accepted);
        } else {
            assert!(self.failing);
        }
    }

    async fn ended(&mut self, closed: Result<(), CloseError>) {
        let stored = self.stored().await.len() as u64;
        match closed {
            Ok(()) => assert_eq!(stored, self.next()),
            Err(error) => {
                assert!(self.failing);
                let lost = EventRange { offset: stored, length: Some(self.next() - stored) };
                assert_eq!(error.unstored, Some(lost));
            }
        }
        assert_eq!(
            self.store.publish(&id("s"), event(self.next())).await.unwrap(),
            Routed::NoWriter
        );
        self.reopen().await;
    }

    /// Opens the session again, with what of it is stored.
    async fn reopen(&mut self) {
        // A claim is given back by another thread, where a handle is dropped.
        self.writer = loop {
            match self.store.open(&id("s"), Access::Write, &never()).await {
                Ok(writer) => break writer,
                Err(OpenError::AlreadyOwned(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        self.accepted = read(&*self.writer).await;
    }

    async fn drop_handle(&mut self) {
        let placeholder = steps::create(&MemoryStore::new(&Disk::new()), "none").await;
        drop(std::mem::replace(&mut self.writer, placeholder));
        // It waits for handles that are on their way out.
        self.store.flush(&never()).await.unwrap();
        let stored = self.stored().await;
        assert!(self.failing || stored == self.accepted);
        assert_eq!(stored, self.accepted[..stored.len()]);
        self.reopen().await;
        assert_eq!(self.accepted, stored);
    }

    async fn stored(&self) -> Vec<Event> {
        let reader = steps::open(&*self.place.store(), "s", Access::Read).await;
        read(&*reader).await
    }
}

fn check(place: &dyn Place, ops: Vec<Op>) {
    live::run(async move {
        let mut run = Run::start(place).await;
        for op in ops {
            run.apply(op).await;
        }
        run.apply(Op::Failing(false)).await;
        run.apply(Op::FlushSession).await;
        run.apply(Op::Publish(1, 0)).await;
        run.apply(Op::Close).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_log_in_memory_is_what_was_accepted(ops in prop::collection::vec(op(), 1..60)) {
        check(&Disk::new(), ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_log_on_disk_is_what_was_accepted(ops in prop::collection::vec(op(), 1..60)) {
        check(&(Folder::new(Encoding::Zstd), FaultyFs::default()), ops);
    }
}
