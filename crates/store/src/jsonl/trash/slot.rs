//! Where deleted sessions lie: one directory a deletion, in it one a project, in it the session's.

use std::{
    ffi::{OsStr, OsString},
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
};

use turnkeep_log::SessionId;

use crate::{
    error::IoFailure,
    jsonl::{
        failure::{LogFailure, io_failure},
        fs::{EntryKind, Fs},
        layout::{Artifact, SessionDir, decode_id},
        root::{Root, WRITABLE_BY_OTHERS},
    },
    shell::deletion_time,
};

/// What is on its way out begins with this. No session's directory does: `~` is followed by hex
/// digits there.
const LEAVING: &str = "~leaving-";

/// A session's directory in a project's.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) project: PathBuf,
    pub(super) project_name: OsString,
    pub(super) dir: SessionDir,
}

impl Place {
    pub(super) fn of(dir: SessionDir) -> Option<Self> {
        let project = dir.path().parent()?.to_owned();
        let project_name = project.file_name()?.to_owned();
        Some(Self { project, project_name, dir })
    }

    pub(super) fn name(&self) -> &OsStr {
        self.dir.path().file_name().unwrap_or_default()
    }

    /// Refuses what would not be a session any more once it was moved.
    pub(super) fn refuse_unmovable(&self, root: &Root, id: &SessionId) -> Result<(), LogFailure> {
        let refuse = |problem: &str| {
            let source = io::Error::new(io::ErrorKind::InvalidInput, problem);
            Err(io_failure(id, "move to the trash", self.dir.path(), source).into())
        };
        let kind = entry_kind(&*root.fs, &self.project, self.name())
            .map_err(|source| io_failure(id, "look at", &self.project, source))?;
        if kind == Some(EntryKind::Other) {
            return refuse("it is a symbolic link; remove the link by hand");
        }
        // In the trash it lies where other readers look for logs.
        if Artifact::of(&self.project_name).is_some() {
            return refuse("its project directory is named like a log; rename that");
        }
        Ok(())
    }
}

/// The part of the trash that one deletion has for itself.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) path: PathBuf,
    pub(super) deleted_at: i64,
}

impl Slot {
    /// Makes the trash if it is not there, and a new slot in it, durably.
    pub(super) fn make(root: &Root, id: &SessionId) -> Result<Self, IoFailure> {
        let trash = root.layout.trash();
        let failed = |source| io_failure(id, "make room in", &trash, source);
        root.make_session_dir(&trash).map_err(failed)?;
        check_trash(root, &trash).map_err(failed)?;
        let mut deleted_at = deletion_time(None);
        let path = loop {
            let path = trash.join(deleted_at.to_string());
            match root.fs.create_dir(&path) {
                // Another deletion of the same millisecond.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => deleted_at += 1,
                made => break made.map(|()| path).map_err(failed)?,
            }
        };
        let slot = Self { path, deleted_at };
        root.fs.sync_dir(&trash).map_err(failed).inspect_err(|_| slot.tidy(root))?;
        Ok(slot)
    }

    /// Moves a session in.
    pub(super) fn take_in(
        &self,
        root: &Root,
        id: &SessionId,
        place: &Place,
    ) -> Result<(), IoFailure> {
        let project = self.path.join(&place.project_name);
        let from = place.dir.path();
        let failed = |source| io_failure(id, "move to the trash", from, explain(source));
        // Durable before the move, or a power cut could take away what the session was moved into.
        root.fs
            .create_dir(&project)
            .and_then(|()| root.fs.sync_dir(&self.path))
            .and_then(|()| root.fs.rename_dir(from, &project.join(place.name())))
            .map_err(failed)?;
        let moved = "make durable that it was moved to the trash, from";
        root.fs
            .sync_dir(&project)
            .and_then(|()| root.fs.sync_dir(&place.project))
            .map_err(|source| io_failure(id, moved, from, source))
    }

    /// The sessions in it.
    pub(super) fn places(&self, root: &Root) -> Result<Vec<Place>, IoFailure> {
        let fs = &*root.fs;
        let mut places = Vec::new();
        let projects = plain_directories(fs, &self.path);
        for project_name in projects.map_err(|source| cannot("read", &self.path, source))? {
            let project = self.path.join(&project_name);
            let sessions = plain_directories(fs, &project);
            for session in sessions.map_err(|source| cannot("read", &project, source))? {
                if session.to_str().and_then(decode_id).is_some() {
                    let dir = SessionDir::at(project.join(session));
                    let (project, project_name) = (project.clone(), project_name.clone());
                    places.push(Place { project, project_name, dir });
                }
            }
        }
        Ok(places)
    }

    /// Removes what was on its way out when something ended half way; whether there was anything.
    pub(super) fn sweep(&self, root: &Root) -> io::Result<bool> {
        let mut swept = false;
        for project in plain_directories(&*root.fs, &self.path)? {
            let project = self.path.join(project);
            for name in plain_directories(&*root.fs, &project)? {
                if name.to_str().is_some_and(|name| name.starts_with(LEAVING)) {
                    remove_tree(&*root.fs, &project.join(name))?;
                    swept = true;
                }
            }
        }
        Ok(swept)
    }

    /// Removes the slot's own directories where they are empty. What stays is in nobody's way.
    pub(super) fn tidy(&self, root: &Root) {
        for project in plain_directories(&*root.fs, &self.path).unwrap_or_default() {
            let _ = root.fs.remove_dir(&self.path.join(project));
        }
        let _ = root.fs.remove_dir(&self.path);
    }
}

/// Every deletion that the trash still holds something of.
pub(super) fn slots(root: &Root) -> Result<Vec<Slot>, IoFailure> {
    let trash = root.layout.trash();
    let entries = match root.fs.stat(&trash) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => Err(source),
        Ok(_) => check_trash(root, &trash).and_then(|()| plain_directories(&*root.fs, &trash)),
    };
    let entries = entries.map_err(|source| cannot("read", &trash, source))?;
    let slots = entries.into_iter().filter_map(|name| {
        let deleted_at: i64 = name.to_str()?.parse().ok()?;
        let canonical = deleted_at >= 0 && name == deleted_at.to_string().as_str();
        canonical.then(|| Slot { path: trash.join(&name), deleted_at })
    });
    Ok(slots.collect())
}

/// Every session in the trash.
pub(super) fn held(root: &Root) -> Result<Vec<(Slot, Place)>, IoFailure> {
    let mut held = Vec::new();
    for slot in slots(root)? {
        held.extend(slot.places(root)?.into_iter().map(|place| (slot.clone(), place)));
    }
    Ok(held)
}

/// Removes a directory and what is in it. What another process removes meanwhile is gone as well.
pub(super) fn remove_tree(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    for entry in gone_or(fs.read_dir(path))?.unwrap_or_default() {
        let path = path.join(entry.name);
        match entry.kind {
            EntryKind::Dir => remove_tree(fs, &path)?,
            // A link goes, and what it leads to stays.
            EntryKind::File | EntryKind::Other => drop(gone_or(fs.unlink(&path))?),
        }
    }
    gone_or(fs.remove_dir(path)).map(drop)
}

fn gone_or<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

pub(super) fn leaving_name() -> String {
    format!("{LEAVING}{:016x}", RandomState::new().hash_one(()))
}

/// The trash must be ours, and in the root: through a link, sessions would go who knows where.
fn check_trash(root: &Root, trash: &Path) -> io::Result<()> {
    let name = trash.file_name().unwrap_or_default();
    let problem = match entry_kind(&*root.fs, root.layout.root(), name)? {
        Some(EntryKind::Other) => "it is a symbolic link; remove the link",
        Some(EntryKind::File) => "it is a file; move it away",
        Some(EntryKind::Dir) | None if root.fs.stat(trash)?.mode & WRITABLE_BY_OTHERS != 0 => {
            "others than its owner may write to it; run `chmod go-w` on it"
        }
        Some(EntryKind::Dir) | None => return Ok(()),
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

/// What an entry of a directory is, links not followed; `None` when there is none of this name.
fn entry_kind(fs: &dyn Fs, dir: &Path, name: &OsStr) -> io::Result<Option<EntryKind>> {
    let entries = fs.read_dir(dir)?;
    Ok(entries.into_iter().find(|entry| entry.name == name).map(|entry| entry.kind))
}

/// The directories in a directory, links to some left out; none if it is not there.
fn plain_directories(fs: &dyn Fs, path: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs.read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let directories = entries.into_iter().filter(|entry| entry.kind == EntryKind::Dir);
    Ok(directories.map(|entry| entry.name).collect())
}

fn explain(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::CrossesDevices {
        let problem = "it is on another file system than the trash; move or remove it by hand";
        return io::Error::new(error.kind(), problem);
    }
    error
}

pub(super) fn cannot(doing: &str, path: &Path, source: io::Error) -> IoFailure {
    IoFailure { context: format!("cannot {doing} {}", path.display()), source }
}
