//! Ten kinds of bad input, each between two good neighbours: what is said about it, that reading
//! changes nothing, and that the neighbours stay listed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod bad;
mod support;

use std::{
    env, fs, io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use bad::{
    NEIGHBOURS, assert_unchanged, between_neighbours,
    full::{FULL, Room, on_small_disk, ordeal, with_small_files},
    lay, lines, listed, logs_of, place, snapshot, turn_end,
};
use support::{
    batch,
    disk::{BOTH, Disk},
    faulty::{Effect, FaultyFs, LOG, Op},
    id, never, open, read,
};
use turnkeep_log::Seq;
use turnkeep_store::{
    Access, SessionState, SessionStore,
    jsonl::{Compression, Encoding, JsonlOptions, JsonlStore, fs::OpenMode},
    sqlite::{SqliteOptions, SqliteStore},
};

/// What should come of reading a bad session.
enum Outcome<'a> {
    /// Nobody can read it, and why; `LOG` stands for where it is.
    Refused(&'a str, &'a str),
    /// So many events are there.
    Reads(usize),
}

/// Lists, opens and reads the bad session, to read and to write, and looks whether that changed
/// anything.
async fn examine(
    disk: &Disk,
    name: &str,
    expected: &Outcome<'_>,
    state: Option<(SessionState, Option<&str>)>,
) {
    let store = disk.store();
    let before = snapshot(&disk.root());
    let listed = listed(&store, "s").await;
    let listed = listed.as_ref().map(|(state, reason)| (*state, reason.as_deref()));
    assert_eq!(listed, state, "{name}");
    // Whatever it says: it must not hang, panic or write.
    let _ = store.stat(&id("s"), &never()).await;
    assert_eq!(&reading(&store, Access::Read).await, &told(disk, expected), "{name}");
    assert_unchanged(&before, &snapshot(&disk.root()), &format!("{name}, read"));
    // Wanting to write leaves a lock behind, and nothing else.
    let before = logs_of(&disk.root());
    assert_eq!(&reading(&store, Access::Write).await, &told(disk, expected), "{name}");
    assert_unchanged(&before, &logs_of(&disk.root()), &format!("{name}, opened to write"));
    for neighbour in NEIGHBOURS {
        assert_eq!(read(&*open(&store, neighbour, Access::Write).await).await, batch(0, 3));
    }
}

fn told(disk: &Disk, expected: &Outcome<'_>) -> Result<usize, (String, String)> {
    match expected {
        Outcome::Reads(count) => Ok(*count),
        Outcome::Refused(kind, text) => {
            let log = disk.log("s").display().to_string();
            let text = text.replace("DIR", &place(disk).display().to_string());
            Err(((*kind).to_owned(), text.replace("LOG", &log)))
        }
    }
}

/// How many events there are, or the kind and the text of what keeps them from being read.
async fn reading(store: &dyn SessionStore, access: Access) -> Result<usize, (String, String)> {
    match store.open(&id("s"), access, &never()).await {
        Err(error) => Err((error.kind().to_owned(), error.to_string())),
        Ok(handle) => match handle.read(turnkeep_store::EventRange::ALL, &never()).await {
            Err(error) => Err((error.kind().to_owned(), error.to_string())),
            Ok(events) => Ok(events.len()),
        },
    }
}

/// Tries one kind of bad input in both encodings.
async fn each(mut attempt: impl AsyncFnMut(Disk)) {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        between_neighbours(&disk).await;
        attempt(disk).await;
    }
}

const OK: Option<(SessionState, Option<&str>)> = Some((SessionState::Ok, None));

#[tokio::test]
async fn a_truncated_header() {
    each(async |disk| {
        let header = disk.encode(&lines("s").0);
        for length in [0, 1, header.len() / 2, header.len() - 1] {
            disk.lay("s", &header[..length]);
            let reason = Some("its log ends before its first line does");
            let text = match disk.encoding {
                Encoding::Zstd => "empty or header-less Zstandard session log",
                Encoding::None => "empty or header-less session log",
            };
            let text = format!("session \"s\": stored log is corrupt: {text} (raw log: LOG)");
            let refused = Outcome::Refused("corrupt", &text);
            let state = Some((SessionState::Damaged, reason));
            examine(&disk, "truncated header", &refused, state).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_future_version() {
    each(async |disk| {
        let (header, records) = lines("s");
        // Nothing else in such a header is looked at.
        let later = header.replace("\"version\":0", "\"version\":42,\"sandboxMode\":1");
        lay(&disk, &[&later, &records]);
        let text = "session \"s\" uses log format v42, but this build reads only v0: the log was \
                    written by a newer harness — upgrade the harness to open it";
        let with_log = format!("{text} (raw log: LOG)");
        let refused = Outcome::Refused("format_unsupported", &with_log);
        examine(&disk, "future version", &refused, Some((SessionState::Newer, Some(text)))).await;
    })
    .await;
}

#[tokio::test]
async fn an_unknown_type() {
    each(async |disk| {
        let (header, records) = lines("s");
        let unknown = "{\"type\":\"acme/telemetry\",\"seq\":3,\"time\":1,\"data\":{}}\n";
        lay(&disk, &[&header, &records, unknown]);
        let text = "session \"s\" contains event type \"acme/telemetry\" (seq 3) unknown to this \
                    harness and not marked ignorable; refusing to interpret the log — it was likely \
                    written by a newer harness; upgrade to open it (raw log: LOG)";
        examine(&disk, "unknown", &Outcome::Refused("format_unsupported", text), OK).await;

        let ignorable = unknown.replace("\"data\"", "\"ignorable\":true,\"data\"");
        lay(&disk, &[&header, &records, &ignorable]);
        examine(&disk, "ignorable", &Outcome::Reads(4), OK).await;
    })
    .await;
}

#[tokio::test]
async fn a_duplicate_seq() {
    each(async |disk| {
        let (header, records) = lines("s");
        // What two writers leave that did not know of each other.
        lay(&disk, &[&header, &records, &turn_end(2), &turn_end(3)]);
        let text = "session \"s\": stored log is corrupt: seq gap in committed region at line 4 \
                    (expected 3, got 2) (raw log: LOG)";
        examine(&disk, "duplicate seq", &Outcome::Refused("corrupt", text), OK).await;
    })
    .await;
}

#[tokio::test]
async fn a_garbage_tail() {
    each(async |disk| {
        let (header, records) = lines("s");
        lay(&disk, &[&header, &records]);
        let length = disk.bytes("s").len();
        disk.add("s", b"garbage \xff\xfe\x80 without an end");
        let text = format!(
            "session \"s\": stored log is corrupt: invalid frame magic at byte {length} (raw log: LOG)"
        );
        let expected = match disk.encoding {
            Encoding::Zstd => Outcome::Refused("corrupt", &text),
            // A line without an end was never acknowledged.
            Encoding::None => Outcome::Reads(3),
        };
        examine(&disk, "garbage tail", &expected, OK).await;
    })
    .await;
}

#[tokio::test]
async fn a_zero_tail() {
    each(async |disk| {
        let (header, records) = lines("s");
        for zeros in [1, 511, 512, 5000] {
            lay(&disk, &[&header, &records]);
            let length = disk.bytes("s").len();
            disk.add("s", &vec![0; zeros]);
            examine(&disk, "zero tail", &Outcome::Reads(3), OK).await;
            // The next writer cuts it off.
            let writer = open(&disk.store(), "s", Access::Write).await;
            writer.append(batch(3, 1), &never()).await.unwrap();
            assert!(!disk.bytes("s").contains(&0) || disk.encoding == Encoding::Zstd);
            assert!(disk.bytes("s").len() > length);
            assert_eq!(read(&*writer).await.len(), 4);
        }
    })
    .await;
}

#[tokio::test]
async fn a_wrong_id() {
    each(async |disk| {
        let (header, records) = lines("other");
        lay(&disk, &[&header, &records]);
        let problem = "requested id \"s\" does not match header id \"other\"";
        let reason = format!("session \"s\": stored log is corrupt: {problem}");
        let text = format!("{reason} (raw log: LOG)");
        let state = Some((SessionState::Damaged, Some(reason.as_str())));
        examine(&disk, "wrong id", &Outcome::Refused("corrupt", &text), state).await;
    })
    .await;
}

#[tokio::test]
async fn a_symlinked_session_directory() {
    each(async |disk| {
        // To where it was moved: followed.
        let (header, records) = lines("s");
        lay(&disk, &[&header, &records]);
        let moved = disk.dir.path().join("moved");
        fs::rename(place(&disk), &moved).unwrap();
        symlink(&moved, place(&disk)).unwrap();
        examine(&disk, "moved", &Outcome::Reads(3), OK).await;

        // To another session: it does not answer to this name, and is listed once under its own.
        fs::remove_file(place(&disk)).unwrap();
        symlink(NEIGHBOURS[0], place(&disk)).unwrap();
        let reason = "session \"s\": stored log is corrupt: requested id \"s\" does not match header \
                      id \"a\"";
        let text = format!("{reason} (raw log: LOG)");
        let state = Some((SessionState::Damaged, Some(reason)));
        examine(&disk, "to a neighbour", &Outcome::Refused("corrupt", &text), state).await;

        // To nothing: nothing.
        fs::remove_file(place(&disk)).unwrap();
        symlink("nowhere", place(&disk)).unwrap();
        let text = "session \"s\" not found; `turnkeep ls` lists what the store holds";
        examine(&disk, "to nothing", &Outcome::Refused("not_found", text), None).await;

        // To itself.
        fs::remove_file(place(&disk)).unwrap();
        symlink("s", place(&disk)).unwrap();
        let loops = io::Error::from(rustix::io::Errno::LOOP);
        let text = format!("session \"s\": cannot look for it in DIR: {loops}");
        let reason = format!("it cannot be read: {loops}");
        let state = Some((SessionState::Damaged, Some(reason.as_str())));
        examine(&disk, "to itself", &Outcome::Refused("io", &text), state).await;
    })
    .await;
}

#[tokio::test]
async fn an_unreadable_file_by_a_faulty_file_system() {
    each(async |disk| {
        let (header, records) = lines("s");
        lay(&disk, &[&header, &records]);
        let before = snapshot(&disk.root());
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        let kind = io::ErrorKind::PermissionDenied;
        let log = format!("/s/{LOG}");
        faults.inject(Op::Open(OpenMode::Read), &log, 0, 2, Effect::Fail(kind));
        let text =
            format!("session \"s\": cannot open {}: permission denied", disk.log("s").display());
        assert_eq!(reading(&store, Access::Read).await, Err(("io".to_owned(), text)));
        let reason = Some("it cannot be read: permission denied".to_owned());
        assert_eq!(listed(&store, "s").await, Some((SessionState::Damaged, reason)));
        faults.assert_spent();
        // What was wrong was the system's: nothing is remembered of it.
        assert_eq!(reading(&store, Access::Read).await, Ok(3));
        assert_unchanged(&before, &snapshot(&disk.root()), "refused");
    })
    .await;
}

/// Says to the process that runs [`an_unreadable_file`] again that it may not read what it may not,
/// and where the root is.
const LAID: &str = "TURNKEEP_TEST_UNREADABLE";

/// A file of mode 000. Root may read it all the same, so the test runs again without that privilege.
#[tokio::test]
async fn an_unreadable_file() {
    if let Ok(root) = env::var(LAID) {
        return examine_unreadable(Path::new(&root)).await;
    }
    each(async |disk| {
        let (header, records) = lines("s");
        lay(&disk, &[&header, &records]);
        let log = disk.log("s");
        let before = logs_of(&disk.root());
        let mode = fs::metadata(&log).unwrap().permissions();
        fs::set_permissions(&log, fs::Permissions::from_mode(0o000)).unwrap();
        if fs::File::open(&log).is_ok() {
            let ran = without_privilege("an_unreadable_file", &disk.root());
            assert!(ran.status.success(), "{ran:?}");
            assert!(String::from_utf8_lossy(&ran.stdout).contains("was refused"), "{ran:?}");
        } else {
            examine_unreadable(&disk.root()).await;
        }
        fs::set_permissions(&log, mode).unwrap();
        assert_unchanged(&before, &logs_of(&disk.root()), "mode 000");
        assert_eq!(reading(&disk.store(), Access::Read).await, Ok(3));
    })
    .await;
}

async fn examine_unreadable(root: &Path) {
    let store = JsonlStore::open(JsonlOptions::new(root)).unwrap();
    let log = match store.encoding() {
        Encoding::Zstd => "session.jsonl.zstd",
        Encoding::None => "session.jsonl",
    };
    let log = root.join(support::disk::PROJECT).join("s").join(log);
    let denied = io::Error::from(rustix::io::Errno::ACCESS);
    let text = format!("session \"s\": cannot open {}: {denied}", log.display());
    for access in [Access::Read, Access::Write] {
        assert_eq!(reading(&store, access).await, Err(("io".to_owned(), text.clone())));
    }
    let reason = Some(format!("it cannot be read: {denied}"));
    assert_eq!(listed(&store, "s").await, Some((SessionState::Damaged, reason)));
    println!("was refused: {text}");
}

/// Runs a test of this program again as a root that has to obey the modes of files.
fn without_privilege(test: &str, root: &Path) -> Output {
    Command::new("setpriv")
        .arg("--bounding-set=-dac_override,-dac_read_search")
        .arg("--inh-caps=-dac_override,-dac_read_search")
        .arg(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(LAID, root)
        .output()
        .unwrap_or_else(|error| {
            panic!("run as root, this test needs setpriv (of util-linux): {error}")
        })
}

#[tokio::test]
async fn a_full_disk_by_a_faulty_file_system() {
    each(async |disk| {
        let faults = FaultyFs::default();
        let store = disk.store_on(Arc::new(faults.clone()));
        support::store_session(&store, "s", 3).await;
        let writer = open(&store, "s", Access::Write).await;
        let before = disk.bytes("s");
        // Part of a batch fits, as often as it is tried.
        faults.inject(Op::Append, LOG, 0, 3, Effect::Short(9));
        faults.inject(Op::Append, LOG, 0, 1, Effect::Fail(io::ErrorKind::StorageFull));
        let error = writer.append(batch(3, 2), &never()).await.unwrap_err();
        let text = format!(
            "session \"s\": cannot append to {}: no storage space",
            disk.log("s").display()
        );
        assert_eq!((error.kind(), error.to_string()), ("io", text));
        faults.assert_spent();
        assert_eq!(disk.bytes("s"), before, "taken back");
        assert_eq!(read(&*writer).await, batch(0, 3));
        assert!(listed(&store, "s").await.is_some());
        // Once there is room.
        assert_eq!(writer.append(batch(3, 2), &never()).await.unwrap(), Seq(5));
        assert_eq!(read(&*open(&disk.store(), "s", Access::Read).await).await, batch(0, 5));
    })
    .await;
}

const ON_DISK: &str = "a_full_disk";
const BACKENDS: [&str; 3] = ["zstd", "none", "sqlite"];

/// A file system of 256 KiB that another file fills up. Where none can be mounted, which a system may
/// forbid, files that may not grow have to do, which is the next test; the reason is printed.
#[tokio::test]
async fn a_full_disk() {
    if let Ok(told) = env::var(FULL) {
        return on_full(&told).await;
    }
    for backend in BACKENDS {
        let dir = tempfile::tempdir().unwrap();
        match on_small_disk(ON_DISK, backend, dir.path()) {
            Ok(ran) => survived(backend, &ran),
            Err(why) => {
                eprintln!(
                    "NOT SHOWN on a real file system: none can be mounted here ({why}). \
                     Trying with files of limited size instead."
                );
                survived(backend, &with_small_files(ON_DISK, backend, dir.path()));
            }
        }
    }
}

/// Files that may not grow beyond 256 KiB: the write that would is cut short, and the next refused.
#[tokio::test]
async fn a_file_that_may_not_grow() {
    if let Ok(told) = env::var(FULL) {
        return on_full(&told).await;
    }
    for backend in BACKENDS {
        let dir = tempfile::tempdir().unwrap();
        survived(backend, &with_small_files("a_file_that_may_not_grow", backend, dir.path()));
    }
}

fn survived(backend: &str, ran: &Output) {
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("survived: "), "{backend}: {ran:?}");
    for line in said.lines().filter(|line| line.contains("ed: ")) {
        println!("{backend} {line}");
    }
}

async fn on_full(told: &str) {
    let [how, backend, place] = told.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{told}")
    };
    let place = Path::new(place);
    let room = match how {
        "disk" => Room::Disk(place),
        _ => Room::Files,
    };
    let jsonl = |compression| {
        let sessions = place.join("sessions");
        JsonlStore::open(JsonlOptions { compression, ..JsonlOptions::new(sessions) }).unwrap()
    };
    let log = |name: &str| -> PathBuf {
        place.join("sessions").join(support::disk::PROJECT).join("s").join(name)
    };
    match backend {
        "zstd" => {
            let open = || jsonl(Compression::Zstd);
            ordeal(&open(), &open(), room, Some(&log("session.jsonl.zstd"))).await;
        }
        "none" => {
            let open = || jsonl(Compression::None);
            ordeal(&open(), &open(), room, Some(&log("session.jsonl"))).await;
        }
        _ => {
            let database = place.join("sessions.db");
            let open = || SqliteStore::open(SqliteOptions::new(&database)).unwrap();
            ordeal(&open(), &open(), room, None).await;
        }
    }
}
