use std::thread;

use tempfile::TempDir;
use turnkeep_log::json::{Json, JsonStr};

use super::{
    super::request::{Budget, Generation, Scope},
    Completeness, Database, Entry, Evicted, Outcome, Record,
};

struct Cache {
    database: Database,
    directory: TempDir,
}

impl Cache {
    fn new() -> Self {
        Self::of_at_most(1 << 30)
    }

    fn of_at_most(bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(&directory.path().join("c.sqlite"), bytes).unwrap();
        Self { database, directory }
    }

    fn put(&mut self, scope: &Scope, entry: Entry) -> Outcome {
        self.database.put(scope, entry).unwrap()
    }

    fn written(&mut self, scope: &Scope, entry: Entry) -> Record {
        match self.put(scope, entry) {
            Outcome::Written(record) => record,
            other => panic!("{other:?}"),
        }
    }

    fn ids(&mut self, scope: &Scope) -> Vec<String> {
        let records = self.database.session(scope).unwrap();
        records.into_iter().map(|record| record.message).collect()
    }

    fn has(&mut self, scope: &Scope, id: &str) -> bool {
        self.database.message(scope, id).unwrap().is_some()
    }

    fn evict(&mut self, max_bytes: f64, protect: &[&Scope]) -> Evicted {
        let protect = protect.iter().map(|&scope| scope.clone()).collect();
        self.database.evict(&Budget { max_bytes, protect }).unwrap()
    }

    fn meddle(&self, sql: &str) {
        let sql = format!("PRAGMA foreign_keys = 0; {sql}; PRAGMA foreign_keys = 1");
        self.database.connection.execute_batch(&sql).unwrap();
    }

    fn contents(&self) -> i64 {
        let count = "SELECT count(*) FROM transcript_cache_content";
        self.database.connection.query_row(count, [], |row| row.get(0)).unwrap()
    }
}

fn scope() -> Scope {
    Scope {
        transport: "local".to_owned(),
        generation: 1,
        directory: "/w".to_owned(),
        session: "s".to_owned(),
    }
}

fn neighbours() -> [Scope; 5] {
    [
        Scope { transport: "remote".to_owned(), ..scope() },
        Scope { generation: 2, ..scope() },
        Scope { directory: "/W".to_owned(), ..scope() },
        Scope { session: "S".to_owned(), ..scope() },
        Scope { session: "s ".to_owned(), ..scope() },
    ]
}

fn entry(info: &str, parts: &str) -> Entry {
    let (info, parts) = (Json::parse(info).unwrap(), Json::parse(parts).unwrap());
    let id = info.get("id").and_then(Json::as_str).and_then(JsonStr::plain).unwrap();
    Entry::new(id.to_owned(), info, parts).unwrap()
}

fn user(id: &str, created: u64) -> Entry {
    entry(&format!(r#"{{"id":"{id}","role":"user","time":{{"created":{created}}}}}"#), "[]")
}

const FULL: &str = r#"[{"type":"text","text":"all of it"}]"#;
const SLIM: &str = r#"[{"type":"text","slim":true}]"#;

fn with(parts: &str) -> Entry {
    entry(r#"{"id":"m","role":"user"}"#, parts)
}

#[test]
fn a_written_message_is_told_with_hash_sort_key_and_completeness_full() {
    let mut cache = Cache::new();
    let written = cache.written(&scope(), entry(r#"{"id":"m","time":{"created":3}}"#, FULL));
    assert_eq!(written.hash.len(), 64);
    assert!((written.created - 3.0).abs() < f64::EPSILON);
    assert_eq!(written.completeness(), Completeness::Full);
    let read = cache.database.message(&scope(), "m").unwrap().unwrap();
    assert!(read.accessed > written.accessed);
    assert_eq!(Record { accessed: written.accessed, ..read }, written);
}

#[test]
fn a_second_write_is_skipped_and_the_access_time_grows() {
    let mut cache = Cache::new();
    let first = cache.written(&scope(), with(FULL));
    // Another spelling of the same.
    let Outcome::Unchanged(second) = cache.put(&scope(), with(&FULL.replace(':', " : "))) else {
        panic!("it is unchanged");
    };
    assert!(second.accessed > first.accessed);
    assert_eq!((second.hash, second.parts), (first.hash, first.parts));
}

#[test]
fn full_is_kept_when_slim_comes() {
    let mut cache = Cache::new();
    let full = cache.written(&scope(), with(FULL));
    assert_eq!(cache.put(&scope(), with(SLIM)), Outcome::SlimDowngrade(full));
}

#[test]
fn slim_then_full_is_full_and_full_may_change() {
    let mut cache = Cache::new();
    assert_eq!(cache.written(&scope(), with(SLIM)).completeness(), Completeness::Slim);
    assert_eq!(cache.written(&scope(), with(FULL)).completeness(), Completeness::Full);
    let other = cache.written(&scope(), with(r#"[{"type":"text","text":"more"}]"#));
    assert!(other.parts.contains("more"));
    assert_eq!(cache.ids(&scope()), ["m"]);
    assert_eq!(cache.contents(), 1);
}

#[test]
fn an_open_assistant_is_skipped() {
    let mut cache = Cache::new();
    let open = entry(r#"{"id":"m","role":"assistant","time":{"created":1}}"#, FULL);
    assert_eq!(cache.put(&scope(), open), Outcome::NotSettled);
    assert!(cache.ids(&scope()).is_empty());
    cache.written(&scope(), entry(r#"{"id":"m","role":"assistant","finish":"stop"}"#, FULL));
    cache.written(&scope(), entry(r#"{"id":"n","role":"assistant","time":{"completed":2}}"#, FULL));
}

#[test]
fn created_ascending_then_id() {
    let mut cache = Cache::new();
    for (id, created) in [("c", 5), ("b", 5), ("a", 9), ("d", 0)] {
        cache.written(&scope(), user(id, created));
    }
    cache.written(&scope(), entry(r#"{"id":"e"}"#, "[]"));
    cache.written(&scope(), entry(r#"{"id":"f","time":{"created":5.5}}"#, "[]"));
    assert_eq!(cache.ids(&scope()), ["d", "e", "b", "c", "f", "a"]);
}

#[test]
fn reading_a_session_touches_every_row() {
    let mut cache = Cache::new();
    let first = cache.written(&scope(), user("a", 1));
    let second = cache.written(&scope(), user("b", 2));
    let read = cache.database.session(&scope()).unwrap();
    assert!(read.iter().all(|record| record.accessed > first.accessed.max(second.accessed)));
}

#[test]
fn five_neighbours_are_invisible() {
    let mut cache = Cache::new();
    for neighbour in neighbours() {
        cache.written(&neighbour, user("m", 1));
    }
    assert!(cache.ids(&scope()).is_empty() && !cache.has(&scope(), "m"));
    cache.written(&scope(), user("m", 1));
    cache.database.clear_session(&scope()).unwrap();
    for neighbour in neighbours() {
        assert_eq!(cache.ids(&neighbour), ["m"], "only the scope is cleared");
    }
}

#[test]
fn index_and_content_go_together_and_a_missing_id_is_nothing() {
    let mut cache = Cache::new();
    cache.written(&scope(), user("a", 1));
    cache.written(&scope(), user("b", 1));
    cache.database.remove_message(&scope(), "a").unwrap();
    cache.database.remove_message(&scope(), "a").unwrap();
    assert_eq!(cache.ids(&scope()), ["b"]);
    assert_eq!(cache.contents(), 1);
}

#[test]
fn only_transport_and_generation_are_cleared() {
    let mut cache = Cache::new();
    let all = neighbours().into_iter().chain([scope()]).collect::<Vec<_>>();
    for each in &all {
        cache.written(each, user("m", 1));
    }
    let gone = Generation { transport: "local".to_owned(), generation: 1 };
    cache.database.clear_generation(&gone).unwrap();
    for each in &all {
        let stays = each.transport != "local" || each.generation != 1;
        assert_eq!(cache.has(each, "m"), stays, "{each:?}");
    }
}

#[test]
fn the_victim_is_what_was_not_asked_for_longest_to_the_byte() {
    let mut cache = Cache::new();
    let bytes: Vec<_> = ["a", "b", "c"].map(|id| cache.written(&scope(), user(id, 1)).bytes).into();
    let total: i64 = bytes.iter().sum();
    assert!(cache.has(&scope(), "a"));
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let budget = |bytes: i64| bytes as f64;
    assert_eq!(
        cache.evict(budget(total), &[]),
        Evicted { remaining_bytes: total, ..Evicted::default() }
    );
    let evicted = cache.evict(budget(total) - 0.5, &[]);
    let left = total - bytes[1];
    assert_eq!(evicted, Evicted { rows: 1, freed_bytes: bytes[1], remaining_bytes: left });
    assert_eq!(cache.ids(&scope()), ["a", "c"]);
}

#[test]
fn a_protected_scope_survives_budget_0() {
    let mut cache = Cache::new();
    let kept = cache.written(&scope(), user("m", 1)).bytes;
    for neighbour in neighbours() {
        cache.written(&neighbour, user("m", 1));
    }
    let evicted = cache.evict(-1.0, &[&scope()]);
    assert_eq!((evicted.rows, evicted.remaining_bytes), (5, kept));
    assert!(cache.has(&scope(), "m"));
}

#[test]
fn all_scopes_are_emptied_and_can_be_written_to_still() {
    let mut cache = Cache::new();
    let long = format!(r#"[{{"text":"{}"}}]"#, "canary".repeat(100_000));
    cache.written(&scope(), with(&long));
    for neighbour in neighbours() {
        cache.written(&neighbour, user("m", 1));
    }
    cache.database.clear_all().unwrap();
    assert_eq!(cache.contents(), 0);
    for file in std::fs::read_dir(cache.directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(bytes.len() < 200_000, "the room is given back");
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "nothing is left on disk");
    }
    cache.written(&scope(), user("m", 1));
    assert_eq!(cache.ids(&scope()), ["m"]);
}

#[test]
fn a_full_file_makes_room_by_itself() {
    let mut cache = Cache::of_at_most(1 << 20);
    for index in 0..100 {
        let parts = format!(r#"[{{"text":"{index} {}"}}]"#, "x".repeat(50_000));
        let info = format!(r#"{{"id":"{index:03}"}}"#);
        cache.written(&scope(), entry(&info, &parts));
    }
    let ids = cache.ids(&scope());
    assert!((5..=20).contains(&ids.len()), "{}", ids.len());
    assert_eq!(ids.last().unwrap(), "099");
    let pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let bytes: i64 = cache.database.connection.query_row(pages, [], |row| row.get(0)).unwrap();
    assert!(bytes <= 1 << 20);
    // One that can never fit is an error, and the file is good still.
    let parts = format!(r#"[{{"text":"{}"}}]"#, "x".repeat(2 << 20));
    assert!(cache.database.put(&scope(), with(&parts)).is_err());
    cache.written(&scope(), user("z", 1));
}

#[test]
fn rows_of_other_makers_are_misses_and_never_a_panic() {
    for meddling in [
        "UPDATE transcript_cache_content SET info_json = '{'",
        "UPDATE transcript_cache_content SET info_json = '[]'",
        "UPDATE transcript_cache_content SET parts_json = '{}'",
        "UPDATE transcript_cache_content SET parts_json = x'ff'",
        "UPDATE transcript_cache_content SET parts_json = CAST(x'5b22ff225d' AS TEXT)",
        "UPDATE transcript_cache_index SET created_at = 'x'",
        "UPDATE transcript_cache_index SET content_hash = ''",
        "UPDATE transcript_cache_index SET byte_size = 'x'",
        "DELETE FROM transcript_cache_content",
    ] {
        let mut cache = Cache::new();
        cache.written(&scope(), with(FULL));
        cache.meddle(meddling);
        assert!(cache.ids(&scope()).is_empty() && !cache.has(&scope(), "m"), "{meddling}");
        cache.written(&scope(), with(FULL));
        assert_eq!(cache.ids(&scope()), ["m"], "{meddling}");
    }
    let mut cache = Cache::new();
    cache.written(&scope(), with(FULL));
    let absurd = i64::MAX;
    cache.meddle(&format!(
        "UPDATE transcript_cache_index SET byte_size = {absurd}, session_id = ''"
    ));
    assert_eq!(cache.evict(0.0, &[&scope()]).rows, 1);
}

#[test]
fn two_programs_may_use_a_file_at_once() {
    let cache = Cache::new();
    let path = cache.directory.path().join("c.sqlite");
    thread::scope(|threads| {
        for program in 0..3 {
            let path = &path;
            threads.spawn(move || {
                let mut database = Database::open(path, 1 << 30).unwrap();
                for index in 0..30 {
                    let one = user(&format!("{program}-{index}"), 1);
                    assert!(matches!(database.put(&scope(), one), Ok(Outcome::Written(_))));
                    database.session(&scope()).unwrap();
                }
            });
        }
    });
    let Cache { mut database, .. } = cache;
    assert_eq!(database.session(&scope()).unwrap().len(), 90);
}
