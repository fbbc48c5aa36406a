//! The jsonl store among several processes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use support::{
    append, batch, create,
    disk::{BOTH, Disk},
    id, never, open, read, store_session,
};
use turnkeep_store::{
    Access, SessionStore,
    jsonl::{Encoding, JsonlOptions, JsonlStore},
};

/// Says what the process that runs [`child`] should do: the root, and what with session `s`.
const ROOT: &str = "TURNKEEP_TEST_ROOT";
const ROLE: &str = "TURNKEEP_TEST_ROLE";

/// Another process, and what it prints.
struct Other {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Runs this test program once more, and waits until it is ready.
    fn start(disk: &Disk, role: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(ROOT, disk.root())
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = output.any(|line| line.unwrap().contains("ready"));
        assert!(ready, "the other process ended early");
        Self { process, output }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn end(mut self) {
        self.process.stdin.take().unwrap().write_all(b"\n").unwrap();
        // To the end, or it could not print.
        self.output.for_each(drop);
        assert!(self.process.wait().unwrap().success());
    }
}

/// What the other process does. Without being told it is no test at all.
#[tokio::test]
async fn child() {
    let (Ok(root), Ok(role)) = (env::var(ROOT), env::var(ROLE)) else { return };
    let store = JsonlStore::open(JsonlOptions::new(root)).unwrap();
    let handle = match role.as_str() {
        "holds" => open(&store, "s", Access::Write).await,
        "appends" => {
            let handle = open(&store, "s", Access::Write).await;
            let next = read(&*handle).await.len() as u64;
            append(&*handle, next, 2).await;
            handle
        }
        "creates" => {
            let handle = create(&store, "s").await;
            append(&*handle, 0, 1).await;
            handle
        }
        "floods" => {
            let handle = open(&store, "s", Access::Write).await;
            println!("ready");
            for seq in 3.. {
                append(&*handle, seq, 1).await;
            }
            handle
        }
        other => panic!("{other}"),
    };
    println!("ready");
    std::io::stdout().flush().unwrap();
    // Until it is killed, or told to end.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    handle.close().await.unwrap();
}

#[tokio::test]
async fn a_session_has_one_writer_among_processes() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        store_session(&store, "s", 3).await;
        let other = Other::start(&disk, "holds");
        for _ in 0..2 {
            let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "already_owned");
        }
        // Readers are not concerned, and other sessions are not.
        assert_eq!(read(&*open(&store, "s", Access::Read).await).await.len(), 3);
        store_session(&store, "t", 1).await;
        // At once, when it is killed: the kernel gives the lock back.
        other.kill();
        let writer = open(&store, "s", Access::Write).await;
        append(&*writer, 3, 1).await;
    }
}

#[tokio::test]
async fn processes_take_turns() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let store = disk.store();
        // The other process detects the encoding, so there has to be something to detect.
        store_session(&store, "first", 1).await;
        let creator = Other::start(&disk, "creates");
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        assert_eq!(
            store.create(support::header("s"), &never()).await.unwrap_err().kind(),
            "already_exists"
        );
        creator.end();

        let reader = open(&store, "s", Access::Read).await;
        let mut next = 1;
        for _ in 0..2 {
            assert_eq!(read(&*reader).await, batch(0, next));
            let other = Other::start(&disk, "appends");
            next += 2;
            assert_eq!(read(&*reader).await, batch(0, next));
            other.kill();
            let writer = open(&store, "s", Access::Write).await;
            append(&*writer, next, 1).await;
            writer.close().await.unwrap();
            next += 1;
        }
    }
}

/// The command comes with Linux.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_lock_is_a_flock() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    store_session(&store, "s", 1).await;
    let lock = disk.session_dir("s").join("session.lock");
    let locked_by_command = || {
        let status = Command::new("flock").arg("--nonblock").arg(&lock).arg("true").status();
        !status.unwrap().success()
    };
    assert!(!locked_by_command());
    let writer = open(&store, "s", Access::Write).await;
    assert!(locked_by_command());
    writer.close().await.unwrap();
    assert!(!locked_by_command());

    let mut holder = Command::new("flock")
        .arg(&lock)
        .args(["sh", "-c", "echo held; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
    assert_eq!(error.kind(), "already_owned");
    holder.stdin.take().unwrap().write_all(b"\n").unwrap();
    holder.wait().unwrap();
    open(&store, "s", Access::Write).await;
    // It survives its owner, empty; removing it lets a successor in.
    assert_eq!(fs::metadata(&lock).unwrap().len(), 0);
}

#[tokio::test]
async fn removing_the_lock_file_lets_a_successor_in_and_the_fence_finds_it() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        store_session(&disk.store(), "s", 1).await;
        let (first, second) = (disk.store(), disk.store());
        let stuck = open(&first, "s", Access::Write).await;
        let error = second.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "already_owned");
        fs::remove_file(disk.session_dir("s").join("session.lock")).unwrap();
        let successor = open(&second, "s", Access::Write).await;
        append(&*successor, 1, 1).await;
        let error = stuck.append(batch(1, 1), &never()).await.unwrap_err();
        assert_eq!(error.kind(), "ownership_lost");
        append(&*successor, 2, 1).await;
        assert_eq!(read(&*successor).await, batch(0, 3));
    }
}

#[tokio::test]
async fn a_reader_follows_a_writer_that_is_killed_at_any_moment() {
    for encoding in BOTH {
        for round in 0..6 {
            let disk = Disk::new(encoding);
            let store = disk.store();
            store_session(&store, "s", 3).await;
            let reader = open(&store, "s", Access::Read).await;
            let other = Other::start(&disk, "floods");
            let until = Instant::now() + Duration::from_millis(20 + 7 * round);
            let mut seen = 3;
            while Instant::now() < until {
                let events = read(&*reader).await;
                assert!(events.len() >= seen);
                seen = events.len();
                assert_eq!(events, batch(0, seen as u64));
            }
            other.kill();
            let writer = open(&store, "s", Access::Write).await;
            let events = read(&*writer).await;
            assert!(events.len() >= seen);
            assert_eq!(events, batch(0, events.len() as u64));
            append(&*writer, events.len() as u64, 1).await;
        }
    }
}
