//! The cache of cold sessions against a model of it, whatever happens in whatever order.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use proptest::prelude::*;
use support::{append, batch, event, id, never, open, store_session, watched::Watched};
use turnkeep_log::Event;
use turnkeep_store::{
    Access, SessionHandle,
    cold::{ColdCache, ColdOptions, Lease},
    memory::{Disk, MemoryStore},
};

const SESSIONS: usize = 7;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    Observe(usize),
    /// One of the leases is held twice.
    Copy(prop::sample::Index),
    Release(prop::sample::Index),
    /// Another process writes.
    Write(usize, u64),
    /// A write handle of the store itself is opened, or closed.
    Toggle(usize),
    /// The store is opened anew.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..SESSIONS).prop_map(Step::Observe),
        1 => any::<prop::sample::Index>().prop_map(Step::Copy),
        5 => any::<prop::sample::Index>().prop_map(Step::Release),
        3 => (0..SESSIONS, 1..40_u64).prop_map(|(session, count)| Step::Write(session, count)),
        1 => (0..SESSIONS).prop_map(Step::Toggle),
        1 => Just(Step::Reopen),
    ]
}

/// What is kept, the most recently used last.
#[derive(Clone, Debug)]
struct Kept {
    session: usize,
    /// The store that it was read through, and how long the log was.
    store: usize,
    events: u64,
    pins: usize,
}

#[derive(Debug)]
struct Held {
    lease: Lease,
    session: usize,
    store: usize,
    events: u64,
    kept: bool,
}

struct Model {
    options: ColdOptions,
    kept: Vec<Kept>,
    lengths: [u64; SESSIONS],
    store: usize,
}

impl Model {
    fn is(kept: &Kept, held: &Held) -> bool {
        kept.session == held.session && kept.store == held.store && kept.events == held.events
    }

    /// What a look comes to: whether the log is read.
    fn observe(&mut self, session: usize) -> bool {
        let known = self.kept.iter().position(|kept| kept.session == session);
        let known = known.map(|at| self.kept.remove(at));
        let events = self.lengths[session];
        let counts = known.filter(|kept| kept.store == self.store && kept.events == events);
        let reads = counts.is_none();
        let mut kept = counts.unwrap_or(Kept { session, store: self.store, events, pins: 0 });
        kept.pins += 1;
        self.kept.push(kept);
        reads
    }

    fn pin(&mut self, held: &Held) {
        if let Some(at) = self.kept.iter().position(|kept| Self::is(kept, held)) {
            let mut kept = self.kept.remove(at);
            kept.pins += 1;
            self.kept.push(kept);
        }
    }

    fn release(&mut self, held: &Held) {
        if held.kept
            && let Some(at) = self.kept.iter().position(|kept| Self::is(kept, held))
        {
            let mut kept = self.kept.remove(at);
            kept.pins -= 1;
            self.kept.push(kept);
        }
        if held.kept {
            self.evict();
        }
    }

    fn evict(&mut self) {
        loop {
            let idle: Vec<_> = self.kept.iter().filter(|kept| kept.pins == 0).collect();
            let bytes: u64 = idle.iter().map(|kept| bytes(kept.events)).sum();
            if idle.len() <= self.options.max_unpinned && bytes <= self.options.max_bytes {
                return;
            }
            let oldest = self.kept.iter().position(|kept| kept.pins == 0).unwrap();
            self.kept.remove(oldest);
        }
    }
}

/// What a log of these events takes.
fn bytes(events: u64) -> u64 {
    let each = |seq| event(seq).text().len() as u64 + size_of::<Event>() as u64;
    (0..events).map(each).sum::<u64>() + 1024
}

fn name(session: usize) -> String {
    format!("s{session}")
}

async fn run(options: ColdOptions, steps: Vec<Step>) {
    let disk = Disk::new();
    let other = MemoryStore::new(&disk);
    for session in 0..SESSIONS {
        store_session(&other, &name(session), 1).await;
    }
    let mut model = Model { options, kept: Vec::new(), lengths: [1; SESSIONS], store: 0 };
    let cache = ColdCache::new(options);
    let mut watched = Watched::new(Arc::new(MemoryStore::new(&disk)));
    let mut held: Vec<Held> = Vec::new();
    let mut writers: [Option<Box<dyn SessionHandle>>; SESSIONS] = [const { None }; SESSIONS];
    for step in steps {
        match step {
            Step::Observe(session) => {
                let before = watched.reads();
                let store = watched.store();
                let lease = cache.observe(&store, &id(&name(session)), &never()).await.unwrap();
                let live = writers[session].is_some();
                let reads = live || model.observe(session);
                assert_eq!(watched.reads() - before, usize::from(reads), "{step:?}");
                assert_eq!(lease.is_live(), live);
                let (store, events) = (model.store, model.lengths[session]);
                held.push(Held { lease, session, store, events, kept: !live });
            }
            Step::Copy(which) if !held.is_empty() => {
                let from = which.get(&held);
                let copy = Held { lease: from.lease.clone(), ..*from };
                if copy.kept {
                    model.pin(&copy);
                }
                held.push(copy);
            }
            Step::Release(which) if !held.is_empty() => {
                let released = held.swap_remove(which.index(held.len()));
                model.release(&released);
                drop(released);
            }
            Step::Write(session, count) => {
                let first = model.lengths[session];
                if let Some(writer) = &writers[session] {
                    append(&**writer, first, count).await;
                } else {
                    let writer = open(&other, &name(session), Access::Write).await;
                    append(&*writer, first, count).await;
                    writer.close().await.unwrap();
                }
                model.lengths[session] += count;
            }
            Step::Toggle(session) => {
                if let Some(writer) = writers[session].take() {
                    writer.close().await.unwrap();
                } else {
                    let writer = open(&*watched, &name(session), Access::Write).await;
                    writers[session] = Some(writer);
                }
            }
            Step::Reopen => {
                for writer in writers.iter_mut().filter_map(Option::take) {
                    writer.close().await.unwrap();
                }
                watched = Watched::new(Arc::new(MemoryStore::new(&disk)));
                model.store += 1;
            }
            Step::Copy(_) | Step::Release(_) => {}
        }
        assert_eq!(cache.len(), model.kept.len(), "after {step:?}: {:?}", model.kept);
        for held in &held {
            assert_eq!(held.lease.events(), batch(0, held.events), "a lease never changes");
        }
    }
    drop(held);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_does_what_its_model_does(
        max_unpinned in 0..5_usize,
        max_bytes in prop_oneof![Just(u64::MAX), 1000..20_000_u64],
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(ColdOptions { max_unpinned, max_bytes }, steps));
    }
}
