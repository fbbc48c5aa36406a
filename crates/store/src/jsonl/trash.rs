//! Deleting sessions: the trash below the root.
//!
//! A deletion moves the session's whole directory, by one rename, to a directory that was made for
//! it and synced before: at any moment the session is in one of the two places, whole. Whoever
//! moves something in or out of the trash, or removes it, holds the session's lock meanwhile, which
//! lies in the directory and moves with it.

use std::{
    ffi::{OsStr, OsString},
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
};

use turnkeep_log::SessionId;

use super::{
    discover::{self, Contents},
    failure::{LogFailure, Subject, io_failure},
    fs::{EntryKind, Fs},
    layout::{Artifact, SessionDir, decode_id, encode_id},
    lock::Lock,
    root::{Root, WRITABLE_BY_OTHERS},
    snapshot,
    writer::Registry,
};
use crate::{
    error::{
        AlreadyExists, AlreadyOwned, DeleteError, IoFailure, NotFound, NotInTrash, RestoreError,
        TrashError,
    },
    seam::Cancel,
    shell::{check, deletion_time},
    trash::{Deleted, Emptied, Emptying, Trashed},
};

/// What is on its way out begins with this. No session's directory does: `~` is followed by hex
/// digits there.
const LEAVING: &str = "~leaving-";

/// Moves a session to the trash.
pub(super) fn delete(root: &Root, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError> {
    let not_found = || NotFound { id: id.clone() };
    let found = discover::places(root, id)?;
    if found.is_empty() {
        return Err(not_found().into());
    }
    let mut places = Vec::new();
    for dir in found {
        let place = Place::of(dir).ok_or_else(not_found)?;
        place.refuse_unmovable(root, id)?;
        match Lock::take(&*root.fs, &place.dir.lock()) {
            Ok(Some(lock)) => places.push((place, lock)),
            Ok(None) => return Err(AlreadyOwned { id: id.clone() }.into()),
            // Another process has just moved it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(io_failure(id, "lock", &place.dir.lock(), source).into()),
        }
    }
    if places.is_empty() {
        return Err(not_found().into());
    }
    check(cancel, "delete")?;
    let slot = Slot::make(root, id)?;
    for (place, _lock) in &places {
        slot.take_in(root, id, place).inspect_err(|_| slot.tidy(root))?;
    }
    Ok(Deleted { id: id.clone(), deleted_at: slot.deleted_at })
}

/// What is in the trash, in no order.
pub(super) fn list(
    root: &Root,
    registry: &Registry,
    cancel: &Cancel,
) -> Result<Vec<Trashed>, TrashError> {
    let mut trashed = Vec::new();
    for (slot, place) in held(root)? {
        check(cancel, "trash")?;
        trashed.extend(describe(root, registry, &slot, &place));
    }
    Ok(trashed)
}

/// Moves a session back to where it was.
pub(super) fn restore(
    root: &Root,
    id: &SessionId,
    deleted_at: Option<i64>,
    cancel: &Cancel,
) -> Result<Deleted, RestoreError> {
    if !discover::places(root, id)?.is_empty() {
        return Err(AlreadyExists { id: id.clone() }.into());
    }
    let not_found = || NotInTrash { id: id.clone() };
    let mut held = held(root).map_err(RestoreError::IoFailure)?;
    let wanted = encode_id(id);
    held.retain(|(slot, place)| {
        place.name() == wanted.as_str()
            && deleted_at.is_none_or(|deleted_at| slot.deleted_at == deleted_at)
    });
    let last = held.iter().map(|(slot, _)| slot.deleted_at).max().ok_or_else(not_found)?;
    held.retain(|(slot, _)| slot.deleted_at == last);
    let mut locked = Vec::new();
    for (slot, place) in held {
        match Lock::take(&*root.fs, &place.dir.lock()) {
            Ok(Some(lock)) => locked.push((slot, place, lock)),
            Ok(None) => return Err(AlreadyOwned { id: id.clone() }.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_found().into());
            }
            Err(source) => return Err(io_failure(id, "lock", &place.dir.lock(), source).into()),
        }
    }
    for (_, place, _) in &locked {
        refuse_mixture(root, id, place)?;
    }
    check(cancel, "restore")?;
    for (slot, place, _lock) in &locked {
        put_back(root, id, slot, place)?;
        slot.tidy(root);
    }
    Ok(Deleted { id: id.clone(), deleted_at: last })
}

/// Removes sessions from the trash for good.
pub(super) fn empty(
    root: &Root,
    registry: &Registry,
    which: Emptying,
    cancel: &Cancel,
) -> Result<Emptied, TrashError> {
    let mut emptied = Emptied::default();
    for slot in slots(root)?.into_iter().filter(|slot| which.takes(slot.deleted_at)) {
        for place in slot.places(root)? {
            check(cancel, "empty_trash")?;
            let Some(described) = describe(root, registry, &slot, &place) else { continue };
            match remove(root, &place) {
                Ok(true) => emptied.removed.push(described),
                Ok(false) => emptied.in_use.push(described),
                // Just restored, or removed by another process.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(cannot("remove", place.dir.path(), source).into()),
            }
        }
        slot.sweep(root).map_err(|source| cannot("remove what is left in", &slot.path, source))?;
        slot.tidy(root);
    }
    Ok(emptied)
}

/// A session's directory in a project's.
#[derive(Debug)]
struct Place {
    project: PathBuf,
    project_name: OsString,
    dir: SessionDir,
}

impl Place {
    fn of(dir: SessionDir) -> Option<Self> {
        let project = dir.path().parent()?.to_owned();
        let project_name = project.file_name()?.to_owned();
        Some(Self { project, project_name, dir })
    }

    fn name(&self) -> &OsStr {
        self.dir.path().file_name().unwrap_or_default()
    }

    /// Refuses what would not be a session any more once it was moved.
    fn refuse_unmovable(&self, root: &Root, id: &SessionId) -> Result<(), LogFailure> {
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
struct Slot {
    path: PathBuf,
    deleted_at: i64,
}

impl Slot {
    /// Makes the trash if it is not there, and a new slot in it, durably.
    fn make(root: &Root, id: &SessionId) -> Result<Self, IoFailure> {
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
    fn take_in(&self, root: &Root, id: &SessionId, place: &Place) -> Result<(), IoFailure> {
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
    fn places(&self, root: &Root) -> Result<Vec<Place>, IoFailure> {
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

    /// Removes what was on its way out when something ended half way.
    fn sweep(&self, root: &Root) -> io::Result<()> {
        for project in plain_directories(&*root.fs, &self.path)? {
            let project = self.path.join(project);
            for name in plain_directories(&*root.fs, &project)? {
                if name.to_str().is_some_and(|name| name.starts_with(LEAVING)) {
                    remove_tree(&*root.fs, &project.join(name))?;
                }
            }
        }
        Ok(())
    }

    /// Removes the slot's own directories where they are empty. What stays is in nobody's way.
    fn tidy(&self, root: &Root) {
        for project in plain_directories(&*root.fs, &self.path).unwrap_or_default() {
            let _ = root.fs.remove_dir(&self.path.join(project));
        }
        let _ = root.fs.remove_dir(&self.path);
    }
}

/// Every deletion that the trash still holds something of.
fn slots(root: &Root) -> Result<Vec<Slot>, IoFailure> {
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
fn held(root: &Root) -> Result<Vec<(Slot, Place)>, IoFailure> {
    let mut held = Vec::new();
    for slot in slots(root)? {
        held.extend(slot.places(root)?.into_iter().map(|place| (slot.clone(), place)));
    }
    Ok(held)
}

/// `None` for what is gone since it was found.
fn describe(root: &Root, registry: &Registry, slot: &Slot, place: &Place) -> Option<Trashed> {
    let id = place.name().to_str().and_then(decode_id)?;
    let mut size_bytes = 0;
    for entry in root.fs.read_dir(place.dir.path()).ok()? {
        if entry.kind == EntryKind::File {
            let stat = root.fs.stat(&place.dir.path().join(entry.name));
            size_bytes += stat.map_or(0, |stat| stat.size);
        }
    }
    let head = snapshot::read_head(root, registry, &id, &place.dir);
    let header = head.ok().flatten().and_then(|(head, _)| head.header().ok().flatten());
    let cwd = header.and_then(|header| header.cwd);
    Some(Trashed { id, cwd, deleted_at: slot.deleted_at, size_bytes })
}

/// A root that holds logs of both encodings is refused by other readers as a whole.
fn refuse_mixture(root: &Root, id: &SessionId, place: &Place) -> Result<(), LogFailure> {
    let other = root.encoding.other();
    let cannot_read = |source| io_failure(id, "look into", place.dir.path(), source);
    let contents = Contents::of(&*root.fs, place.dir.path()).map_err(cannot_read)?;
    if contents.logs.contains(&other)
        && discover::holds(root, root.encoding).map_err(cannot_read)?
    {
        let subject = Subject { id, path: &place.dir.log(other) };
        return Err(subject.unsupported(discover::other_encoding(id, other)));
    }
    Ok(())
}

fn put_back(root: &Root, id: &SessionId, slot: &Slot, place: &Place) -> Result<(), RestoreError> {
    let project = root.layout.root().join(&place.project_name);
    let to = SessionDir::at(project.join(place.name()));
    let failed = |source| io_failure(id, "move out of the trash, to", to.path(), source);
    root.make_session_dir(&project).map_err(failed)?;
    match root.fs.rename_dir(place.dir.path(), to.path()) {
        Err(error) if is_in_the_way(&error) => {
            set_aside(root, id, slot, place, &to)?;
            root.fs.rename_dir(place.dir.path(), to.path()).map_err(failed)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(NotInTrash { id: id.clone() }.into());
        }
        renamed => renamed.map_err(failed)?,
    }
    let moved = "make durable that it was moved out of the trash, to";
    root.fs
        .sync_dir(&project)
        .and_then(|()| root.fs.sync_dir(&place.project))
        .map_err(|source| io_failure(id, moved, to.path(), source).into())
}

/// Moves a directory out of the way that is no session: a writer was ended before it stored one.
fn set_aside(
    root: &Root,
    id: &SessionId,
    slot: &Slot,
    place: &Place,
    there: &SessionDir,
) -> Result<(), RestoreError> {
    let failed = |source| io_failure(id, "move out of the way", there.path(), source);
    let lock = Lock::take(&*root.fs, &there.lock()).map_err(failed)?;
    let _lock = lock.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
    if !Contents::of(&*root.fs, there.path()).map_err(failed)?.is_empty() {
        return Err(AlreadyExists { id: id.clone() }.into());
    }
    let aside = slot.path.join(&place.project_name).join(leaving_name());
    Ok(root.fs.rename_dir(there.path(), &aside).map_err(failed)?)
}

/// Removes a session from the trash; whether nobody held it.
fn remove(root: &Root, place: &Place) -> io::Result<bool> {
    let Some(lock) = Lock::take(&*root.fs, &place.dir.lock())? else { return Ok(false) };
    // First its name, durably: what is left of it half way must not be restored.
    let leaving = place.project.join(leaving_name());
    root.fs.rename_dir(place.dir.path(), &leaving)?;
    drop(lock);
    root.fs.sync_dir(&place.project)?;
    remove_tree(&*root.fs, &leaving)?;
    Ok(true)
}

/// Removes a directory and what is in it. What another process removes meanwhile is gone as well.
fn remove_tree(fs: &dyn Fs, path: &Path) -> io::Result<()> {
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

fn leaving_name() -> String {
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

/// Whether a directory cannot be moved to where there is one already.
fn is_in_the_way(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

fn explain(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::CrossesDevices {
        let problem = "it is on another file system than the trash; move or remove it by hand";
        return io::Error::new(error.kind(), problem);
    }
    error
}

fn cannot(doing: &str, path: &Path, source: io::Error) -> IoFailure {
    IoFailure { context: format!("cannot {doing} {}", path.display()), source }
}
