//! The life of a session on a disk that cannot be trusted.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use turnkeep_log::{Event, Seq};
use turnkeep_store::{
    Durability, EventRange,
    jsonl::{
        Encoding, JsonlOptions,
        blocking::{BlockingHandle, BlockingStore},
    },
};

use super::{
    disk::{Disk, Ending, Lie, Moment, Names, Stop},
    oracle::{Grain, Oracle},
    random::Random,
    tally::{Met, Tally},
};
use crate::support::{
    disk::{PROJECT, compression, log_name},
    header, id,
};

/// What has been done, to be told when it goes wrong.
pub type Story = Arc<Mutex<Vec<String>>>;

/// What a life is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub encoding: Encoding,
    pub names: Names,
    pub pack_chunks: bool,
    /// One operation in so many fails; none when 0.
    pub fault_every: usize,
    pub durability: Durability,
    pub lie: Option<Lie>,
}

impl Plan {
    /// A plan that follows from a seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            seed,
            encoding: random.pick(&[Encoding::Zstd, Encoding::None]),
            names: random.pick(&[Names::Links, Names::Links, Names::Renames, Names::Neither]),
            pack_chunks: random.coin(),
            fault_every: random.pick(&[0, 100, 30, 12]),
            durability: random.pick(&[Durability::Append, Durability::Flush]),
            lie: None,
        }
    }
}

/// How many crashes there are in one life.
pub const CRASHES: u64 = 8;

/// Lives one life, with a crash at some step of each of its parts.
///
/// # Panics
///
/// When the store breaks a promise.
pub fn storm(plan: Plan, story: &Story) -> Tally {
    let mut life = Life::new(plan, story);
    for _ in 0..CRASHES {
        let ending = Ending {
            after: life.random.pick(&[20, 100]),
            moment: life.random.pick(&[
                Moment::Any,
                Moment::Sync,
                Moment::FileSync,
                Moment::SyncOfPieces,
            ]),
            stop: life.random.pick(&[Stop::Kill, Stop::PowerCut, Stop::PowerCut]),
        };
        let ending = Ending { after: 1 + life.random.next() % ending.after, ..ending };
        life.disk.expect_trouble(plan.fault_every, Some(ending));
        for _ in 0..40 {
            if life.disk.stopped().is_some() {
                break;
            }
            life.act();
        }
        life.crash(ending.stop);
    }
    life.disk.tally()
}

/// Lives a life of a few fixed acts, which ends at this step, in this way. `None` when it is over
/// before.
///
/// # Panics
///
/// When the store breaks a promise.
pub fn short_life(plan: Plan, last_step: u64, stop: Stop, story: &Story) -> Option<Tally> {
    let mut life = Life::new(plan, story);
    let ending = Ending { after: last_step, moment: Moment::Any, stop };
    life.disk.expect_trouble(0, Some(ending));
    let acts: [fn(&mut Life); 12] = [
        Life::take,
        Life::append,
        Life::append,
        Life::close,
        Life::foreign_tail,
        Life::take,
        Life::append,
        Life::flush,
        Life::append,
        Life::close,
        Life::take,
        Life::append,
    ];
    for act in acts {
        if life.disk.stopped().is_none() {
            life.step(act);
        }
    }
    let stopped = life.disk.stopped().is_some();
    stopped.then(|| {
        life.crash(stop);
        life.disk.tally()
    })
}

/// How much of a log has to be there as long as the power is.
#[derive(Clone, Copy, Default)]
struct Visible {
    events: usize,
    /// How many syncs of logs had failed by then.
    syncs_failed: u64,
}

/// One session, and all that happens to it.
pub(super) struct Life {
    pub(super) plan: Plan,
    pub(super) random: Random,
    pub(super) disk: Disk,
    pub(super) store: BlockingStore,
    pub(super) handle: Option<BlockingHandle>,
    /// Whether the open handle's session is not stored yet: its first batch comes with its log.
    pending: bool,
    /// Whether there is a tail to be cut.
    pub(super) has_tail: bool,
    pub(super) oracle: Oracle,
    /// What a look shows if only processes end, and no sync of a log has failed since.
    visible: Visible,
    pub(super) session: u32,
    /// Makes every event another.
    pub(super) nonce: u64,
    pub(super) story: Story,
}

impl Life {
    pub(super) fn new(plan: Plan, told: &Story) -> Self {
        let disk = Disk::new(plan.seed, plan.names, plan.lie);
        let store = open_store(plan, &disk);
        Self {
            plan,
            random: Random::new(plan.seed ^ 0xDEAD_BEEF),
            disk,
            store,
            handle: None,
            pending: false,
            has_tail: false,
            oracle: Oracle::default(),
            visible: Visible::default(),
            session: 0,
            nonce: 1_000_000,
            story: Arc::clone(told),
        }
    }

    pub(super) fn tell(&self, what: impl fmt::Display) {
        self.story.lock().unwrap().push(format!("{:>5}  {what}", self.disk.steps()));
    }

    pub(super) fn name(&self) -> String {
        format!("s{}", self.session)
    }

    pub(super) fn log_path(&self) -> PathBuf {
        Disk::store_root().join(PROJECT).join(self.name()).join(log_name(self.plan.encoding))
    }

    pub(super) fn log_bytes(&self) -> Vec<u8> {
        self.disk.bytes(&self.log_path()).unwrap_or_default()
    }

    /// Where a batch may end that was not acknowledged. A frame is whole or not; lines stand for
    /// themselves, unless they came with their log.
    pub(super) fn grain(&self) -> Grain {
        match (self.plan.encoding, self.plan.names) {
            (Encoding::Zstd, _) => Grain::Batch,
            (Encoding::None, Names::Neither) => Grain::Event,
            (Encoding::None, _) if self.oracle.is_stored() => Grain::Event,
            (Encoding::None, _) => Grain::EventOfALog,
        }
    }

    pub(super) fn step(&mut self, act: fn(&mut Self)) {
        act(self);
        if self.disk.stopped().is_some() {
            self.handle = None;
        }
    }

    /// Does something.
    pub(super) fn act(&mut self) {
        let act = match (&self.handle, self.random.below(40)) {
            (None, 0..=5) => Self::foreign_tail,
            (None, 6 | 7) => Self::foreign_event,
            (None, _) => Self::take,
            (Some(_), 0) => Self::foreign_while_open,
            (Some(_), 1) => Self::foreign_rewrite,
            (Some(_), 2) => Self::foreign_at_once,
            (Some(_), 3 | 4) => Self::close,
            (Some(_), 5 | 6) => Self::flush,
            (Some(_), 7..=9) => Self::read,
            (Some(_), _) => Self::append,
        };
        self.step(act);
    }

    // ---- what a program does ----------------------------------------------------------------

    /// Opens the session, or makes it.
    pub(super) fn take(&mut self) {
        match self.store.open(&id(&self.name())) {
            Ok(handle) => {
                // What it says is true whatever fails.
                let there = self.disk.calmly(|| handle.read(EventRange::ALL)).unwrap();
                self.tell(format!("open: {} events", there.len()));
                self.judge_found(&there, false);
                self.pending = false;
                self.handle = Some(handle);
            }
            Err(error) if error.kind() == "not_found" => {
                self.tell("open: not found");
                self.oracle.miss(false).unwrap();
                match self.store.create(header(&self.name())) {
                    Ok(handle) => {
                        self.pending = true;
                        self.handle = Some(handle);
                    }
                    Err(error) => self.excuse("create", error.kind(), &error.to_string()),
                }
            }
            Err(error) => self.excuse("open", error.kind(), &error.to_string()),
        }
    }

    /// An operation may fail when the disk does. A log that was being made in place may be left
    /// half made.
    pub(super) fn excuse(&mut self, operation: &str, kind: &str, error: &str) {
        self.tell(format!("{operation}: {kind}: {error}"));
        if self.disk.stopped().is_some() {
            return;
        }
        let half_made = self.plan.names == Names::Neither && !self.oracle.is_stored();
        match kind {
            "io" => assert!(self.plan.fault_every > 0, "{error}"),
            "corrupt" | "already_exists" if half_made => self.abandon(),
            _ => panic!("{operation}: {error}"),
        }
    }

    /// Goes on with another session.
    pub(super) fn abandon(&mut self) {
        self.tell("abandon");
        self.handle = None;
        self.session += 1;
        self.oracle = Oracle::default();
        self.visible = Visible::default();
    }

    pub(super) fn judge_found(&mut self, there: &[Event], durable: bool) {
        let (before, grain) = (self.oracle.is_settled(), self.grain());
        let acknowledged = self.oracle.log().len();
        if self.visible.syncs_failed == self.disk.log_syncs_failed() {
            assert!(there.len() >= self.visible.events, "what was accepted is not shown");
        }
        if let (Some((_, last)), true) = (self.oracle.accepted(), durable) {
            let kept = there.len() as u64 > last;
            self.disk.note(if kept { Met::AcceptedKept } else { Met::AcceptedLost });
        }
        if let Err(wrong) = self.oracle.look(there, grain, durable) {
            panic!("{wrong}");
        }
        if !before {
            let kept = there.len() > acknowledged;
            self.disk.note(if kept { Met::UnacknowledgedKept } else { Met::UnacknowledgedGone });
        }
    }

    /// Lets go of the session: with a barrier, or without.
    pub(super) fn close(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        if self.random.coin() {
            self.tell("drop");
            return;
        }
        self.oracle.attempt(Vec::new());
        let accepted = self.oracle.accepted();
        let outcome = handle.close().map_err(|error| (error.kind(), error.to_string()));
        self.tell(format!("close: {outcome:?}"));
        match outcome {
            Ok(()) => {
                self.oracle.take_back();
                if accepted.is_some() {
                    self.oracle.confirm();
                    self.disk.note(Met::Flushed);
                }
            }
            Err(_) if self.disk.stopped().is_some() => {}
            Err(("io", error)) => {
                self.oracle.take_back();
                assert!(self.plan.fault_every > 0, "{error}");
            }
            Err(("poisoned", error)) => self.judge_losses(accepted, &error),
            Err((kind, error)) => self.excuse("close", kind, &error),
        }
    }

    pub(super) fn read(&mut self) {
        let Some(handle) = &self.handle else { return };
        match handle.read(EventRange::ALL) {
            Ok(events) => assert_eq!(events.len(), self.oracle.log().len(), "read"),
            Err(error) => self.excuse("read", error.kind(), &error.to_string()),
        }
    }

    pub(super) fn append(&mut self) {
        let batch = self.batch();
        self.append_batch(&batch);
    }

    pub(super) fn append_batch(&mut self, batch: &[Event]) {
        let Some(mut handle) = self.handle.take() else { return };
        self.oracle.attempt(batch.to_vec());
        let before = self.log_bytes();
        let next = Seq(self.oracle.next_seq() + batch.len() as u64);
        let syncs_failed = self.disk.log_syncs_failed();
        let outcome = handle.append(batch).map_err(|error| (error.kind(), error.to_string()));
        let outcome = outcome.map(|told| assert_eq!(told, next));
        self.tell(format!("append {} events: {outcome:?}", batch.len()));
        let accepted = self.plan.durability == Durability::Flush && !self.pending;
        if self.oracle.is_stored() && self.disk.log_syncs_failed() > syncs_failed {
            let kind = outcome.as_ref().map_err(|(kind, _)| *kind);
            assert_eq!(kind, Err("poisoned"), "after a failed sync");
        }
        if accepted && outcome.is_ok() {
            self.oracle.accept();
            self.disk.note(Met::Accepted);
            self.note_tail_cut();
            self.handle = Some(handle);
            self.show();
        } else {
            self.written(handle, &before, outcome);
        }
    }

    /// From now on this is what a look shows.
    fn show(&mut self) {
        let (events, syncs_failed) = (self.oracle.log().len(), self.disk.log_syncs_failed());
        self.visible = Visible { events, syncs_failed };
    }

    fn note_tail_cut(&mut self) {
        if std::mem::take(&mut self.has_tail) {
            self.disk.note(Met::TailCut);
        }
    }

    pub(super) fn flush(&mut self) {
        let Some(mut handle) = self.handle.take() else { return };
        self.oracle.attempt(Vec::new());
        let pending = self.pending;
        let before = self.log_bytes();
        let accepted = self.oracle.accepted();
        let syncs_failed = self.disk.log_syncs_failed();
        let outcome = handle.flush().map_err(|error| (error.kind(), error.to_string()));
        self.tell(format!("flush: {outcome:?}"));
        if !pending && self.disk.log_syncs_failed() > syncs_failed {
            let kind = outcome.as_ref().map_err(|(kind, _)| *kind);
            assert_eq!(kind, Err("poisoned"), "after a failed sync");
        }
        if outcome.is_ok() && !pending {
            self.oracle.take_back();
            self.oracle.confirm();
            if accepted.is_some() {
                self.disk.note(Met::Flushed);
            }
            self.handle = Some(handle);
            self.show();
        } else {
            self.written(handle, &before, outcome);
        }
    }

    pub(super) fn written(
        &mut self,
        handle: BlockingHandle,
        before: &[u8],
        outcome: Result<(), (&str, String)>,
    ) {
        match outcome {
            Ok(()) => {
                self.oracle.acknowledge();
                self.pending = false;
                self.disk.note(Met::Acknowledged);
                self.note_tail_cut();
                self.handle = Some(handle);
                self.show();
            }
            Err(_) if self.disk.stopped().is_some() => {}
            Err(("io", error)) => {
                self.taken_back(&error, before);
                self.handle = Some(handle);
            }
            Err(("poisoned", error)) => {
                self.disk.note(Met::Poisoned);
                self.judge_losses(self.oracle.accepted(), &error);
                self.refused(handle);
            }
            Err((kind, error)) => {
                drop(handle);
                self.excuse("write", kind, &error);
            }
        }
    }

    /// A handle is poisoned: it names what it takes back of what it had accepted, or has stored it.
    fn judge_losses(&mut self, accepted: Option<(u64, u64)>, error: &str) {
        let Some((first, last)) = accepted else {
            assert!(!error.contains("were accepted"), "{error}");
            return;
        };
        let ending = format!(" to {last} were accepted, but are not on disk");
        let named = error.split_once(&ending).and_then(|(before, _)| before.rsplit_once(' '));
        if let Some((_, from)) = named {
            let from = from.parse().unwrap();
            assert!((first..=last).contains(&from), "{error}");
            self.oracle.confirm_until(from);
            self.disk.note(Met::AcceptedTakenBack);
        } else {
            assert!(!error.contains("were accepted"), "{error}");
            self.oracle.confirm_before();
        }
    }

    /// A batch failed, and is not there.
    pub(super) fn taken_back(&mut self, error: &str, before: &[u8]) {
        assert!(self.plan.fault_every > 0, "{error}");
        let rolled_back = error.contains("cannot append to");
        if rolled_back {
            self.disk.note(Met::RolledBack);
        }
        let in_place = self.plan.names == Names::Neither && !self.oracle.is_stored();
        if self.oracle.is_stored() {
            assert!(before.starts_with(&self.log_bytes()), "a failed batch left bytes");
        }
        if !in_place {
            self.oracle.take_back();
        }
        // It is not to come back, either.
        if rolled_back && self.random.coin() {
            self.disk.stop(Stop::PowerCut);
        }
    }

    /// A handle is poisoned: it refuses to go on, without as much as a look at the disk.
    pub(super) fn refused(&mut self, mut handle: BlockingHandle) {
        let (steps, before) = (self.disk.steps(), self.log_bytes());
        let batch = vec![self.small(self.oracle.next_seq())];
        assert_eq!(handle.append(&batch).unwrap_err().kind(), "poisoned");
        assert_eq!(handle.flush().unwrap_err().kind(), "poisoned");
        assert_eq!((self.disk.steps(), self.log_bytes()), (steps, before));
        // And still reads what was acknowledged, unless it had shown more.
        let there = self.disk.calmly(|| handle.read(EventRange::ALL));
        match (self.oracle.accepted(), there) {
            (None, there) => assert_eq!(there.unwrap().len(), self.oracle.log().len()),
            (Some(_), there) => assert_eq!(there.unwrap_err().kind(), "log_shrank"),
        }
    }

    // ---- what comes after -------------------------------------------------------------------

    /// Stops everything, unless it has stopped, and looks at what is left.
    pub(super) fn crash(&mut self, stop: Stop) {
        if self.disk.stopped().is_none() {
            self.disk.stop(stop);
        }
        let stop = self.disk.stopped().unwrap();
        self.tell(format!("{stop:?}"));
        self.handle = None;
        if stop == Stop::PowerCut {
            self.visible = Visible::default();
        }
        self.disk.restart();
        self.store = open_store(self.plan, &self.disk);
        // Sometimes the next trouble is there before anyone has had a look.
        if self.random.once_in(if stop == Stop::Kill { 2 } else { 4 }) {
            return;
        }
        self.look(stop == Stop::PowerCut);
    }

    pub(super) fn look(&mut self, durable: bool) {
        self.compare_index();
        match self.store.open(&id(&self.name())) {
            Ok(mut handle) => {
                let there = handle.read(EventRange::ALL).unwrap();
                self.tell(format!("found {} events", there.len()));
                self.judge_found(&there, durable);
                if self.random.once_in(4) {
                    return;
                }
                let batch = self.batch();
                handle.append(&batch).unwrap();
                self.oracle.attempt(batch);
                if self.plan.durability == Durability::Flush && self.random.coin() {
                    self.oracle.accept();
                } else {
                    handle.flush().unwrap();
                    self.oracle.acknowledge();
                }
                self.show();
                drop(handle);
                let handle = self.store.open(&id(&self.name())).unwrap();
                let there = handle.read(EventRange::ALL).unwrap();
                assert!(there == self.oracle.log(), "the log cannot be continued");
            }
            Err(error) if error.kind() == "not_found" => {
                self.tell("found nothing");
                if let Err(wrong) = self.oracle.miss(durable) {
                    panic!("{wrong}");
                }
            }
            Err(error) => {
                let half_made = self.plan.names == Names::Neither && !self.oracle.is_stored();
                assert!(half_made, "the log does not open: {error}");
                self.abandon();
            }
        }
    }
}

pub(super) fn options(plan: Plan) -> JsonlOptions {
    JsonlOptions {
        compression: compression(plan.encoding),
        pack_chunks: plan.pack_chunks,
        durability: plan.durability,
        ..JsonlOptions::new(Disk::store_root())
    }
}

fn open_store(plan: Plan, disk: &Disk) -> BlockingStore {
    BlockingStore::open_on(options(plan), Arc::new(disk.process())).unwrap()
}
