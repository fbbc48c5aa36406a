//! What an append costs, beside what the disk costs.
//!
//! ```text
//! cargo bench -p turnkeep-store --bench append [DIRECTORY]
//! ```
//!
//! Every figure stands beside a baseline of the same run: the bytes that the store wrote, written
//! again to a file of their own in the same pieces, and synced with `fdatasync` as often as the line
//! says. Store and baseline take turns, so that both meet the same disk; times are medians. What is
//! worth comparing between machines is the ratio.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark")]

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use turnkeep_log::{Event, EventDraft, Seq, SessionHeader, SessionId, json::JsonText};
use turnkeep_store::{
    Cancel, Durability, SessionHandle, SessionStore,
    jsonl::{Compression, JsonlOptions, JsonlStore},
};

/// How often store and baseline take turns.
const ROUNDS: usize = 7;
/// How many batches go into one turn.
const BATCHES: usize = 40;
/// How many sessions, or waiting appends, share a barrier.
const TOGETHER: usize = 16;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let directory = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let directory = directory.map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let place = tempfile::tempdir_in(directory).unwrap();
    println!(
        "{:44} {:>9} {:>12} {:>12} {:>7}",
        "per append, unless it says otherwise", "bytes", "store", "baseline", "ratio"
    );
    for events in [1, 16, 256] {
        one_by_one(place.path(), events, Durability::Append).await;
        one_by_one(place.path(), events, Durability::Flush).await;
    }
    sessions(place.path()).await;
}

/// Appends, each waited for; with `flush`, a barrier after the last of a turn.
async fn one_by_one(place: &Path, events: usize, durability: Durability) {
    let name = format!("one-{events}-{}", durability.as_str());
    let mut log = Log::new(place, &name, durability).await;
    let mut raw = Raw::new(place, &name);
    let (mut store, mut syncing, mut once) = (Times::default(), Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let batches: Vec<_> = (0..BATCHES).map(|_| log.batch(events)).collect();
        let mut sizes = vec![log.size()];
        let mut taken = Duration::ZERO;
        for batch in batches {
            taken += log.append(batch).await;
            sizes.push(log.size());
        }
        if durability == Durability::Flush {
            let start = Instant::now();
            log.handle.flush(&Cancel::never()).await.unwrap();
            taken += start.elapsed();
        }
        store.add(taken, BATCHES);
        let pieces = log.pieces(&sizes);
        syncing.add(raw.write(&pieces, 1), BATCHES);
        once.add(raw.write(&pieces, BATCHES), BATCHES);
    }
    let what = format!("{events} events, durability {}", durability.as_str());
    let bytes = log.size() / (ROUNDS * BATCHES) as u64;
    match durability {
        Durability::Append => line(&what, bytes, &mut store, &mut syncing),
        Durability::Flush => {
            line(&format!("{what}; a sync each"), bytes, &mut store, &mut syncing);
            line(&format!("{what}; a sync for {BATCHES}"), bytes, &mut store, &mut once);
        }
    }
}

/// One append in each of many sessions, and a barrier for all.
async fn sessions(place: &Path) {
    let store = open(place, "sessions", Durability::Flush);
    let mut logs = Vec::new();
    let mut raws = Vec::new();
    for session in 0..TOGETHER {
        let name = format!("s{session}");
        logs.push(Log::of(&store, &place.join("sessions"), &name).await);
        raws.push(Raw::new(place, &name));
    }
    let (mut grouped, mut one_by_one) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let start_sizes: Vec<u64> = logs.iter().map(Log::size).collect();
        let mut taken = Duration::ZERO;
        for log in &mut logs {
            let batch = log.batch(16);
            taken += log.append(batch).await;
        }
        let start = Instant::now();
        store.flush(&Cancel::never()).await.unwrap();
        grouped.add(taken + start.elapsed(), TOGETHER);
        let mut raw_taken = Duration::ZERO;
        for ((log, raw), before) in logs.iter().zip(&mut raws).zip(start_sizes) {
            raw_taken += raw.write(&log.pieces(&[before, log.size()]), 1);
        }
        one_by_one.add(raw_taken, TOGETHER);
    }
    let what = format!("16 events, {TOGETHER} sessions, one store.flush");
    let bytes = logs[0].size() / ROUNDS as u64;
    line(&what, bytes, &mut grouped, &mut one_by_one);
}

fn open(place: &Path, root: &str, durability: Durability) -> JsonlStore {
    let compression = Compression::Zstd;
    let root = place.join(root);
    JsonlStore::open(JsonlOptions { compression, durability, ..JsonlOptions::new(root) }).unwrap()
}

/// A session that is written to.
struct Log {
    handle: Arc<dyn SessionHandle>,
    path: PathBuf,
    next: u64,
}

impl Log {
    async fn new(place: &Path, name: &str, durability: Durability) -> Self {
        Self::of(&open(place, name, durability), &place.join(name), name).await
    }

    async fn of(store: &JsonlStore, root: &Path, name: &str) -> Self {
        let header = SessionHeader::new(SessionId::new(name).unwrap(), 1_785_974_400_000);
        let handle = store.create(header, &Cancel::never()).await.unwrap();
        handle.flush(&Cancel::never()).await.unwrap();
        let path = root.join("_no-cwd").join(name).join("session.jsonl.zstd");
        Self { handle: handle.into(), path, next: 0 }
    }

    fn size(&self) -> u64 {
        self.path.metadata().unwrap().len()
    }

    /// Events of some 300 bytes that compress as tool output does.
    fn batch(&mut self, events: usize) -> Vec<Event> {
        let events = (self.next..self.next + events as u64).map(|seq| {
            let noise = seq.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let output =
                format!("crates/store/src/{noise:x}.rs:{seq}: fn append(&mut self) ").repeat(4);
            let data = format!(r#"{{"turn":{},"step":1,"output":"{output}"}}"#, seq / 20);
            let data = JsonText::parse(&data.as_str().into()).unwrap();
            EventDraft::new("tool/result", &data).complete(Seq(seq), 1_785_974_400_000).unwrap()
        });
        let events: Vec<Event> = events.collect();
        self.next += events.len() as u64;
        events
    }

    async fn append(&mut self, batch: Vec<Event>) -> Duration {
        let start = Instant::now();
        self.handle.append(batch, &Cancel::never()).await.unwrap();
        start.elapsed()
    }

    /// The bytes between these sizes of the log.
    fn pieces(&self, sizes: &[u64]) -> Vec<Vec<u8>> {
        let bytes = std::fs::read(&self.path).unwrap();
        let at = |size: u64| usize::try_from(size).unwrap();
        sizes.windows(2).map(|ends| bytes[at(ends[0])..at(ends[1])].to_vec()).collect()
    }
}

/// A file that the same bytes are written to.
struct Raw(File);

impl Raw {
    fn new(place: &Path, name: &str) -> Self {
        let path = place.join(format!("{name}.raw"));
        Self(OpenOptions::new().append(true).create_new(true).open(path).unwrap())
    }

    /// Writes pieces, and syncs after so many.
    fn write(&mut self, pieces: &[Vec<u8>], each: usize) -> Duration {
        let start = Instant::now();
        for together in pieces.chunks(each) {
            for piece in together {
                self.0.write_all(piece).unwrap();
            }
            self.0.sync_data().unwrap();
        }
        start.elapsed()
    }
}

#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn add(&mut self, taken: Duration, appends: usize) {
        self.0.push(taken.as_secs_f64() * 1e6 / f64::from(u32::try_from(appends).unwrap()));
    }

    fn median(&mut self) -> f64 {
        self.0.sort_unstable_by(f64::total_cmp);
        self.0[self.0.len() / 2]
    }
}

fn line(what: &str, bytes: u64, store: &mut Times, baseline: &mut Times) {
    let (store, baseline) = (store.median(), baseline.median());
    let ratio = store / baseline;
    println!("{what:44} {bytes:>9} {store:>9.1} µs {baseline:>9.1} µs {ratio:>7.2}");
}
