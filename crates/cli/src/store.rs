//! Which store a command works on.

use std::{path::PathBuf, sync::Arc};

use turnkeep_log::{SessionId, Vocabulary};
use turnkeep_store::{
    SessionStore,
    jsonl::{Compression, JsonlOptions, JsonlStore},
};

use crate::{
    config::{Settings, default_store},
    failure::Failure,
};

/// Opens the store that the settings name. A directory that is not there yet is an empty store.
pub(crate) fn open(settings: &Settings) -> Result<Arc<dyn SessionStore>, Failure> {
    let root = root(settings)?;
    let compression = match settings.compression.as_deref() {
        None | Some("zstd") => Compression::Detect,
        Some("none") => Compression::DetectElseNone,
        Some(other) => {
            return Err(Failure::usage(format!("compression is `zstd` or `none`, not `{other}`")));
        }
    };
    let mut options = JsonlOptions { compression, ..JsonlOptions::new(root) };
    if let Some(limit) = settings.max_frame_bytes {
        options.max_frame_bytes = limit;
    }
    options.vocabulary = vocabulary(settings);
    let store = JsonlStore::open(options)?;
    Ok(Arc::new(store))
}

/// The store that the settings name, for people.
pub(crate) fn described(settings: &Settings) -> String {
    match root(settings) {
        Ok(root) if root.exists() => root.display().to_string(),
        Ok(root) => format!("{}, which does not exist", root.display()),
        Err(_) => "the store".to_owned(),
    }
}

/// The event types that the store's readers know.
pub(crate) fn vocabulary(settings: &Settings) -> Vocabulary {
    Vocabulary::v0().with(settings.vocabulary.iter().flatten().cloned())
}

fn root(settings: &Settings) -> Result<PathBuf, Failure> {
    let Some(store) = settings.store.as_deref().filter(|store| !store.is_empty()) else {
        return default_store().ok_or_else(|| {
            Failure::usage("no store: set TURNKEEP_STORE or HOME, or name one with --store")
        });
    };
    let elsewhere = ["sqlite:", "postgres:", "postgresql:", "memory:"];
    if let Some(scheme) = elsewhere.iter().find(|scheme| store.starts_with(**scheme)) {
        return Err(Failure::usage(format!(
            "this build keeps sessions in directories only, not in `{scheme}`; name a directory"
        )));
    }
    Ok(PathBuf::from(store))
}

/// The session that an argument names.
pub(crate) fn session_id(argument: &str) -> Result<SessionId, Failure> {
    SessionId::new(argument).ok_or_else(|| Failure::usage("a session id is never empty"))
}
