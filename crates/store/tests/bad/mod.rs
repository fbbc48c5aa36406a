//! What the tests of bad inputs look at: a whole root, before and after.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its own part of this")]

pub mod full;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use turnkeep_store::{ListQuery, SessionState, SessionStore};

use crate::support::{
    batch,
    disk::{Disk, PROJECT},
    header, never, store_session,
};

/// The sessions to either side of the bad one.
pub const NEIGHBOURS: [&str; 2] = ["a", "z"];

/// A root with two sessions in order, and room for a bad one between them.
pub async fn between_neighbours(disk: &Disk) {
    for name in NEIGHBOURS {
        store_session(&disk.store(), name, 3).await;
    }
}

/// Everything below a directory: what it is, its mode, when it changed, what it holds.
pub fn snapshot(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let (mode, mtime, nanos) = (meta.mode(), meta.mtime(), meta.mtime_nsec());
        let content = if meta.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            String::new()
        } else if meta.is_file() {
            // As root, or where it may be read.
            fs::read(&path).map_or_else(|error| error.to_string(), |bytes| format!("{bytes:?}"))
        } else {
            format!("{:?}", fs::read_link(&path))
        };
        found.insert(path, format!("{mode:o} {mtime}.{nanos} {content}"));
    }
    found
}

/// The same without what whoever wants to write leaves behind: the lock, and the time of its
/// directory.
pub fn logs_of(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = snapshot(root);
    found.retain(|path, state| !path.ends_with("session.lock") && !state.starts_with("40"));
    found
}

/// Compares two states of a root, and names what differs.
pub fn assert_unchanged(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
    what: &str,
) {
    let paths: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let changed: Vec<_> =
        paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(changed.is_empty(), "{what}: changed {changed:?}");
}

/// The state and the reason that a listing gives for a session; nothing if it is not there.
pub async fn listed(
    store: &dyn SessionStore,
    session: &str,
) -> Option<(SessionState, Option<String>)> {
    let list = store.list(&ListQuery::default(), &never()).await.unwrap();
    for neighbour in NEIGHBOURS {
        let mut entries = list.entries.iter().filter(|entry| entry.id.as_str() == neighbour);
        assert_eq!(entries.next().unwrap().state, SessionState::Ok, "{neighbour}");
        assert!(entries.next().is_none(), "{neighbour} is listed twice");
    }
    let entry = list.entries.into_iter().find(|entry| entry.id.as_str() == session)?;
    Some((entry.state, entry.reason))
}

/// The lines of a log in order: the header, then so many events and the end of a turn.
pub fn lines(session: &str) -> (String, String) {
    let mut records = String::new();
    for event in batch(0, 2) {
        records += event.text();
        records.push('\n');
    }
    (header(session).to_line() + "\n", records + &turn_end(2))
}

/// The end of a turn, as a line.
pub fn turn_end(seq: u64) -> String {
    let data = r#"{"turn":1,"reason":{"kind":"completed"}}"#;
    crate::support::event_of("turn/end", seq, data).text().to_string() + "\n"
}

/// Lays a log of these parts, each encoded by itself as one append is.
pub fn lay(disk: &Disk, parts: &[&str]) {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| disk.encode(part)).collect();
    disk.lay("s", &bytes);
}

/// Where the bad session is.
pub fn place(disk: &Disk) -> PathBuf {
    disk.root().join(PROJECT).join("s")
}
