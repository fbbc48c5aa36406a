//! Which store a command works on.

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use turnkeep_log::{SessionId, Vocabulary};
use turnkeep_store::{
    Durability, SessionStore,
    attachments::Attachments,
    jsonl::{Compression, JsonlOptions, JsonlStore},
    memory::{Disk, MemoryStore},
    sqlite::{SqliteOptions, SqliteStore},
};

use crate::{
    config::{Settings, default_store},
    failure::Failure,
};

/// A store, as a person names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Spec {
    /// The root of a tree of logs.
    Directory(PathBuf),
    /// A database.
    Sqlite(PathBuf),
    /// Nothing that outlives the command.
    Memory,
}

/// Opens the store that the settings name. A directory or database that is not there yet is an
/// empty store.
pub(crate) fn open(settings: &Settings) -> Result<Arc<dyn SessionStore>, Failure> {
    let compression = compression(settings)?;
    let durability = durability(settings)?;
    let vocabulary = vocabulary(settings);
    let store: Arc<dyn SessionStore> = match Spec::of(settings)? {
        Spec::Directory(root) => {
            let mut options =
                JsonlOptions { compression, vocabulary, durability, ..JsonlOptions::new(root) };
            if let Some(limit) = settings.max_frame_bytes {
                options.max_frame_bytes = limit;
            }
            Arc::new(JsonlStore::open(options)?)
        }
        Spec::Sqlite(path) => {
            let mut options = SqliteOptions { vocabulary, ..SqliteOptions::new(path) };
            if let Some(limit) = settings.max_frame_bytes {
                options.max_frame_bytes = limit;
            }
            Arc::new(SqliteStore::open(options)?)
        }
        Spec::Memory => Arc::new(MemoryStore::with_vocabulary(&Disk::new(), vocabulary)),
    };
    Ok(store)
}

/// What kind of store the settings name, without saying where it is.
pub(crate) fn kind(settings: &Settings) -> &'static str {
    match Spec::of(settings) {
        Ok(Spec::Directory(_)) => "directory",
        Ok(Spec::Sqlite(_)) => "sqlite",
        Ok(Spec::Memory) => "memory",
        Err(_) => "unknown",
    }
}

/// Whether nothing is yet where the store is to be, as with a name that was misspelled.
pub(crate) fn is_new(settings: &Settings) -> bool {
    match Spec::of(settings) {
        Ok(Spec::Directory(path) | Spec::Sqlite(path)) => !path.exists(),
        Ok(Spec::Memory) | Err(_) => false,
    }
}

/// The directory of the images that the store's sessions show: the one that is set, else the one
/// beside a store that is a directory, if it is there.
pub(crate) fn attachments(settings: &Settings) -> Result<Option<PathBuf>, Failure> {
    if let Some(set) = &settings.attachments {
        return match set.to_str() {
            Some(path) => expanded(path).map(Some),
            None => Ok(Some(set.clone())),
        };
    }
    Ok(match Spec::of(settings)? {
        Spec::Directory(root) => Attachments::beside(&root),
        Spec::Sqlite(_) | Spec::Memory => None,
    })
}

/// The store that the settings name, for people.
pub(crate) fn described(settings: &Settings) -> String {
    match Spec::of(settings) {
        Ok(Spec::Directory(path) | Spec::Sqlite(path)) if path.exists() => {
            path.display().to_string()
        }
        Ok(Spec::Directory(path) | Spec::Sqlite(path)) => {
            format!("{}, which does not exist", path.display())
        }
        Ok(Spec::Memory) => "memory, which is empty".to_owned(),
        Err(_) => "the store".to_owned(),
    }
}

/// The event types that the store's readers know.
pub(crate) fn vocabulary(settings: &Settings) -> Vocabulary {
    Vocabulary::v0().with(settings.vocabulary.iter().flatten().cloned())
}

fn compression(settings: &Settings) -> Result<Compression, Failure> {
    match settings.compression.as_deref() {
        None | Some("zstd") => Ok(Compression::Detect),
        Some("none") => Ok(Compression::DetectElseNone),
        Some(other) => {
            Err(Failure::usage(format!("compression is `zstd` or `none`, not `{other}`")))
        }
    }
}

/// When an append is acknowledged. What is kept in a database, or in memory only, is always as safe
/// as it gets when an append returns.
fn durability(settings: &Settings) -> Result<Durability, Failure> {
    let Some(name) = settings.durability.as_deref() else { return Ok(Durability::default()) };
    Durability::from_name(name)
        .ok_or_else(|| Failure::usage(format!("durability is `append` or `flush`, not `{name}`")))
}

impl Spec {
    /// The store that the settings name.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        if let Some(store) = settings.store.as_deref().filter(|store| !store.is_empty()) {
            return Self::parse(store);
        }
        default_store().map(Self::Directory).ok_or_else(|| {
            Failure::usage("no store: set TURNKEEP_STORE or HOME, or name one with --store")
        })
    }

    fn parse(store: &str) -> Result<Self, Failure> {
        if let Some(path) = store.strip_prefix("sqlite:") {
            return match path {
                "" => Err(Failure::usage("`sqlite:` names no file; write `sqlite:FILE`")),
                path => Ok(Self::Sqlite(expanded(path)?)),
            };
        }
        if let Some(rest) = store.strip_prefix("memory:") {
            return match rest {
                "" => Ok(Self::Memory),
                rest => Err(Failure::usage(format!(
                    "`memory:` has no name, and is never the same twice; leave out `{rest}`"
                ))),
            };
        }
        match ["postgres:", "postgresql:"].into_iter().find(|scheme| store.starts_with(scheme)) {
            Some(scheme) => Err(Failure::usage(format!(
                "this build does not keep sessions in `{scheme}`; name a directory, or `sqlite:FILE`"
            ))),
            None => Self::directory(store),
        }
    }

    /// A directory, unless it looks like another kind of store that was misspelled: what is meant to
    /// be a database must not become a directory of that name.
    fn directory(store: &str) -> Result<Self, Failure> {
        let kind = match store.split_once(':') {
            Some((kind, _)) => kind,
            None if ["memory", "sqlite"].contains(&store) => store,
            None => return expanded(store).map(Self::Directory),
        };
        let word = |char: char| char.is_ascii_alphanumeric() || "+-._".contains(char);
        if kind.starts_with(|first: char| first.is_ascii_alphabetic()) && kind.chars().all(word) {
            return Err(Failure::usage(format!(
                "a store is a directory, `sqlite:FILE` or `memory:`, not `{store}`; a directory \
                 called so is `./{store}`"
            )));
        }
        expanded(store).map(Self::Directory)
    }

    /// A store as a configuration file names it: relative to where that file is.
    pub(crate) fn named_in(folder: &Path, store: &str) -> String {
        let (kind, path) = match store.strip_prefix("sqlite:") {
            Some(path) => ("sqlite:", path),
            None => ("", store),
        };
        let is_relative = Path::new(path).is_relative() && !path.starts_with('~');
        let is_kind = kind.is_empty() && !matches!(Self::parse(store), Ok(Self::Directory(_)));
        if path.is_empty() || !is_relative || is_kind {
            return store.to_owned();
        }
        match folder.join(path).to_str() {
            Some(path) => format!("{kind}{path}"),
            None => store.to_owned(),
        }
    }
}

/// A path whose `~` is the home directory, as a shell has it; nobody expands it in a file.
fn expanded(path: &str) -> Result<PathBuf, Failure> {
    let Some(below) = path.strip_prefix('~') else { return Ok(path.into()) };
    let home = crate::config::home("");
    match (below.strip_prefix('/').or(below.is_empty().then_some("")), home) {
        (Some(""), Some(home)) => Ok(home),
        (Some(below), Some(home)) => Ok(home.join(below)),
        _ => Err(Failure::usage(format!(
            "`{path}` is not expanded; write the whole path, or `./{path}` for a directory called so"
        ))),
    }
}

/// The session that an argument names.
pub(crate) fn session_id(argument: &str) -> Result<SessionId, Failure> {
    SessionId::new(argument).ok_or_else(|| Failure::usage("a session id is never empty"))
}

/// The directory that a session works in, as its header names it.
pub(crate) fn session_cwd(cwd: &Path) -> Result<String, Failure> {
    let cwd = std::path::absolute(cwd)
        .map_err(|error| Failure::io("cannot tell the working directory", &error))?;
    // Without a slash at its end.
    let cwd: PathBuf = cwd.components().collect();
    cwd.into_os_string().into_string().map_err(|cwd| {
        Failure::usage(format!(
            "the directory {} is not UTF-8; name another with --cwd",
            cwd.display()
        ))
    })
}
