//! Files below a root that nobody needs, or that do not belong there.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{probe::PREFIX, report::Finding};
use crate::output::counted;

/// Where deleted sessions wait.
const TRASH: &str = ".turnkeep-trash";

/// How old a file must be that is only there for a moment.
const STALE: Duration = Duration::from_secs(60 * 60);

/// How many paths are shown.
const SHOWN: usize = 3;

/// What there is below a root besides sessions.
#[derive(Debug, Default)]
struct Found {
    zstd: usize,
    plain: usize,
    /// Left by a writer that was ended while it made a log, or by this command.
    temporary: Vec<PathBuf>,
    /// Copies of what a repair cut off.
    cuts: Vec<PathBuf>,
    /// Directories without a log in them.
    empty: Vec<PathBuf>,
    /// Other files where no program puts any.
    stray: Vec<PathBuf>,
    /// What cannot be read.
    unread: Vec<PathBuf>,
}

/// Looks at what lies in a root.
pub(super) fn look(root: &Path) -> Vec<Finding> {
    let mut found = Found::default();
    for entry in found.entries(root) {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !entry.path().is_dir() {
            found.stray.push(entry.path());
        } else if name.starts_with(PREFIX) {
            found.temporary.extend(stale(&entry.path()));
        } else if name != TRASH {
            found.project(&entry.path());
        }
    }
    found.findings()
}

impl Found {
    fn entries(&mut self, dir: &Path) -> Vec<fs::DirEntry> {
        let read = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let Ok(mut entries) = read else {
            self.unread.push(dir.to_owned());
            return Vec::new();
        };
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        entries
    }

    fn project(&mut self, dir: &Path) {
        for entry in self.entries(dir) {
            let path = entry.path();
            if path.is_dir() {
                self.session(&path);
            } else if !is_log(&entry.file_name().to_string_lossy()) {
                self.stray.push(path);
            }
        }
    }

    fn session(&mut self, dir: &Path) {
        let mut has_log = false;
        for entry in self.entries(dir) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("session.jsonl") && name.strip_suffix(".tmp").is_some() {
                self.temporary.extend(stale(&entry.path()));
            } else if name.starts_with("turnkeep.cut-") {
                self.cuts.push(entry.path());
            } else if name.starts_with("session.") && is_log(&name) {
                has_log = true;
                self.zstd += usize::from(name == "session.jsonl.zstd");
                self.plain += usize::from(name == "session.jsonl");
            }
        }
        if !has_log && !self.unread.iter().any(|unread| unread == dir) {
            self.empty.extend(stale(dir));
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::from_iter(self.encoding());
        let mut some = |paths: &[PathBuf], one: &str, more: &str, advice: &str, needed: bool| {
            let Some(shown) = shown(paths) else { return };
            let message = format!("{}: {shown}", counted(paths.len() as u64, one, more));
            findings.push(if needed {
                Finding::todo("files", message, advice)
            } else {
                Finding::note("files", message, advice)
            });
        };
        some(
            &self.unread,
            "directory that cannot be read",
            "directories that cannot be read",
            "sessions in there cannot be found; see their permissions",
            true,
        );
        some(
            &self.temporary,
            "stale temporary file, of a writer that was ended",
            "stale temporary files, of writers that were ended",
            "remove them; no session needs them",
            true,
        );
        some(
            &self.cuts,
            "copy of what a repair cut off a log",
            "copies of what a repair cut off a log",
            "look into them, and remove what you do not miss",
            false,
        );
        some(
            &self.empty,
            "directory without a log, of a session that was never stored",
            "directories without a log, of sessions that were never stored",
            "nobody minds them; `rmdir` them once their lock file is gone",
            false,
        );
        some(
            &self.stray,
            "file that belongs to no session",
            "files that belong to no session",
            "move them out: other programs may take them for logs",
            false,
        );
        findings
    }

    fn encoding(&self) -> Option<Finding> {
        match (self.zstd, self.plain) {
            (0, 0) => None,
            (zstd, 0) => Some(Finding::ok(
                "encoding",
                format!("zstd, in {}", counted(zstd as u64, "log", "logs")),
            )),
            (0, plain) => Some(Finding::ok(
                "encoding",
                format!("none, in {}", counted(plain as u64, "log", "logs")),
            )),
            (zstd, plain) => Some(Finding::todo(
                "encoding",
                format!("{zstd} logs are zstd and {plain} are not; DSH refuses such a root"),
                "move the logs of one encoding to a root of their own",
            )),
        }
    }
}

fn is_log(name: &str) -> bool {
    name.strip_suffix(".zstd").unwrap_or(name).strip_suffix(".jsonl").is_some()
}

/// A path, unless it is so young that someone may still be at work on it.
fn stale(path: &Path) -> Option<PathBuf> {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified()).ok()?;
    let age = SystemTime::now().duration_since(modified).unwrap_or_default();
    (age > STALE).then(|| path.to_owned())
}

fn shown(paths: &[PathBuf]) -> Option<String> {
    paths.first()?;
    let some = paths.iter().take(SHOWN).map(|path| path.display().to_string());
    let some = some.collect::<Vec<_>>().join(", ");
    Some(if paths.len() > SHOWN { format!("{some}, …") } else { some })
}
