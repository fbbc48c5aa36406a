use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, thread};

use rusqlite::Connection;
use tempfile::TempDir;

use super::{Database, OpenError};

struct Place {
    _directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache.sqlite");
        Self { _directory: directory, path }
    }

    fn open(&self) -> Result<Database, OpenError> {
        Database::open(&self.path, 1 << 30)
    }

    /// Does something to the file that is not done through a cache.
    fn meddle(&self, sql: &str) {
        Connection::open(&self.path).unwrap().execute_batch(sql).unwrap();
    }
}

fn count(database: &Database) -> i64 {
    let count = "SELECT count(*) FROM transcript_cache_index";
    database.connection.query_row(count, [], |row| row.get(0)).unwrap()
}

const ROW: &str = "
INSERT INTO transcript_cache_index VALUES ('t', 1, '/w', 's', 'm', 1, 'h', 'full', 2, 77);
INSERT INTO transcript_cache_content VALUES ('t', 1, '/w', 's', 'm', '{}', '[]', '[]');";

#[test]
fn three_tables_exist_in_a_file_of_its_owner_alone() {
    let place = Place::new();
    let database = place.open().unwrap();
    let mut names = database
        .connection
        .prepare("SELECT name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(
        names,
        [
            "transcript_cache_content",
            "transcript_cache_index",
            "transcript_cache_index_generation",
            "transcript_cache_index_lru",
            "transcript_cache_index_session_order",
            "transcript_cache_meta",
        ]
    );
    let pragma = |name| -> String {
        database
            .connection
            .query_row(
                &format!("SELECT CAST(x AS TEXT) FROM (SELECT {name} AS x FROM pragma_{name})"),
                [],
                |row| row.get(0),
            )
            .unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal");
    assert_eq!(pragma("foreign_keys"), "1");
    for file in ["cache.sqlite", "cache.sqlite-wal", "cache.sqlite-shm"] {
        let mode = fs::metadata(place.path.with_file_name(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn what_was_kept_is_there_after_the_next_open() {
    let place = Place::new();
    drop(place.open().unwrap());
    place.meddle(ROW);
    assert_eq!(count(&place.open().unwrap()), 1);
}

/// The same tables in another hand.
const ELSEWHERE: &str = "
create table transcript_cache_meta(key text primary key, value text not null);
create table transcript_cache_index(transport text not null, generation integer not null,
  directory text not null, session_id text not null, message_id text not null,
  created_at integer not null, content_hash text not null,
  completeness text not null check(completeness in ('slim','full')), byte_size integer not null,
  last_accessed_at integer not null,
  primary key(transport,generation,directory,session_id,message_id));
create table transcript_cache_content(transport text not null, generation integer not null,
  directory text not null, session_id text not null, message_id text not null,
  info_json text not null, parts_json text not null, part_completeness_json text not null,
  primary key(transport,generation,directory,session_id,message_id),
  foreign key(transport,generation,directory,session_id,message_id) references
  transcript_cache_index(transport,generation,directory,session_id,message_id)
  on delete cascade);
insert into transcript_cache_meta values('schema_version','1');";

#[test]
fn a_file_made_by_the_other_host_is_gone_on_with() {
    let place = Place::new();
    place.meddle(ELSEWHERE);
    place.meddle(ROW);
    assert_eq!(count(&place.open().unwrap()), 1);
}

#[test]
fn another_version_is_rebuilt_empty() {
    for meddling in [
        "UPDATE transcript_cache_meta SET value = '0'",
        "UPDATE transcript_cache_meta SET value = x'ff'",
        "DELETE FROM transcript_cache_meta",
        "DROP TABLE transcript_cache_meta",
        "DROP TABLE transcript_cache_content",
        "ALTER TABLE transcript_cache_index DROP COLUMN content_hash",
        "ALTER TABLE transcript_cache_content RENAME COLUMN parts_json TO parts",
        "DROP TABLE transcript_cache_content; CREATE TABLE transcript_cache_content
           (transport, generation, directory, session_id, message_id, info_json, parts_json,
            part_completeness_json)",
    ] {
        let place = Place::new();
        drop(place.open().unwrap());
        place.meddle(ROW);
        place.meddle(meddling);
        let database = place.open().unwrap();
        assert_eq!(count(&database), 0, "{meddling}");
        database.connection.execute_batch(ROW).unwrap();
        drop(database);
        assert_eq!(count(&place.open().unwrap()), 1, "{meddling}");
    }
}

#[test]
fn what_is_no_cache_stays_as_it_is() {
    let place = Place::new();
    place.meddle("CREATE TABLE sessions (id); INSERT INTO sessions VALUES (1)");
    let before = fs::read(&place.path).unwrap();
    assert!(matches!(place.open(), Err(OpenError::Refused(_))));
    assert_eq!(fs::read(&place.path).unwrap(), before);
    fs::write(&place.path, "a text of more than a hundred bytes: ".repeat(9)).unwrap();
    assert!(matches!(place.open(), Err(OpenError::Sqlite(_))));
    fs::remove_file(&place.path).unwrap();
    fs::create_dir(&place.path).unwrap();
    assert!(matches!(place.open(), Err(OpenError::Refused(_))));
    let nowhere = place.path.with_file_name("none").join("cache.sqlite");
    assert!(matches!(Database::open(&nowhere, 1 << 30), Err(OpenError::Io(_))));
}

#[test]
fn a_file_that_everyone_can_write_to_is_not_trusted() {
    let place = Place::new();
    drop(place.open().unwrap());
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(place.open(), Err(OpenError::Refused(_))));
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o664)).unwrap();
    place.open().unwrap();
}

#[test]
fn many_may_come_to_a_new_file_at_once() {
    let place = Place::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| place.open().unwrap());
        }
    });
}

#[test]
fn the_clock_of_accesses_only_goes_on() {
    let place = Place::new();
    drop(place.open().unwrap());
    let far = 1_i64 << 51;
    place.meddle(&ROW.replace("77", &far.to_string()));
    let mut database = place.open().unwrap();
    let times: Vec<_> = (0..100).map(|_| database.access()).collect();
    assert!(times[0] > far && times.is_sorted_by(|earlier, later| earlier < later));
    drop(database);
    // What would leave no room for more is not believed.
    for absurd in [i64::MAX.to_string(), "'x'".to_owned(), "1e300".to_owned()] {
        place.meddle(&format!("UPDATE transcript_cache_index SET last_accessed_at = {absurd}"));
        assert!(place.open().unwrap().access() < far, "{absurd}");
    }
}
