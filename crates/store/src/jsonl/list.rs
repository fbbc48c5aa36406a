//! Listing the sessions of a root.
//!
//! Nothing that lies in one session's directory keeps the others from being listed, and nothing is
//! left out: what cannot be served is shown with the reason. Ordering needs the time of each log;
//! the header is read of those alone that make it onto the page.

use std::{collections::HashMap, ffi::OsStr, io, path::Path};

use turnkeep_log::SessionId;

use super::{
    discover::{self, Contents, is_in_place},
    failure::LogFailure,
    fs::{EntryKind, FileStat},
    head::Head,
    layout::{SessionDir, decode_id, flat_log_id, project_key},
    root::Root,
    snapshot,
    writer::Registry,
};
use crate::{
    error::{IoFailure, ListError},
    seam::{Cancel, ListQuery, SessionEntry, SessionList, SessionStat, SessionState},
    shell::listing::{self, Found, check},
};

/// Lists one page.
pub(crate) fn list(
    root: &Root,
    registry: &Registry,
    query: &ListQuery,
    cancel: &Cancel,
) -> Result<SessionList, ListError> {
    // Pending ones first: one that is stored meanwhile is found then, and else it would be missed.
    let pending = registry.all_pending();
    let found = Walk::new(root, query, cancel).run()?;
    listing::page(pending, found, query, cancel, |id, what| entry(id, what, root, registry))
}

/// What a candidate is.
#[derive(Debug)]
enum What {
    /// A log of ours, by its place; its header has not been looked at.
    Log(SessionDir),
    /// Something that is not served, and why.
    Unserved(SessionState, String),
}

type Candidate = Found<What>;

fn entry(id: SessionId, what: What, root: &Root, registry: &Registry) -> Option<SessionEntry> {
    let (stat, state, reason) = match what {
        What::Unserved(state, reason) => (None, state, Some(reason)),
        What::Log(dir) => match read_log(root, registry, &id, &dir) {
            Some(Ok(stat)) => (Some(stat), SessionState::Ok, None),
            Some(Err((state, reason))) => (None, state, Some(reason)),
            // Gone since it was found.
            None => return None,
        },
    };
    Some(SessionEntry { id, stat, state, reason })
}

fn read_log(
    root: &Root,
    registry: &Registry,
    id: &SessionId,
    dir: &SessionDir,
) -> Option<Result<SessionStat, (SessionState, String)>> {
    let damaged = |reason: String| Some(Err((SessionState::Damaged, reason)));
    let first = match snapshot::read_first(root, registry, id, dir) {
        Ok(found) => found?,
        Err(failure) => return Some(Err(reason(failure))),
    };
    match first.head {
        Head::Unfinished => damaged("its log ends before its first line does".to_owned()),
        Head::Foreign { newer: true, failure } => {
            Some(Err((SessionState::Newer, reason(failure).1)))
        }
        Head::Foreign { newer: false, failure } => {
            Some(Err((SessionState::Foreign, reason(failure).1)))
        }
        Head::Header(header) => match is_in_place(root, &header, dir) {
            Ok(true) => Some(Ok(snapshot::of(header, &first.stat, first.hints))),
            Ok(false) => damaged("its header belongs to another directory".to_owned()),
            Err(error) => damaged(unreadable(&error)),
        },
    }
}

/// What keeps a log from being served, in a sentence without a path.
fn reason(failure: LogFailure) -> (SessionState, String) {
    match failure {
        LogFailure::Corrupt(corrupt) => (SessionState::Damaged, corrupt.message),
        LogFailure::FormatUnsupported(unsupported) => (SessionState::Foreign, unsupported.message),
        LogFailure::Io(failure) => (SessionState::Damaged, unreadable(&failure.source)),
        LogFailure::Cancelled(cancelled) => (SessionState::Damaged, cancelled.to_string()),
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("it cannot be read: {error}")
}

/// The walk over the tree.
struct Walk<'a> {
    root: &'a Root,
    query: &'a ListQuery,
    cancel: &'a Cancel,
    found: Vec<Candidate>,
    /// Which of them a session's id is, and the file it was found in.
    by_id: HashMap<SessionId, (usize, Option<FileStat>)>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Root, query: &'a ListQuery, cancel: &'a Cancel) -> Self {
        Self { root, query, cancel, found: Vec::new(), by_id: HashMap::new() }
    }

    fn run(mut self) -> Result<Vec<Candidate>, ListError> {
        let projects = discover::projects(self.root).map_err(|source| {
            let context = format!("cannot list {}", self.root.layout.root().display());
            IoFailure { context, source }
        })?;
        // A session of a directory can only lie under that directory's key.
        let key = self.query.cwd.as_deref().map(|cwd| project_key(Some(cwd)));
        for project in projects {
            if key.as_deref().is_none_or(|key| project == key) {
                self.project(&project)?;
            }
        }
        Ok(self.found)
    }

    fn project(&mut self, name: &OsStr) -> Result<(), ListError> {
        let path = self.root.layout.root().join(name);
        let entries = match self.root.fs.read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let reason = format!("a project directory, which cannot be read: {error}");
                let what = What::Unserved(SessionState::Damaged, reason);
                self.found.extend(Named::of(name).map(|Named { id, .. }| Candidate {
                    id,
                    modified_at: 0,
                    what,
                }));
                return Ok(());
            }
        };
        for entry in entries {
            check(self.cancel)?;
            let path = path.join(&entry.name);
            let is_file = entry.kind == EntryKind::File;
            match flat_log_id(&entry.name).filter(|_| is_file) {
                Some(segment) => self.flat(segment, &path),
                None if is_file => {}
                None => self.session(&entry.name, path.as_path()),
            }
        }
        Ok(())
    }

    fn flat(&mut self, segment: &str, path: &Path) {
        let Some(named) = Named::of(OsStr::new(segment)) else { return };
        let modified_at = self.root.fs.stat(path).map_or(0, |stat| snapshot::modified_at(&stat));
        let reason = discover::flat_layout(&named.id);
        self.add(named, modified_at, None, What::Unserved(SessionState::Foreign, reason));
    }

    fn session(&mut self, name: &OsStr, path: &Path) {
        let Some(named) = Named::of(name) else { return };
        let contents = match Contents::of(&*self.root.fs, path) {
            Ok(contents) if contents.is_empty() => return,
            Ok(contents) => contents,
            // A link to something else, or a directory that is gone.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return;
            }
            Err(error) => {
                let what = What::Unserved(SessionState::Damaged, unreadable(&error));
                return self.add(named, 0, None, what);
            }
        };
        let dir = SessionDir::at(path.to_owned());
        let other = self.root.encoding.other();
        let (log, what) = if let Some((version, name)) = contents.newer {
            let reason = discover::newer_generation(&named.id, version);
            (dir.path().join(name), What::Unserved(SessionState::Newer, reason))
        } else if contents.logs.contains(&other) {
            let reason = discover::other_encoding(&named.id, other);
            (dir.log(other), What::Unserved(SessionState::Foreign, reason))
        } else {
            (dir.log(self.root.encoding), What::Log(dir))
        };
        let stat = self.root.fs.stat(&log).ok();
        let modified_at = stat.as_ref().map_or(0, snapshot::modified_at);
        self.add(named, modified_at, stat, what);
    }

    fn add(&mut self, named: Named, modified_at: i64, file: Option<FileStat>, what: What) {
        let Named { id, is_encoded } = named;
        if !is_encoded {
            let reason = "its directory is not named after a session".to_owned();
            let what = match what {
                What::Log(_) => What::Unserved(SessionState::Damaged, reason),
                what @ What::Unserved(..) => what,
            };
            return self.found.push(Candidate { id, modified_at, what });
        }
        let Some((index, other)) = self.by_id.get(&id).copied() else {
            self.by_id.insert(id.clone(), (self.found.len(), file));
            return self.found.push(Candidate { id, modified_at, what });
        };
        let same = matches!((file, other), (Some(file), Some(other)) if file.same_file(&other));
        if !same && let Some(candidate) = self.found.get_mut(index) {
            candidate.modified_at = candidate.modified_at.max(modified_at);
            candidate.what = What::Unserved(SessionState::Damaged, discover::duplicate(&id));
        }
    }
}

/// Which session a name stands for.
struct Named {
    id: SessionId,
    /// Whether it is spelled as a session's directory is.
    is_encoded: bool,
}

impl Named {
    /// `None` for the empty name, which a file called `.jsonl` would give a session.
    fn of(name: &OsStr) -> Option<Self> {
        if let Some(id) = name.to_str().and_then(decode_id) {
            return Some(Self { id, is_encoded: true });
        }
        let id = SessionId::new(&name.to_string_lossy())?;
        Some(Self { id, is_encoded: false })
    }
}
