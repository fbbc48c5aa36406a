//! Finding sessions in the tree.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use turnkeep_log::{FORMAT_VERSION, SessionHeader, SessionId};

use super::{
    failure::{LogFailure, Subject, io_failure},
    fs::{EntryKind, Fs},
    layout::{Artifact, Encoding, Layout, SessionDir, flat_log_names},
    root::Root,
};
use crate::error::{FormatUnsupported, IoFailure};

/// What a session directory holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The encodings in which there is a log.
    pub(crate) logs: Vec<Encoding>,
    /// The latest log of a later format: its version and its name.
    pub(crate) newer: Option<(u64, OsString)>,
}

impl Contents {
    /// Looks into a session directory.
    pub(crate) fn of(fs: &dyn Fs, dir: &Path) -> io::Result<Self> {
        let mut contents = Self::default();
        for entry in fs.read_dir(dir)? {
            match Artifact::of(&entry.name) {
                Some(Artifact::Log(encoding)) => contents.logs.push(encoding),
                Some(Artifact::Newer(version)) => {
                    let later = contents.newer.take_if(|(known, _)| *known >= version);
                    contents.newer = later.or(Some((version, entry.name)));
                }
                None => {}
            }
        }
        Ok(contents)
    }

    /// Whether there is no session here.
    pub(crate) fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.newer.is_none()
    }
}

/// Finds a session, whatever project it is in; `None` when there is none.
///
/// A project that cannot be looked into does not hide what is found in another. When nothing is, it
/// may be there.
pub(crate) fn find(root: &Root, id: &SessionId) -> Result<Option<SessionDir>, LogFailure> {
    let (hits, unread) = hits(root, id)?;
    let mut hits = hits.into_iter();
    let Some(hit) = hits.next() else {
        return unread.map_or(Ok(None), |failure| Err(failure.into()));
    };
    let subject_path = hit.dir.log(root.encoding);
    if hits.next().is_some() {
        let subject = Subject { id, path: &subject_path };
        return Err(subject.corrupt(&duplicate(id)));
    }
    hit.accept(root, id).map(Some)
}

/// Every directory that holds a log of a session, whether or not it can be read; each once, however
/// many ways lead to it. More than one is one too many.
pub(crate) fn places(root: &Root, id: &SessionId) -> Result<Vec<SessionDir>, LogFailure> {
    let (hits, unread) = hits(root, id)?;
    match unread {
        Some(failure) if hits.is_empty() => Err(failure.into()),
        _ => Ok(hits.into_iter().map(|hit| hit.dir).collect()),
    }
}

/// What there is of a session in all projects, and why one of them could not be looked into.
fn hits(root: &Root, id: &SessionId) -> Result<(Vec<Hit>, Option<IoFailure>), LogFailure> {
    let mut hits: Vec<Hit> = Vec::new();
    let mut unread = None;
    for project in projects(root).map_err(|source| cannot_read(root, id, source))? {
        let probed = refuse_flat(root, id, &project).and_then(|()| Hit::probe(root, id, &project));
        match probed {
            Ok(Some(hit)) if hits.iter().all(|other| other.identity != hit.identity) => {
                hits.push(hit);
            }
            Ok(_) => {}
            Err(LogFailure::Io(failure)) => {
                unread.get_or_insert(failure);
            }
            Err(refusal) => return Err(refusal),
        }
    }
    Ok((hits, unread))
}

/// A directory that holds a log of the session.
struct Hit {
    dir: SessionDir,
    identity: (u64, u64),
    contents: Contents,
}

impl Hit {
    fn probe(root: &Root, id: &SessionId, project: &OsStr) -> Result<Option<Self>, LogFailure> {
        let dir = root.layout.session_dir_in(project, id);
        let looked = root
            .fs
            .stat(dir.path())
            .and_then(|stat| Ok(((stat.dev, stat.ino), Contents::of(&*root.fs, dir.path())?)));
        match looked {
            Ok((_, contents)) if contents.is_empty() => Ok(None),
            Ok((identity, contents)) => Ok(Some(Self { dir, identity, contents })),
            Err(error) if is_absent(&error) => Ok(None),
            Err(source) => Err(io_failure(id, "look for it in", dir.path(), source).into()),
        }
    }

    fn accept(self, root: &Root, id: &SessionId) -> Result<SessionDir, LogFailure> {
        if let Some((version, name)) = &self.contents.newer {
            let path = self.dir.path().join(name);
            return Err(Subject { id, path: &path }.unsupported(newer_generation(id, *version)));
        }
        let other = root.encoding.other();
        if self.contents.logs.contains(&other) {
            let path = self.dir.log(other);
            return Err(Subject { id, path: &path }.unsupported(other_encoding(id, other)));
        }
        Ok(self.dir)
    }
}

/// A log of the layout before version 0 lies directly in the project directory.
fn refuse_flat(root: &Root, id: &SessionId, project: &OsStr) -> Result<(), LogFailure> {
    for name in flat_log_names(id) {
        let path = root.layout.root().join(project).join(name);
        match root.fs.stat(&path) {
            Ok(_) => return Err(Subject { id, path: &path }.unsupported(flat_layout(id))),
            Err(error) if is_absent(&error) => {}
            Err(source) => return Err(io_failure(id, "look for it at", &path, source).into()),
        }
    }
    Ok(())
}

/// Whether nothing is there; a name too long for the file system is not there either.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename)
}

/// Whether what a listing showed is no longer there, or no longer a directory.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(crate) fn duplicate(id: &SessionId) -> String {
    format!(
        "duplicate JSONL session id \"{id}\" appears in multiple project directories; \
         move one of them out of the root"
    )
}

pub(crate) fn newer_generation(id: &SessionId, version: u64) -> String {
    format!(
        "session \"{id}\" uses log format v{version}, but this build reads only v{FORMAT_VERSION}: \
         the log was written by a newer harness — upgrade the harness to open it"
    )
}

pub(crate) fn other_encoding(id: &SessionId, other: Encoding) -> String {
    format!(
        "session \"{id}\" is stored with compression \"{}\", but this store is open with \"{}\"; \
         open it with the former",
        other.setting(),
        other.other().setting()
    )
}

pub(crate) fn flat_layout(id: &SessionId) -> String {
    format!(
        "session \"{id}\" is stored in the unsupported flat layout, a file without a directory of \
         its own; only early builds of the harness read it"
    )
}

/// Checks that a log lies where its header says it belongs. Otherwise a copied directory would
/// answer for another session.
pub(crate) fn check_place(
    root: &Root,
    header: &SessionHeader,
    dir: &SessionDir,
) -> Result<(), LogFailure> {
    let log = dir.log(root.encoding);
    let subject = Subject { id: &header.id, path: &log };
    if is_in_place(root, header, dir).map_err(|source| subject.io("look at", source))? {
        return Ok(());
    }
    let expected = root.layout.session_dir(header).log(root.encoding);
    Err(subject.corrupt(&format!(
        "its header places it at {}, but it is at {}",
        expected.display(),
        log.display()
    )))
}

/// Whether a header leads to this directory, by its name or, where names are not exact, by what is
/// there.
pub(crate) fn is_in_place(
    root: &Root,
    header: &SessionHeader,
    dir: &SessionDir,
) -> io::Result<bool> {
    let expected = root.layout.session_dir(header);
    if expected == *dir {
        return Ok(true);
    }
    match root.fs.stat(expected.path()) {
        Ok(there) => Ok(there.same_file(&root.fs.stat(dir.path())?)),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The project directories, by name. A root that is not there has none.
pub(crate) fn projects(root: &Root) -> io::Result<Vec<OsString>> {
    directories(&*root.fs, root.layout.root())
        .map(|names| names.into_iter().filter(|name| Layout::is_project(name)).collect())
}

/// The directories in a directory, and the links to some, by name; none if it is not there.
pub(crate) fn directories(fs: &dyn Fs, path: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs.read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names: Vec<OsString> = entries
        .into_iter()
        .filter(|entry| match entry.kind {
            EntryKind::Dir => true,
            EntryKind::File => false,
            EntryKind::Other => {
                fs.stat(&path.join(&entry.name)).is_ok_and(|stat| stat.kind == EntryKind::Dir)
            }
        })
        .map(|entry| entry.name)
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// The encoding of the first log in a root, by name; `None` when there is no log.
///
/// An empty log, which anyone may have left there, tells only when there is no other. While there is
/// something that cannot be read, the root is not taken for one without logs: the first log of ours
/// could make a mixture of it.
pub(crate) fn first_encoding(fs: &dyn Fs, root: &Path) -> io::Result<Option<Encoding>> {
    let mut empty = None;
    let mut unread = None;
    let found = each_session(fs, root, |session| {
        let look = || {
            let (dir, contents) = session?;
            for encoding in [Encoding::Zstd, Encoding::None] {
                if contents.logs.contains(&encoding) {
                    let stat = fs.stat(&dir.log(encoding))?;
                    if stat.kind == EntryKind::File && stat.size > 0 {
                        return Ok(Some(encoding));
                    }
                    empty.get_or_insert(encoding);
                }
            }
            Ok(None)
        };
        look().unwrap_or_else(|error| {
            if !is_gone(&error) {
                unread.get_or_insert(error);
            }
            None
        })
    })?;
    match (found, unread) {
        (None, Some(error)) => Err(error),
        (found, _) => Ok(found.or(empty)),
    }
}

/// Refuses a root that holds logs of the other encoding: one more would make a mixture that other
/// readers refuse as a whole.
pub(crate) fn refuse_mixture(root: &Root, id: &SessionId) -> Result<(), LogFailure> {
    if root.unmixed.get().is_some() {
        return Ok(());
    }
    let other = root.encoding.other();
    // A directory that cannot be read has none to tell of: it must not keep the rest of the root
    // from being used.
    if !holds(root, other).map_err(|source| cannot_read(root, id, source))? {
        root.unmixed.get_or_init(|| ());
        return Ok(());
    }
    let message = format!(
        "session \"{id}\" cannot be stored with compression \"{}\" in a root that holds logs with \
         \"{}\"; open the store with the latter, or use another root",
        root.encoding.setting(),
        other.setting()
    );
    // It is about the root: there is no log to point to.
    Err(LogFailure::FormatUnsupported(FormatUnsupported { id: id.clone(), message, path: None }))
}

/// Whether there is a log of an encoding, as far as can be seen.
pub(crate) fn holds(root: &Root, encoding: Encoding) -> io::Result<bool> {
    let found = each_session(&*root.fs, root.layout.root(), |session| {
        session.ok().filter(|(_, contents)| contents.logs.contains(&encoding)).map(|_| ())
    });
    found.map(|found| found.is_some())
}

/// Asks about what every session's directory holds, or why that or a project's cannot be read, until
/// there is an answer.
fn each_session<T>(
    fs: &dyn Fs,
    root: &Path,
    mut ask: impl FnMut(io::Result<(SessionDir, Contents)>) -> Option<T>,
) -> io::Result<Option<T>> {
    for project in directories(fs, root)?.iter().filter(|name| Layout::is_project(name)) {
        let project: PathBuf = root.join(project);
        let (sessions, unread) = match directories(fs, &project) {
            Ok(sessions) => (sessions, None),
            Err(error) => (Vec::new(), Some(Err(error))),
        };
        let looked = sessions.into_iter().map(|session| {
            let dir = SessionDir::at(project.join(session));
            Contents::of(fs, dir.path()).map(|contents| (dir, contents))
        });
        if let Some(answer) = looked.chain(unread).find_map(&mut ask) {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

fn cannot_read(root: &Root, id: &SessionId, source: io::Error) -> LogFailure {
    io_failure(id, "look for it in", root.layout.root(), source).into()
}
