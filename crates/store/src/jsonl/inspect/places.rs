//! Where a session is, and everything that is wrong with its being there.

use std::{io, path::PathBuf};

use turnkeep_log::SessionId;

use crate::{
    jsonl::{
        discover::{self, Contents},
        failure::{LogFailure, io_failure},
        layout::{Encoding, SessionDir, flat_log_names},
        root::Root,
    },
    verify::{Finding, FindingKind, Severity},
};

/// What of a session is in a root.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The logs there are, the one that a reader would take first.
    pub(super) logs: Vec<(SessionDir, Encoding)>,
    pub(super) findings: Vec<Finding>,
    /// The kind of error that a reader answers with before it looks into a log.
    pub(super) refused: Option<&'static str>,
    /// What is there of which no log of ours is.
    other: Option<PathBuf>,
}

impl Places {
    /// The file that a person would want to look at.
    pub(super) fn path(&self) -> Option<PathBuf> {
        let log = self.logs.first().map(|(dir, encoding)| dir.log(*encoding));
        log.or_else(|| self.other.clone())
    }

    fn add(&mut self, kind: FindingKind, severity: Severity, message: String, path: PathBuf) {
        let mut finding = Finding::new(kind, severity, message);
        finding.path = Some(path.clone());
        self.findings.push(finding);
        self.other.get_or_insert(path);
    }
}

/// Looks for a session in every project; `None` when there is nothing of it.
pub(super) fn find(root: &Root, id: &SessionId) -> Result<Option<Places>, LogFailure> {
    let mut places = Places::default();
    let mut dirs: Vec<(SessionDir, (u64, u64))> = Vec::new();
    let projects = discover::projects(root)
        .map_err(|source| io_failure(id, "look for it in", root.layout.root(), source))?;
    for project in projects {
        for name in flat_log_names(id) {
            let path = root.layout.root().join(&project).join(name);
            if root.fs.stat(&path).is_ok() {
                let message = "it is stored in the flat layout of early builds, as a file without \
                               a directory of its own";
                let (kind, severity) = (FindingKind::Obsolete, Severity::Unsupported);
                places.add(kind, severity, message.to_owned(), path);
            }
        }
        let dir = root.layout.session_dir_in(&project, id);
        let looked = root
            .fs
            .stat(dir.path())
            .and_then(|stat| Ok(((stat.dev, stat.ino), Contents::of(&*root.fs, dir.path())?)));
        let (identity, contents) = match looked {
            Ok((_, contents)) if contents.is_empty() => continue,
            Ok(found) => found,
            Err(error) if is_absent(&error) => continue,
            Err(error) => {
                let message = format!("the directory it may be in cannot be read: {error}");
                let path = dir.path().to_owned();
                places.add(FindingKind::Unreadable, Severity::Unreadable, message, path);
                continue;
            }
        };
        // The same directory, reached another way.
        if dirs.iter().any(|(_, known)| *known == identity) {
            continue;
        }
        dirs.push((dir.clone(), identity));
        places.look_into(root, &dir, contents);
    }
    if dirs.len() > 1 {
        for (dir, _) in &dirs {
            let message = "another directory holds a session of the same id".to_owned();
            let path = dir.path().to_owned();
            let kind = FindingKind::DuplicateSession;
            places.add(kind, Severity::Damaged, message, path);
        }
    }
    if dirs.is_empty() && places.findings.is_empty() {
        return Ok(None);
    }
    // What a reader says of it, which has an order of its own.
    places.refused = match discover::find(root, id) {
        Ok(_) => None,
        Err(LogFailure::FormatUnsupported(_)) => Some("format_unsupported"),
        Err(LogFailure::Corrupt(_)) => Some("corrupt"),
        Err(LogFailure::Io(failure)) if dirs.is_empty() && places.only_unread() => {
            return Err(failure.into());
        }
        Err(LogFailure::Io(_)) => Some("io"),
        Err(cancelled @ LogFailure::Cancelled(_)) => return Err(cancelled),
    };
    if places.refused.is_none() {
        // A project that cannot be read is no fault of a session that was found in another.
        places.findings.retain(|finding| finding.kind != FindingKind::Unreadable);
    }
    Ok(Some(places))
}

impl Places {
    fn only_unread(&self) -> bool {
        self.findings.iter().all(|finding| finding.kind == FindingKind::Unreadable)
    }

    fn look_into(&mut self, root: &Root, dir: &SessionDir, contents: Contents) {
        if let Some((version, name)) = contents.newer {
            let message = format!(
                "a newer harness has taken it over as log format v{version}; what is left of \
                 ours is stale"
            );
            let path = dir.path().join(name);
            return self.add(FindingKind::Newer, Severity::Unsupported, message, path);
        }
        let ours = root.encoding;
        let other = ours.other();
        if contents.logs.contains(&ours) {
            self.logs.push((dir.clone(), ours));
        }
        if contents.logs.contains(&other) {
            let message = format!(
                "it is stored with compression \"{}\" in a store that is open with \"{}\"",
                other.setting(),
                ours.setting()
            );
            let path = dir.log(other);
            self.logs.push((dir.clone(), other));
            self.add(FindingKind::OtherEncoding, Severity::Unsupported, message, path);
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename)
}
