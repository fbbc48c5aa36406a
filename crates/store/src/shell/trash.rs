//! Deleting sessions and undoing that: the operations of a store.

use std::sync::Arc;

use turnkeep_log::SessionId;

use super::{
    now, on_pool,
    store::{Core, check},
};
use crate::{
    error::{AlreadyExists, AlreadyOwned, DeleteError, RestoreError, TrashError},
    seam::Cancel,
    trash::{self, Deleted, Emptied, Emptying, Trashed},
};

/// What a backend does with deleted sessions, as blocking code.
pub(crate) trait Trash: Core {
    /// Moves a session to the trash that nobody in this store has open to write; others are for
    /// the backend to keep out.
    fn delete(&self, id: &SessionId, cancel: &Cancel) -> Result<Deleted, DeleteError>;

    /// What is in the trash, in no order.
    fn trashed(&self, cancel: &Cancel) -> Result<Vec<Trashed>, TrashError>;

    /// Puts a session back, of which this store has nothing open to write and nothing pending.
    fn restore(
        &self,
        id: &SessionId,
        deleted_at: Option<i64>,
        cancel: &Cancel,
    ) -> Result<Deleted, RestoreError>;

    /// Removes sessions from the trash for good.
    fn empty_trash(&self, which: Emptying, cancel: &Cancel) -> Result<Emptied, TrashError>;
}

/// [`SessionStore::delete`](crate::SessionStore::delete).
pub(crate) async fn delete<C: Trash>(
    core: &Arc<C>,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<Deleted, DeleteError> {
    check(cancel, "delete")?;
    let claim = core.registry().claim(id).ok_or_else(|| AlreadyOwned { id: id.clone() })?;
    let (core, id, cancel) = (Arc::clone(core), id.clone(), cancel.clone());
    on_pool("delete a session", move || {
        let _claim = claim;
        core.delete(&id, &cancel)
    })
    .await?
}

/// [`SessionStore::trash`](crate::SessionStore::trash).
pub(crate) async fn trash<C: Trash>(
    core: &Arc<C>,
    cancel: &Cancel,
) -> Result<Vec<Trashed>, TrashError> {
    check(cancel, "trash")?;
    let (core, cancel) = (Arc::clone(core), cancel.clone());
    let mut trashed = on_pool("list the trash", move || core.trashed(&cancel)).await??;
    trash::sort(&mut trashed);
    Ok(trashed)
}

/// [`SessionStore::restore`](crate::SessionStore::restore).
pub(crate) async fn restore<C: Trash>(
    core: &Arc<C>,
    id: &SessionId,
    deleted_at: Option<i64>,
    cancel: &Cancel,
) -> Result<Deleted, RestoreError> {
    check(cancel, "restore")?;
    let claim = core.registry().claim(id).ok_or_else(|| AlreadyExists { id: id.clone() })?;
    let (core, id, cancel) = (Arc::clone(core), id.clone(), cancel.clone());
    on_pool("restore a session", move || {
        let _claim = claim;
        core.restore(&id, deleted_at, &cancel)
    })
    .await?
}

/// [`SessionStore::empty_trash`](crate::SessionStore::empty_trash).
pub(crate) async fn empty_trash<C: Trash>(
    core: &Arc<C>,
    which: Emptying,
    cancel: &Cancel,
) -> Result<Emptied, TrashError> {
    check(cancel, "empty_trash")?;
    let (core, cancel) = (Arc::clone(core), cancel.clone());
    let mut emptied =
        on_pool("empty the trash", move || core.empty_trash(which, &cancel)).await??;
    trash::sort(&mut emptied.removed);
    trash::sort(&mut emptied.in_use);
    Ok(emptied)
}

/// The time of a deletion: now, and after the last one of the same session.
pub(crate) fn deletion_time(last: Option<i64>) -> i64 {
    last.map_or_else(now, |last| now().max(last.saturating_add(1)))
}
