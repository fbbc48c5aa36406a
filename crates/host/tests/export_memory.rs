//! How much memory an export of a log of hundreds of megabytes takes, measured on a process of its
//! own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code")]

use std::{
    env,
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
    process::Command,
    sync::Arc,
};

use turnkeep_host::export::Exporter;
use turnkeep_log::{SessionHeader, SessionId};
use turnkeep_store::jsonl::{Compression, JsonlOptions, JsonlStore};

/// Names the store to the process that is measured.
const ROOT: &str = "TURNKEEP_TEST_ROOT";

const MIB: u64 = 1 << 20;

/// How many events the log has.
const EVENTS: u64 = 300;

/// How many bytes each of them has, and more.
const EVENT: usize = 1 << 20;

/// What one export may take: the process, a batch of events that follows smaller ones, what it is
/// packed to, and buffers. No part of this grows with the log.
const CEILING: u64 = 128 * MIB;

fn session() -> SessionId {
    SessionId::new("large").unwrap()
}

/// Not a test by itself: the process that is measured. It says how many bytes the archive has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_by_itself() {
    let Ok(root) = env::var(ROOT) else { return };
    let options = JsonlOptions { compression: Compression::None, ..JsonlOptions::new(root) };
    let exporter = Exporter::new(Arc::new(JsonlStore::open(options).unwrap()), None);
    let plan = exporter.check(&session(), false, |_| {}).await.unwrap();
    assert_eq!(plan.events(), EVENTS);
    assert!(plan.bytes() > EVENTS * EVENT as u64);
    let mut archive = exporter.archive(plan);
    let mut bytes = 0;
    while let Some(piece) = archive.next().await.unwrap() {
        bytes += piece.len();
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("an archive of {bytes} bytes");
    println!("took {} KiB", peak);
}

/// A log of large events, each of which packs to next to nothing.
fn write_log(root: &Path) {
    let folder = root.join("_no-cwd").join(session().as_str());
    fs::create_dir_all(&folder).unwrap();
    let mut log = BufWriter::new(File::create(folder.join("session.jsonl")).unwrap());
    writeln!(log, "{}", SessionHeader::new(session(), 1).to_line()).unwrap();
    let filling = "x".repeat(EVENT);
    for seq in 0..EVENTS {
        let event = r#"{"type":"todo/write","seq":"#;
        writeln!(log, r#"{event}{seq},"time":1,"data":{{"todos":["{filling}"]}}}}"#).unwrap();
    }
    log.into_inner().unwrap();
}

#[test]
fn an_export_takes_no_more_memory_for_a_longer_log() {
    let root = tempfile::tempdir().unwrap();
    write_log(root.path());
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "an_export_by_itself", "--nocapture"])
        .env(ROOT, root.path())
        .output()
        .unwrap();
    let told = String::from_utf8(child.stdout).unwrap();
    assert!(child.status.success(), "{told}");
    let line = told.lines().find_map(|line| line.strip_prefix("took ")).unwrap();
    let peak = line.trim_end_matches(" KiB").parse::<u64>().unwrap() * 1024;
    println!("{} MiB", peak / MIB);
    assert!(peak < CEILING, "{} MiB", peak / MIB);
}
