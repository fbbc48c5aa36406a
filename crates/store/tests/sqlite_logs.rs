//! What the sqlite store keeps, and what it makes of damage, rivals and a busy database.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, time::Duration};

use rusqlite::{Connection, params};
use support::{
    append, batch, create,
    database::{Database, beside, insert},
    disk::{Disk, pack},
    event_of, header, id, never, open, read, read_range, seqs, store_session, texts,
};
use turnkeep_log::Event;
use turnkeep_store::{
    Access, EventRange, ListQuery, SessionState, SessionStore,
    jsonl::Encoding,
    sqlite::{SqliteOptions, SqliteStore},
};

fn rows(connection: &Connection, session: &str) -> Vec<(u64, u64, Vec<u8>)> {
    let mut statement = connection
        .prepare(
            "SELECT seq, events, frame FROM frames JOIN sessions ON key = session WHERE id = ?1 \
             ORDER BY seq",
        )
        .unwrap();
    let number =
        |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).unwrap().unsigned_abs();
    let rows = statement
        .query_map([session], |row| Ok((number(row, 0), number(row, 1), row.get(2).unwrap())));
    rows.unwrap().map(Result::unwrap).collect()
}

fn delta(seq: u64) -> Event {
    event_of(
        "assistant/chunk",
        seq,
        &format!(
            r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"word {seq}"}}}}"#
        ),
    )
}

#[tokio::test]
async fn a_log_is_the_frames_of_a_jsonl_log() {
    let database = Database::new();
    let store = database.store();
    let handle = create(&store, "s").await;
    append(&*handle, 0, 3).await;
    let deltas: Vec<Event> = (3..503).map(delta).collect();
    handle.append(deltas, &never()).await.unwrap();
    append(&*handle, 503, 1).await;
    let events = read(&*handle).await;
    handle.close().await.unwrap();
    drop((handle, store));

    // One row an append, and the deltas are one record.
    let rows = rows(&database.connection(), "s");
    let extents: Vec<_> = rows.iter().map(|(seq, events, _)| (*seq, *events)).collect();
    assert_eq!(extents, [(0, 3), (3, 500), (503, 1)]);
    assert!(rows[1].2.len() < 8000, "{} bytes", rows[1].2.len());

    let disk = Disk::new(Encoding::Zstd);
    let mut log = pack(&(header("s").to_line() + "\n"));
    for (_, _, frame) in &rows {
        log.extend_from_slice(frame);
    }
    disk.lay("s", &log);
    let other = disk.store();
    assert_eq!(texts(&read(&*open(&other, "s", Access::Read).await).await), texts(&events));
}

#[tokio::test]
async fn a_long_batch_is_kept_in_several_rows_and_counts_whole() {
    let database = Database::new();
    let store = database.store();
    let handle = create(&store, "s").await;
    let long = |seq| event_of("todo/write", seq, &format!("\"{}\"", "x".repeat(400_000)));
    let events: Vec<Event> = (0..7).map(long).collect();
    handle.append(events.clone(), &never()).await.unwrap();
    let larger = event_of("todo/write", 7, &format!("\"{}\"", "y".repeat(3_000_000)));
    handle.append(vec![larger, long(8)], &never()).await.unwrap();
    assert_eq!(seqs(&read(&*handle).await), (0..9).collect::<Vec<_>>());
    for offset in 0..9 {
        assert_eq!(read_range(&*handle, offset, 2).await.len(), if offset < 8 { 2 } else { 1 });
    }
    drop((handle, store));
    let rows = rows(&database.connection(), "s");
    let extents: Vec<_> = rows.iter().map(|(seq, events, _)| (*seq, *events)).collect();
    assert_eq!(extents, [(0, 2), (2, 2), (4, 2), (6, 1), (7, 1), (8, 1)]);
}

#[tokio::test]
async fn what_is_acknowledged_is_in_the_files() {
    let (database, image) = (Database::new(), Database::new());
    let store = database.store();
    let handle = create(&store, "s").await;
    for seq in 0..20 {
        append(&*handle, seq, 1).await;
        // As a crash leaves them: nothing closed, nothing written back.
        for suffix in ["", "-wal"] {
            fs::copy(beside(&database.path(), suffix), beside(&image.path(), suffix)).unwrap();
        }
        let reader = image.store();
        assert_eq!(read(&*open(&reader, "s", Access::Write).await).await, batch(0, seq + 1));
    }
}

#[tokio::test]
async fn a_batch_that_was_not_committed_has_never_been() {
    let database = Database::new();
    store_session(&database.store(), "s", 3).await;
    database.tear("s");
    let store = database.store();
    let stat = store.stat(&id("s"), &never()).await.unwrap().unwrap();
    assert_eq!(stat.event_count, Some(3));
    let writer = open(&store, "s", Access::Write).await;
    append(&*writer, 3, 1).await;
    assert_eq!(read(&*writer).await, batch(0, 4));
}

/// What gives someone else away, and what they do.
type Intrusion = (&'static str, fn(&Database));

#[tokio::test]
async fn a_foreign_write_is_found_before_anything_is_written() {
    let cases: [Intrusion; 4] = [
        ("its log has 4 events, where this handle left 3", |database| {
            let record = "{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{}}\n";
            insert(&database.connection(), "s", 3, 1, &pack(record));
        }),
        ("its log has 2 events, where this handle left 3", |database| {
            database.connection().execute("DELETE FROM frames WHERE seq = 2", []).unwrap();
        }),
        ("its log was removed", |database| {
            database
                .connection()
                .execute_batch("DELETE FROM frames; DELETE FROM sessions")
                .unwrap();
        }),
        ("its database was removed", |database| {
            for suffix in ["", "-wal", "-shm"] {
                fs::remove_file(beside(&database.path(), suffix)).unwrap();
            }
        }),
    ];
    for (evidence, intrude) in cases {
        let database = Database::new();
        let store = database.store();
        let handle = create(&store, "s").await;
        append(&*handle, 0, 2).await;
        append(&*handle, 2, 1).await;
        intrude(&database);
        // For good: nobody knows what else is to come.
        for _ in 0..2 {
            let error = handle.append(batch(3, 1), &never()).await.unwrap_err();
            assert_eq!(error.kind(), "ownership_lost", "{evidence}: {error}");
            assert!(error.to_string().contains(evidence), "{evidence}: {error}");
        }
        if evidence.contains("database") {
            assert_eq!(
                handle.read(EventRange::ALL, &never()).await.unwrap_err().kind(),
                "not_found"
            );
        }
    }
}

#[tokio::test]
async fn a_database_that_was_replaced_is_another_one() {
    let (database, other) = (Database::new(), Database::new());
    let store = database.store();
    let handle = create(&store, "s").await;
    append(&*handle, 0, 2).await;
    store_session(&other.store(), "s", 2).await;
    for suffix in ["-wal", "-shm"] {
        fs::remove_file(beside(&database.path(), suffix)).unwrap();
    }
    fs::rename(other.path(), database.path()).unwrap();
    let error = handle.append(batch(2, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "ownership_lost");
    assert!(error.to_string().contains("its log was replaced by another"), "{error}");
    drop(handle);
    let writer = open(&store, "s", Access::Write).await;
    append(&*writer, 2, 1).await;
    assert_eq!(read(&*writer).await, batch(0, 3));
}

#[tokio::test]
async fn damage_is_told_and_stays_with_its_session() {
    let record =
        |seq: u64| format!("{{\"type\":\"turn/start\",\"seq\":{seq},\"time\":1,\"data\":{{}}}}\n");
    let mut broken = pack(&record(3));
    *broken.last_mut().unwrap() ^= 1;
    let two = [pack(&record(3)), pack(&record(4))].concat();
    let cases = [
        (3, 1, broken, "the frame of event 3 failed validation"),
        (3, 2, two, "not exactly one frame"),
        (3, 1, b"text".to_vec(), "not exactly one frame"),
        (4, 1, pack(&record(4)), "expected 3, got 4"),
        (3, 1, pack(&record(2)), "expected 3, got 2"),
        (3, 9, pack(&record(3)), "it ends before event 12, and ends before event 4"),
        (3, 1, pack("{\"no\":\"event\"}\n"), "unparsable"),
        (3, 1, pack(record(3).trim_end()), "unterminated"),
    ];
    for (seq, events, frame, problem) in cases {
        let database = Database::new();
        let store = database.store();
        store_session(&store, "s", 3).await;
        store_session(&store, "t", 3).await;
        let early = open(&store, "s", Access::Read).await;
        assert_eq!(read(&*early).await.len(), 3);
        insert(&database.connection(), "s", seq, events, &frame);
        let reader = open(&store, "s", Access::Read).await;
        for handle in [&reader, &early] {
            let error = handle.read(EventRange::ALL, &never()).await.unwrap_err();
            assert_eq!(error.kind(), "corrupt", "{problem}");
            assert!(error.to_string().contains(problem), "{problem}: {error}");
        }
        let error = store.open(&id("s"), Access::Write, &never()).await.unwrap_err();
        assert_eq!(error.kind(), "corrupt");
        assert_eq!(read(&*open(&store, "t", Access::Write).await).await.len(), 3);
        // What was checked before can still be had.
        assert_eq!(read_range(&*early, 1, 2).await, [1, 2]);
    }
}

#[tokio::test]
async fn a_list_shows_what_cannot_be_read() {
    let database = Database::new();
    store_session(&database.store(), "good", 1).await;
    let connection = database.connection();
    let headers = [
        (
            "newer",
            r#"{"type":"session","version":9,"id":"newer","createdAt":1}"#,
            SessionState::Newer,
        ),
        ("nothing", "nothing", SessionState::Damaged),
        (
            "other",
            r#"{"type":"session","version":0,"id":"x","createdAt":1,"delegationDepth":0}"#,
            SessionState::Damaged,
        ),
    ];
    for (id, header, _) in headers {
        let insert = "INSERT INTO sessions (id, header, stored_at) VALUES (?1, ?2, 5)";
        connection.execute(insert, params![id, header]).unwrap();
    }
    let list = database.store().list(&ListQuery::default(), &never()).await.unwrap();
    assert_eq!(list.entries.len(), 4);
    assert_eq!(list.entries[0].id, id("good"));
    for (name, _, state) in headers {
        let entry = list.entries.iter().find(|entry| entry.id == id(name)).unwrap();
        assert_eq!((entry.state, &entry.stat), (state, &None), "{name}");
        assert!(entry.reason.is_some());
    }
}

#[tokio::test]
async fn a_busy_database_is_waited_for_and_then_an_error() {
    let database = Database::new();
    let options = SqliteOptions {
        busy_timeout: Duration::from_millis(300),
        ..SqliteOptions::new(database.path())
    };
    let store = SqliteStore::open(options).unwrap();
    let handle = create(&store, "s").await;
    append(&*handle, 0, 1).await;
    let rival = database.connection();
    rival.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Readers do not wait.
    assert_eq!(read(&*handle).await.len(), 1);
    let error = handle.append(batch(1, 1), &never()).await.unwrap_err();
    assert_eq!(error.kind(), "io");
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        rival.execute_batch("ROLLBACK").unwrap();
    };
    // The batch that failed may be tried again, and gets through once the other is done.
    let never = never();
    let (appended, ()) = tokio::join!(handle.append(batch(1, 1), &never), release);
    appended.unwrap();
    assert_eq!(read(&*handle).await, batch(0, 2));
}

#[tokio::test]
async fn the_database_is_set_up_to_lose_nothing() {
    let database = Database::new();
    store_session(&database.store(), "s", 1).await;
    let connection = database.connection();
    let text = |pragma: &str| -> String {
        connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    };
    let number = |pragma: &str| -> i32 {
        connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    };
    assert_eq!(text("journal_mode"), "wal");
    assert_eq!(number("application_id"), 0x544B_4C47);
    assert_eq!(number("user_version"), 2);
    assert_eq!(text("integrity_check"), "ok");
}
