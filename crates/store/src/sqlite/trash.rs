//! Deleting sessions: a time in the session's row, until the trash is emptied.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use turnkeep_log::{SessionHeader, SessionId};

use super::{
    database::{Database, Lent},
    fault::Fault,
    schema,
    sessions::{self, count},
};
use crate::{
    error::{
        AlreadyExists, AlreadyOwned, DeleteError, NotFound, NotInTrash, RestoreError, TrashError,
    },
    seam::Cancel,
    shell::{check, deletion_time},
    trash::{Deleted, Emptied, Emptying, Trashed},
};

/// Marks a session as deleted.
pub(super) fn delete(
    database: &Database,
    id: &SessionId,
    cancel: &Cancel,
) -> Result<Deleted, DeleteError> {
    let failed = |fault: Fault| fault.of(id, "move it to the trash");
    let not_found = || NotFound { id: id.clone() };
    // Before anything is made: an absent session must leave no lock file behind.
    let link = database.lend().map_err(failed)?.ok_or_else(not_found)?;
    sessions::find(&link, id).map_err(|error| failed(error.into()))?.ok_or_else(not_found)?;
    let lock = database.lock(id).map_err(failed)?;
    let _lock = lock.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
    check(cancel, "delete")?;
    let deleted_at = change(database, link, |transaction| {
        let Some(session) = sessions::find(transaction, id)? else { return Ok(None) };
        let last: Option<i64> = transaction
            .prepare_cached("SELECT max(deleted_at) FROM sessions WHERE id = ?1")?
            .query_row([id.as_str()], |row| row.get(0))?;
        let deleted_at = deletion_time(last);
        transaction
            .prepare_cached("UPDATE sessions SET deleted_at = ?2 WHERE key = ?1")?
            .execute(params![session.key, deleted_at])?;
        Ok(Some(deleted_at))
    });
    let deleted_at = deleted_at.map_err(failed)?.ok_or_else(not_found)?;
    Ok(Deleted { id: id.clone(), deleted_at })
}

/// What is in the trash, in no order.
pub(super) fn list(database: &Database) -> Result<Vec<Trashed>, TrashError> {
    let failed = |fault: Fault| fault.io("read the trash");
    let Some(link) = database.lend().map_err(failed)? else { return Ok(Vec::new()) };
    let found = all(&link).map_err(|error| failed(error.into()))?;
    Ok(found.into_iter().map(|(_, trashed)| trashed).collect())
}

/// Takes the mark of a session away again.
pub(super) fn restore(
    database: &Database,
    id: &SessionId,
    deleted_at: Option<i64>,
    cancel: &Cancel,
) -> Result<Deleted, RestoreError> {
    let failed = |fault: Fault| fault.of(id, "move it out of the trash");
    let not_found = || NotInTrash { id: id.clone() };
    let exists = || AlreadyExists { id: id.clone() };
    let link = database.lend().map_err(failed)?.ok_or_else(not_found)?;
    let there = sessions::find(&link, id).map_err(|error| failed(error.into()))?;
    if there.is_some() {
        return Err(exists().into());
    }
    last(&link, id, deleted_at).map_err(|error| failed(error.into()))?.ok_or_else(not_found)?;
    let lock = database.lock(id).map_err(failed)?;
    let _lock = lock.ok_or_else(|| AlreadyOwned { id: id.clone() })?;
    check(cancel, "restore")?;
    let restored = change(database, link, |transaction| {
        if sessions::find(transaction, id)?.is_some() {
            return Ok(Err(RestoreError::from(exists())));
        }
        let Some((key, deleted_at)) = last(transaction, id, deleted_at)? else {
            return Ok(Err(not_found().into()));
        };
        transaction
            .prepare_cached("UPDATE sessions SET deleted_at = NULL WHERE key = ?1")?
            .execute([key])?;
        Ok(Ok(deleted_at))
    });
    let deleted_at = restored.map_err(failed)??;
    Ok(Deleted { id: id.clone(), deleted_at })
}

/// Removes the rows of sessions in the trash.
pub(super) fn empty(
    database: &Database,
    which: Emptying,
    cancel: &Cancel,
) -> Result<Emptied, TrashError> {
    let failed = |fault: Fault| fault.io("empty the trash");
    let mut emptied = Emptied::default();
    let Some(link) = database.lend().map_err(failed)? else { return Ok(emptied) };
    let found = all(&link).map_err(|error| failed(error.into()))?;
    drop(link);
    for (key, trashed) in found.into_iter().filter(|(_, found)| which.takes(found.deleted_at)) {
        check(cancel, "empty_trash")?;
        let Some(link) = database.lend().map_err(failed)? else { break };
        // One at a time, so that others may write in between.
        let removed = change(database, link, |transaction| {
            // Unless it was restored since it was found.
            let is_there = transaction
                .prepare_cached("SELECT 1 FROM sessions WHERE key = ?1 AND deleted_at = ?2")?
                .exists(params![key, trashed.deleted_at])?;
            if is_there {
                transaction
                    .prepare_cached("DELETE FROM frames WHERE session = ?1")?
                    .execute([key])?;
                transaction
                    .prepare_cached("DELETE FROM sessions WHERE key = ?1")?
                    .execute([key])?;
            }
            Ok(is_there)
        });
        if removed.map_err(failed)? {
            emptied.removed.push(trashed);
        }
    }
    Ok(emptied)
}

/// Runs some work as one change of the database, durable when this returns.
fn change<T>(
    database: &Database,
    link: Lent<'_>,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> Result<T, Fault> {
    let _turn = database.turn();
    let transaction = link.begin()?;
    // A newer build may have converted the tables meanwhile.
    schema::check_version(&transaction)?;
    let done = work(&transaction)?;
    match transaction.commit() {
        Ok(()) => Ok(done),
        Err(error) => {
            link.discard();
            Err(error.into())
        }
    }
}

/// The last deletion of a session, or the one at a time.
fn last(
    connection: &Connection,
    id: &SessionId,
    deleted_at: Option<i64>,
) -> rusqlite::Result<Option<(i64, i64)>> {
    connection
        .prepare_cached(
            "SELECT key, deleted_at FROM sessions WHERE id = ?1 AND deleted_at IS NOT NULL AND \
             deleted_at = coalesce(?2, deleted_at) ORDER BY deleted_at DESC LIMIT 1",
        )?
        .query_row(params![id.as_str(), deleted_at], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Every session in the trash, with its key.
fn all(connection: &Connection) -> rusqlite::Result<Vec<(i64, Trashed)>> {
    let trashed = |row: &Row<'_>| {
        let (id, header): (String, String) = (row.get(1)?, row.get(2)?);
        let Some(id) = SessionId::new(&id) else { return Ok(None) };
        let header = SessionHeader::parse(&header, Some(&id)).ok();
        let cwd = header.and_then(|header| header.cwd);
        Ok(Some((
            row.get(0)?,
            Trashed { id, cwd, deleted_at: row.get(3)?, size_bytes: count(row, 4)? },
        )))
    };
    let found: rusqlite::Result<Vec<_>> = connection
        .prepare_cached(
            "SELECT key, id, header, deleted_at, length(CAST(header AS BLOB)) + coalesce((SELECT \
             sum(length(frame)) FROM frames WHERE session = key), 0) FROM sessions WHERE \
             deleted_at IS NOT NULL",
        )?
        .query_map([], trashed)?
        .collect();
    Ok(found?.into_iter().flatten().collect())
}
