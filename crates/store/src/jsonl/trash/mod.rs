//! Deleting sessions: the trash below the root.
//!
//! A deletion moves the session's whole directory, by one rename, to a directory that was made for
//! it and synced before: at any moment the session is in one of the two places, whole. Whoever
//! moves something in or out of the trash, or removes it, holds the session's lock meanwhile, which
//! lies in the directory and moves with it.

mod slot;

use std::io;

use turnkeep_log::SessionId;

use self::slot::{Place, Slot, cannot, held, leaving_name, remove_tree, slots};
use super::{
    discover::{self, Contents},
    failure::{LogFailure, Subject, io_failure},
    fs::EntryKind,
    layout::{SessionDir, decode_id, encode_id},
    lock::Lock,
    root::Root,
    snapshot,
    writer::Registry,
};
use crate::{
    error::{
        AlreadyExists, AlreadyOwned, DeleteError, NotFound, NotInTrash, RestoreError, TrashError,
    },
    seam::Cancel,
    shell::{check, now},
    trash::{Deleted, Emptied, Emptying, Trashed},
};

/// For how long a deletion may take to move something into the place that it has made, in
/// milliseconds.
const SETTLED_MS: i64 = 60_000;

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
            Ok(Some(lock)) => {
                // Unless another process has moved it away, and a third one began anew.
                if holds_a_log(root, id, &place)? {
                    places.push((place, lock));
                }
            }
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

fn holds_a_log(root: &Root, id: &SessionId, place: &Place) -> Result<bool, LogFailure> {
    let contents = Contents::of(&*root.fs, place.dir.path());
    let contents =
        contents.map_err(|source| io_failure(id, "look into", place.dir.path(), source))?;
    Ok(!contents.is_empty())
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
        let places = slot.places(root)?;
        // An empty one that is young belongs to a deletion that is on its way.
        let is_done = !places.is_empty() || slot.deleted_at < now().saturating_sub(SETTLED_MS);
        for place in places {
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
        let swept = slot.sweep(root);
        let swept = swept.map_err(|source| cannot("remove what is left in", &slot.path, source))?;
        if is_done || swept {
            slot.tidy(root);
        }
    }
    Ok(emptied)
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

/// Whether a directory cannot be moved to where there is one already.
fn is_in_the_way(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}
