//! Which file the cache is.

use std::path::{Component, Path, PathBuf};

use thiserror::Error;
use turnkeep_log::json::is_js_whitespace;

/// Databases of the clients' other host that are no transcript cache.
const OTHERS: [&str; 2] = ["session-index.sqlite", "message-queue.sqlite"];

/// Why a path is not taken.
#[derive(Debug, Error)]
pub(crate) enum BadPath {
    /// A cache is told from other files by its name, so that a slip of the pen harms none.
    #[error("its file must be called something.sqlite")]
    Suffix,
    /// The clients' other host keeps something else under this name.
    #[error("a session index or message queue is no transcript cache; name another file")]
    Reserved,
    /// There is no current directory for a relative path to start from.
    #[error("a relative path leads nowhere here: {0}; give an absolute one")]
    NoDirectory(#[source] std::io::Error),
}

/// Whether a setting says nothing: empty, or white space only. Then the next place to look counts.
pub(crate) fn is_blank(path: &Path) -> bool {
    path.to_str().is_some_and(|text| trimmed(text).is_empty())
}

/// The absolute path of the file that a setting names, without white space around it and with `.`
/// and `..` taken out as text, as the clients' other host does: both must come to the same file.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, BadPath> {
    let path = path.to_str().map_or(path, |text| Path::new(trimmed(text)));
    let absolute = std::path::absolute(path).map_err(BadPath::NoDirectory)?;
    let mut resolved = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => {
                // Above the root there is the root.
                resolved.pop();
            }
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    let has_suffix = resolved.extension().is_some_and(|it| it.eq_ignore_ascii_case("sqlite"));
    if !has_suffix {
        return Err(BadPath::Suffix);
    }
    let is_reserved =
        |name: &str| resolved.file_name().is_some_and(|file| file.eq_ignore_ascii_case(name));
    if OTHERS.into_iter().any(is_reserved) {
        return Err(BadPath::Reserved);
    }
    Ok(resolved)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches(|char| u16::try_from(u32::from(char)).is_ok_and(is_js_whitespace))
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
