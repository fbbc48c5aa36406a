//! The sqlite store among several processes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    env,
    io::{BufRead as _, BufReader, Lines, Write as _},
    process::{Child, ChildStdout, Command, Stdio},
};

use support::{append, batch, create, database::Database, id, never, open, read, store_session};
use turnkeep_store::{
    Access, ListQuery, SessionStore,
    sqlite::{SqliteOptions, SqliteStore},
};

/// Says what the process that runs [`child`] should do: the database, what, and with which session.
const DATABASE: &str = "TURNKEEP_TEST_DATABASE";
const ROLE: &str = "TURNKEEP_TEST_ROLE";
const SESSION: &str = "TURNKEEP_TEST_SESSION";

/// Another process, and what it prints.
struct Other {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// Runs this test program once more, and waits until it is ready.
    fn start(database: &Database, role: &str, session: &str) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(DATABASE, database.path())
            .env(ROLE, role)
            .env(SESSION, session)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = output.any(|line| line.unwrap().contains("ready"));
        assert!(ready, "the other process ended early");
        Self { process, output }
    }

    /// Reads up to this many lines; the number in the last one.
    fn last_number(&mut self, lines: usize) -> Option<u64> {
        let lines = self.output.by_ref().take(lines);
        lines.filter_map(|line| line.ok()?.trim().parse().ok()).last()
    }

    /// Kills it, and reads what it had printed.
    fn kill(mut self) -> Option<u64> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.last_number(usize::MAX)
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
    let (Ok(path), Ok(role), Ok(name)) = (env::var(DATABASE), env::var(ROLE), env::var(SESSION))
    else {
        return;
    };
    let store = SqliteStore::open(SqliteOptions::new(path)).unwrap();
    let handle = match role.as_str() {
        "holds" => open(&store, &name, Access::Write).await,
        "appends" => {
            let handle = create(&store, &name).await;
            println!("ready");
            for seq in 0..200 {
                append(&*handle, seq, 1).await;
            }
            handle
        }
        "floods" => {
            let handle = create(&store, &name).await;
            println!("ready");
            for seq in 0.. {
                append(&*handle, seq, 1).await;
                println!("{}", seq + 1);
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
    let database = Database::new();
    let store = database.store();
    store_session(&store, "s", 3).await;
    let other = Other::start(&database, "holds", "s");
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

#[tokio::test]
async fn processes_write_side_by_side() {
    let database = Database::new();
    let others = ["a", "b", "c"].map(|name| Other::start(&database, "appends", name));
    let store = database.store();
    let handle = create(&store, "s").await;
    for seq in 0..200 {
        append(&*handle, seq, 1).await;
    }
    others.into_iter().for_each(Other::end);
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    assert_eq!(list.entries.len(), 4);
    for entry in list.entries {
        let reader = store.open(&entry.id, Access::Read, &never()).await.unwrap();
        assert_eq!(read(&*reader).await, batch(0, 200), "{}", entry.id);
    }
}

#[tokio::test]
async fn what_a_killed_process_was_told_is_stored_is_stored() {
    let database = Database::new();
    for round in 0..5 {
        let name = format!("s{round}");
        let mut other = Other::start(&database, "floods", &name);
        let seen = other.last_number(20).unwrap();
        let acknowledged = other.kill().unwrap_or(seen).max(seen);
        let store = database.store();
        let writer = open(&store, &name, Access::Write).await;
        let stored = read(&*writer).await.len() as u64;
        // One more at most, whose answer did not get out.
        assert!((acknowledged..=acknowledged + 1).contains(&stored), "{acknowledged}, {stored}");
        append(&*writer, stored, 1).await;
        assert_eq!(read(&*writer).await, batch(0, stored + 1));
    }
}
