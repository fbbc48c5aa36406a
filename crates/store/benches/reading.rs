//! What reading costs, each thing beside the least that it could cost: `cargo bench -p
//! turnkeep-store --bench reading`.
//!
//! Both sides of a row run in turn in the same process, over the same files, in the page cache; the
//! ratio is of their fastest runs, which is what is left when nothing else is going on. The files
//! lie in `/dev/shm` where there is one, so that making them takes no syncs, or where
//! `TURNKEEP_BENCH_DIR` says.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark"
)]

use std::{
    env,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use turnkeep_log::{Event, Seq, SessionHeader, SessionId};
use turnkeep_store::{
    Access, Cancel, EventRange, ListQuery, SessionStore,
    contract::steps::event_of,
    jsonl::{JsonlOptions, JsonlStore},
};

/// How many events the large log has, and how many are appended at once.
const EVENTS: u64 = 100_000;
const BATCH: u64 = 100;

/// How many events a reader wants who looks at the end of a session.
const TAIL: u64 = 20;

/// How long one row may take, about.
const PATIENCE: Duration = Duration::from_secs(4);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    println!("{:<44} {:>11} {:>11} {:>8}", "", "ours", "baseline", "ratio");
    large_log(&runtime);
    for sessions in [1_000, 10_000] {
        listing(&runtime, sessions);
    }
}

fn folder() -> TempDir {
    let shared = PathBuf::from("/dev/shm");
    let dir = env::var_os("TURNKEEP_BENCH_DIR").map(PathBuf::from);
    match dir.or_else(|| shared.is_dir().then_some(shared)) {
        Some(dir) => tempfile::tempdir_in(dir).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

/// A tool call of some five hundred bytes, which compress as such things do.
fn tool_call(seq: u64) -> Event {
    let word = seq.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let arguments = format!(
        r#"{{\"path\":\"/work/demo/src/module_{}/file_{word:016x}.rs\",\"pattern\":\"fn {word:x}\"}}"#,
        seq % 97,
    );
    let filler = "the same words as always, ".repeat(12);
    let data = format!(
        r#"{{"turn":{},"step":1,"callId":"call_{word:016x}","name":"grep","arguments":"{arguments}","note":"{filler}"}}"#,
        seq / 50,
    );
    event_of("tool/call", seq, &data)
}

fn store_session(runtime: &Runtime, store: &JsonlStore, name: &str, cwd: String, events: u64) {
    let mut header = SessionHeader::new(SessionId::new(name).unwrap(), 1_700_000_000_000);
    header.cwd = Some(cwd);
    runtime.block_on(async {
        let never = Cancel::never();
        let writer = store.create(header, &never).await.unwrap();
        for first in (0..events).step_by(usize::try_from(BATCH).unwrap()) {
            let batch = (first..events.min(first + BATCH)).map(tool_call).collect();
            writer.append(batch, &never).await.unwrap();
        }
        writer.close().await.unwrap();
    });
}

/// Both sides, one after the other again and again; the fastest run of each.
fn fastest(mut ours: impl FnMut(), mut baseline: impl FnMut()) -> (Duration, Duration) {
    let time = |side: &mut dyn FnMut()| {
        let start = Instant::now();
        side();
        start.elapsed()
    };
    let start = Instant::now();
    let (mut best, mut runs) = ((Duration::MAX, Duration::MAX), 0);
    while runs < 5 || (start.elapsed() < PATIENCE && runs < 2_000) {
        best = (best.0.min(time(&mut ours)), best.1.min(time(&mut baseline)));
        runs += 1;
    }
    best
}

fn row(what: &str, ours: impl FnMut(), baseline: impl FnMut()) {
    let (ours, baseline) = fastest(ours, baseline);
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64();
    println!("{what:<44} {:>11} {:>11} {ratio:>8.3}", spelled(ours), spelled(baseline));
}

fn spelled(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn read(runtime: &Runtime, store: &JsonlStore, range: EventRange) -> usize {
    let id = SessionId::new("large").unwrap();
    runtime.block_on(async {
        let never = Cancel::never();
        let reader = store.open(&id, Access::Read, &never).await.unwrap();
        reader.read(range, &never).await.unwrap().len()
    })
}

fn large_log(runtime: &Runtime) {
    let folder = folder();
    let store = JsonlStore::open(JsonlOptions::new(folder.path())).unwrap();
    store_session(runtime, &store, "large", "/work/demo".to_owned(), EVENTS);
    let log = folder.path().join("--work-demo--/large/session.jsonl.zstd");
    let index = log.with_file_name("turnkeep.idx");
    let (log_size, text_size) = (fs::metadata(&log).unwrap().len(), unpack(&log));
    println!(
        "{EVENTS} events: {:.1} MB of text in {:.1} MB, and {:.1} kB of index",
        text_size as f64 / 1e6,
        log_size as f64 / 1e6,
        fs::metadata(&index).unwrap().len() as f64 / 1e3,
    );
    let whole = || {
        assert_eq!(read(runtime, &store, EventRange::ALL) as u64, EVENTS);
    };
    row("full read | unpack as a stream", whole, || {
        assert_eq!(unpack(&log), text_size);
    });
    if unpack_by_command(&log) {
        row("full read | zstd -dc", whole, || assert!(unpack_by_command(&log)));
    }
    let tail = || {
        let range = EventRange::from(Seq(EVENTS - TAIL));
        assert_eq!(read(runtime, &store, range) as u64, TAIL);
    };
    let kept = fs::read(&index).unwrap();
    let hidden = index.with_file_name("hidden");
    row("last 20 events, index | full read", tail, whole);
    // A reader that finds none makes one: put something there that it cannot replace.
    fs::rename(&index, &hidden).unwrap();
    fs::create_dir(&index).unwrap();
    row("last 20 events, no index | full read", tail, whole);
    fs::remove_dir(&index).unwrap();
    let with_and_without = || {
        let _ = fs::remove_file(&index);
        tail();
    };
    row("last 20 events, making the index | full read", with_and_without, whole);
    fs::write(&index, kept).unwrap();
}

/// Unpacks a log as a stream, keeping nothing; how long the text is.
fn unpack(log: &Path) -> u64 {
    let bytes = fs::read(log).unwrap();
    let mut context = zstd_safe::DCtx::create();
    let mut output = vec![0; 256 << 10];
    let mut input = zstd_safe::InBuffer::around(&bytes);
    let mut length = 0;
    while input.pos() < bytes.len() {
        let mut out = zstd_safe::OutBuffer::around(output.as_mut_slice());
        context.decompress_stream(&mut out, &mut input).unwrap();
        length += out.pos() as u64;
    }
    length
}

/// Whether the command is there and unpacks the log.
fn unpack_by_command(log: &Path) -> bool {
    let run = Command::new("zstd").arg("-dcq").arg(log).stdout(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

fn listing(runtime: &Runtime, sessions: u64) {
    let folder = folder();
    let store = JsonlStore::open(JsonlOptions::new(folder.path())).unwrap();
    for session in 0..sessions {
        let cwd = format!("/work/project-{}", session % 50);
        store_session(runtime, &store, &format!("session-{session}"), cwd, 20);
    }
    let list = |limit: Option<usize>| {
        let query = ListQuery { limit, ..ListQuery::default() };
        let list = runtime.block_on(store.list(&query, &Cancel::never())).unwrap();
        let hints = list.entries.iter().filter_map(|entry| entry.stat.as_ref()?.hints.as_ref());
        (list.entries.len(), hints.count())
    };
    let all = usize::try_from(sessions).unwrap();
    let walk = || assert_eq!(walk(folder.path()), all);
    let name = |what: &str| format!("list {sessions} sessions, {what}");
    row(&name("indexes | walk, open"), || assert_eq!(list(None), (all, all)), walk);
    row(&name("a page of 50 | walk, open"), || assert_eq!(list(Some(50)), (50, 50)), walk);
    for_each_log(folder.path(), &mut |log| {
        fs::remove_file(log.with_file_name("turnkeep.idx")).unwrap();
    });
    row(&name("no index | walk, open"), || assert_eq!(list(None), (all, 0)), walk);
}

/// Walks the tree, opens each log and reads its first bytes; how many there are.
fn walk(root: &Path) -> usize {
    let mut count = 0;
    let mut first = [0; 512];
    for_each_log(root, &mut |log| {
        let mut log = File::open(log).unwrap();
        count += usize::from(log.metadata().unwrap().is_file());
        let _ = log.read(&mut first).unwrap();
    });
    count
}

fn for_each_log(root: &Path, act: &mut dyn FnMut(&Path)) {
    for project in fs::read_dir(root).unwrap() {
        for session in fs::read_dir(project.unwrap().path()).unwrap() {
            for file in fs::read_dir(session.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.file_name().is_some_and(|name| name == "session.jsonl.zstd") {
                    act(&path);
                }
            }
        }
    }
}
