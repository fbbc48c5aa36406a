//! Verifying and saving sessions in a database that someone has been at.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs::{self, OpenOptions},
    io::{Seek as _, SeekFrom, Write as _},
};

use rusqlite::Connection;
use support::{
    append, create,
    database::{Database, insert},
    disk::pack,
    event_of, id, never, open, read, seqs, store_session,
};
use turnkeep_store::{
    Access, EventRange, SessionStore,
    recover::{RecoverOptions, Recovery, recover},
    sqlite::{SqliteOptions, SqliteStore},
    verify::{Progress, Severity, Verification},
};

/// A database with a session `s` of four batches of three events each.
async fn filled() -> Database {
    let database = Database::new();
    let store = database.store();
    let handle = create(&store, "s").await;
    for batch in 0..4 {
        append(&*handle, batch * 3, 3).await;
    }
    handle.close().await.unwrap();
    store_session(&store, "other", 2).await;
    database
}

/// Both must come to the same verdict.
async fn judged(store: &SqliteStore) -> Verification {
    let read = match store.open(&id("s"), Access::Read, &never()).await {
        Ok(handle) => match handle.read(EventRange::ALL, &never()).await {
            Ok(events) => Ok(events.len() as u64),
            Err(error) => Err(error.kind()),
        },
        Err(error) => Err(error.kind()),
    };
    let found = store.verify(&id("s"), &Progress::none(), &never()).await.unwrap();
    match read {
        Ok(events) => assert_eq!((found.refused, found.events), (None, events), "{found:#?}"),
        Err(kind) => assert_eq!(found.refused, Some(kind), "{found:#?}"),
    }
    assert_eq!(found.refused.is_some(), found.severity().is_some());
    found
}

async fn save(store: &SqliteStore) -> Recovery {
    let options = RecoverOptions { into: id("saved"), branch: None, cwd: Some("/c".to_owned()) };
    recover(store, &id("s"), &options, &Progress::none(), &never()).await.unwrap()
}

fn change(database: &Database, sql: &str) {
    let connection: Connection = database.connection();
    assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
}

fn lines(first: u64, count: u64) -> String {
    let line = |seq| event_of("todo/write", seq, "{}").text().to_string() + "\n";
    (first..first + count).map(line).collect()
}

#[tokio::test]
async fn rows_that_someone_changed_are_told_with_what_is_lost() {
    type Told = (&'static str, u64, Option<std::ops::Range<u64>>);
    let session = "WHERE session = (SELECT key FROM sessions WHERE id = 's')";
    let cases: &[(String, &[Told], u64, u64)] = &[
        (
            format!("UPDATE frames SET frame = zeroblob(40) {session} AND seq = 3"),
            &[("bad_frame", 1, Some(3..6))],
            3,
            6,
        ),
        (format!("DELETE FROM frames {session} AND seq = 6"), &[("seq_gap", 2, Some(6..9))], 6, 3),
        (
            format!("UPDATE frames SET events = 2 {session} AND seq = 3"),
            &[("bad_frame", 1, None)],
            6,
            6,
        ),
        (
            format!("UPDATE frames SET frame = zeroblob(9) {session} AND seq IN (0, 6)"),
            &[("bad_frame", 0, Some(0..3)), ("bad_frame", 2, Some(6..9))],
            0,
            6,
        ),
        (
            "UPDATE sessions SET header = '{}' WHERE id = 's'".to_owned(),
            &[("bad_header", u64::MAX, None)],
            12,
            12,
        ),
    ];
    for (sql, expected, events, after) in cases {
        let database = filled().await;
        change(&database, sql);
        let store = database.store();
        let found = judged(&store).await;
        let told: Vec<Told> = found
            .findings
            .iter()
            .map(|finding| {
                let frame = finding.frame.unwrap_or(u64::MAX);
                (finding.kind.as_str(), frame, finding.lost.clone())
            })
            .collect();
        assert_eq!(told, *expected, "{sql} {found:#?}");
        assert_eq!((found.events, found.findings[0].after), (*events, *after), "{sql} {found:#?}");
        assert_eq!(found.severity(), Some(Severity::Damaged));
        // The neighbour is as it was.
        let other = store.verify(&id("other"), &Progress::none(), &never()).await.unwrap();
        assert!(other.is_intact());

        let options =
            RecoverOptions { into: id("saved"), branch: None, cwd: Some("/c".to_owned()) };
        let saved = recover(&store, &id("s"), &options, &Progress::none(), &never()).await;
        let first_is_gone = expected[0].2.as_ref().is_some_and(|lost| lost.start == 0);
        if first_is_gone {
            assert_eq!(saved.unwrap_err().kind(), "corrupt");
            continue;
        }
        // A row that tells a wrong number has its events all the same.
        let kept = if sql.contains("events = 2") { 12 } else { *events };
        assert_eq!(saved.unwrap().kept, kept, "{sql}");
        let handle = open(&database.store(), "saved", Access::Write).await;
        assert_eq!(seqs(&read(&*handle).await), (0..kept).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn records_that_are_none_are_told() {
    let database = filled().await;
    {
        let connection = database.connection();
        insert(&connection, "s", 12, 3, &pack(&(lines(12, 1) + "no record\n" + &lines(13, 2))));
    }
    let store = database.store();
    let found = judged(&store).await;
    assert_eq!(found.findings[0].kind.as_str(), "bad_record");
    assert_eq!((found.events, found.found), (13, 15));
    let saved = save(&store).await;
    assert_eq!((saved.kept, saved.salvaged), (15, 2));
}

#[tokio::test]
async fn a_frame_past_the_limit_is_another_settings_matter() {
    let database = filled().await;
    let options = SqliteOptions { max_frame_bytes: 20, ..SqliteOptions::new(database.path()) };
    let found = judged(&SqliteStore::open(options).unwrap()).await;
    assert_eq!(found.verdict(), "unsupported");
    assert!(found.findings.iter().all(|finding| finding.kind.as_str() == "too_large"));
}

/// Damage to the file itself shows once for all sessions, and again for those that it hits.
#[tokio::test]
async fn a_damaged_file_is_told() {
    let database = Database::new();
    let store = database.store();
    let handle = create(&store, "s").await;
    for seq in 0..40 {
        // Of random letters, so that it takes pages of its own.
        let noise: String = (0..3000u64)
            .map(|n| {
                char::from(b'a' + ((n + seq).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59) as u8 % 26)
            })
            .collect();
        let event = event_of("todo/write", seq, &format!("\"{noise}\""));
        handle.append(vec![event], &never()).await.unwrap();
    }
    handle.close().await.unwrap();
    assert!(store.verify_storage(&never()).await.unwrap().is_intact());
    drop((handle, store));
    // Back from the log into the file.
    database.connection().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let size = fs::metadata(database.path()).unwrap().len();
    let mut file = OpenOptions::new().write(true).open(database.path()).unwrap();
    for page in (size / 2 / 4096)..(size / 4096) {
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0xAA; 64]).unwrap();
    }
    drop(file);

    let store = database.store();
    let storage = store.verify_storage(&never()).await.unwrap();
    assert_eq!(storage.verdict(), "damaged");
    assert!(storage.findings.iter().all(|finding| finding.kind.as_str() == "bad_database"));
    let found = judged(&store).await;
    assert_eq!(found.severity(), Some(Severity::Damaged), "{found:#?}");
}

#[tokio::test]
async fn rows_of_no_session_are_told() {
    let database = filled().await;
    {
        let connection = database.connection();
        connection.execute_batch("PRAGMA foreign_keys = off").unwrap();
        connection.execute("DELETE FROM sessions WHERE id = 's'", []).unwrap();
    }
    let storage = database.store().verify_storage(&never()).await.unwrap();
    assert!(storage.findings[0].message.contains("belongs to no session"), "{storage:#?}");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_intact() {
    let database = Database::new();
    let store = database.store();
    assert!(store.verify_storage(&never()).await.unwrap().is_intact());
    let missing = store.verify(&id("s"), &Progress::none(), &never()).await;
    assert_eq!(missing.unwrap_err().kind(), "not_found");
    assert!(!database.path().exists(), "nothing was made");
}
