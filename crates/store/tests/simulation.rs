//! The jsonl store on a simulated disk that loses power at every step.
//!
//! Every run follows from a seed, which a failing run prints: `just sim SEED` repeats it. `just sim`
//! alone is a longer run than the one that is part of the tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod sim;
mod support;

use std::{
    env, fmt,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use sim::{
    disk::{Lie, Names, Stop},
    run::{CRASHES, Plan, Story, short_life, storm},
    tally::{Met, Tally},
};
use turnkeep_store::{Durability, jsonl::Encoding};

/// One seed to repeat.
const SEED: &str = "TURNKEEP_SIM_SEED";
/// How many crash points to go through.
const CRASH_POINTS: &str = "TURNKEEP_SIM_CRASH_POINTS";

fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().filter(|value| !value.is_empty()).map(|value| value.parse().unwrap())
}

/// A run that went wrong: what it was, why, and what had been done.
struct Failure {
    seed: u64,
    why: String,
    story: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, why, story } = self;
        write!(f, "{}\nseed {seed}: {why}\nto repeat it: just sim {seed}", story.join("\n"))
    }
}

/// Runs something that panics when the store breaks a promise.
fn attempt<T>(seed: u64, run: impl FnOnce(&Story) -> T) -> Result<T, Failure> {
    let story = Story::default();
    catch_unwind(AssertUnwindSafe(|| run(&story))).map_err(|panic| {
        let why = panic.downcast_ref::<String>().cloned();
        let why = why.or_else(|| panic.downcast_ref::<&str>().map(|why| (*why).to_owned()));
        let story = story.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Failure { seed, why: why.unwrap_or_default(), story }
    })
}

/// Runs the storms of many seeds on all processors.
fn storms(seeds: Range<u64>, plan: impl Fn(u64) -> Plan + Sync) -> (Tally, Vec<Failure>) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let (mut tally, mut failures) = (Tally::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return (tally, failures);
            }
            match attempt(seed, |story| storm(plan(seed), story)) {
                Ok(met) => tally.add(&met),
                Err(failure) => failures.push(failure),
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let (mut all, mut failures) = (Tally::default(), Vec::new());
        for worker in workers {
            let (tally, failed) = worker.join().unwrap();
            all.add(&tally);
            failures.extend(failed);
        }
        failures.sort_by_key(|failure| failure.seed);
        (all, failures)
    })
}

#[test]
fn what_was_acknowledged_survives_storms() {
    let crash_points = setting(CRASH_POINTS).unwrap_or(2400);
    let seeds = match setting(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..crash_points.div_ceil(CRASHES),
    };
    let (tally, failures) = storms(seeds.clone(), Plan::from_seed);
    println!("{} crash points\n{tally}", tally.crash_points());
    if let Some(first) = failures.first() {
        let all: Vec<u64> = failures.iter().map(|failure| failure.seed).collect();
        panic!("{first}\n{} of {} seeds failed: {all:?}", all.len(), seeds.count());
    }
    if setting(SEED).is_none() {
        assert_eq!(tally.missing(), [], "these never happened");
        assert!(tally.crash_points() >= crash_points);
    }
}

/// A plan for a life without trouble.
fn calm(encoding: Encoding, names: Names, durability: Durability) -> Plan {
    Plan { seed: 0, encoding, names, pack_chunks: true, fault_every: 0, durability, lie: None }
}

/// The same life, ended at each of its steps; what was met, and the ends that went wrong.
fn short_lives(of: Plan, stop: Stop) -> (Vec<Tally>, Vec<String>) {
    let (mut lives, mut failures) = (Vec::new(), Vec::new());
    for step in 1.. {
        let plan = Plan { seed: step, ..of };
        match attempt(step, |story| short_life(plan, step, stop, story)) {
            Ok(Some(met)) => lives.push(met),
            Ok(None) => break,
            Err(Failure { why, story, .. }) => {
                failures.push(format!("{}\n{stop:?} in {plan:?}: {why}", story.join("\n")));
            }
        }
    }
    (lives, failures)
}

#[test]
fn every_step_of_a_short_life_can_be_the_last() {
    let mut tally = Tally::default();
    for encoding in [Encoding::Zstd, Encoding::None] {
        for names in [Names::Links, Names::Renames, Names::Neither] {
            for durability in [Durability::Append, Durability::Flush] {
                for stop in [Stop::Kill, Stop::PowerCut] {
                    let plan = calm(encoding, names, durability);
                    let (lives, failures) = short_lives(plan, stop);
                    assert!(lives.len() > 50, "a life of {} steps", lives.len());
                    for life in &lives {
                        tally.add(life);
                    }
                    if let Some(failure) = failures.first() {
                        panic!("{failure}");
                    }
                }
            }
        }
    }
    println!("{} crash points\n{tally}", tally.crash_points());
    for met in
        [Met::ProcessKilled, Met::PowerLost, Met::UnacknowledgedKept, Met::UnacknowledgedGone]
    {
        assert!(tally.count(met) > 0, "{met:?} never happened");
    }
}

/// What the simulator is worth: it has to notice a sync that is not done.
#[test]
fn a_disk_that_lies_is_found_out() {
    for durability in [Durability::Append, Durability::Flush] {
        for lie in [Lie::Data, Lie::All, Lie::Dir] {
            let plan = |seed| Plan { lie: Some(lie), durability, ..Plan::from_seed(seed) };
            let (_, failures) = storms(0..100, plan);
            let why: Vec<_> = failures.iter().map(|failure| failure.why.as_str()).collect();
            println!("{durability:?}, {lie:?}: {} of 100 seeds failed: {why:#?}", why.len());
            let plan = Plan { lie: Some(lie), ..calm(Encoding::Zstd, Names::Links, durability) };
            let (_, ends) = short_lives(plan, Stop::PowerCut);
            println!("{} ends of a short life, the first: {:#?}", ends.len(), ends.first());
            let is_found_out = !why.is_empty() && !ends.is_empty();
            assert!(is_found_out, "{lie:?} is never synced with {durability:?}, and that is fine?");
        }
    }
}
