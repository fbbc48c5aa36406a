//! What is done with the rows: each operation is one transaction.

use std::collections::HashSet;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, named_params, params};
use turnkeep_log::json::{Json, Kind};

use super::{
    database::Database,
    entry::{Completeness, Entry, Record},
    request::{Budget, Generation, Scope},
};

const IN_SCOPE: &str = "transport = :transport AND generation = :generation AND directory = :directory \
     AND session_id = :session";

const RECORDS: &str = "
SELECT idx.message_id, idx.created_at, idx.content_hash, idx.byte_size, idx.last_accessed_at,
  content.info_json, content.parts_json
FROM transcript_cache_index AS idx
JOIN transcript_cache_content AS content
  USING (transport, generation, directory, session_id, message_id)
WHERE idx.transport = :transport AND idx.generation = :generation
  AND idx.directory = :directory AND idx.session_id = :session";

const PUT_INDEX: &str = "
INSERT INTO transcript_cache_index
  (transport, generation, directory, session_id, message_id, created_at, content_hash,
   completeness, byte_size, last_accessed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT DO UPDATE SET
  created_at = excluded.created_at, content_hash = excluded.content_hash,
  completeness = excluded.completeness, byte_size = excluded.byte_size,
  last_accessed_at = excluded.last_accessed_at";

const PUT_CONTENT: &str = "
INSERT INTO transcript_cache_content
  (transport, generation, directory, session_id, message_id, info_json, parts_json,
   part_completeness_json)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO UPDATE SET
  info_json = excluded.info_json, parts_json = excluded.parts_json,
  part_completeness_json = excluded.part_completeness_json";

/// What became of a message that was to be kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It is kept.
    Written(Record),
    /// It is kept already, and counts as asked for.
    Unchanged(Record),
    /// More of it is kept already.
    SlimDowngrade(Record),
    /// It may still change.
    NotSettled,
}

/// What making room came to, in bytes as rows count theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) rows: u64,
    pub(crate) freed_bytes: i64,
    pub(crate) remaining_bytes: i64,
}

impl Database {
    /// The messages of a session, in their order. All of them count as asked for.
    pub(super) fn session(&mut self, scope: &Scope) -> rusqlite::Result<Vec<Record>> {
        let accessed = self.access();
        let transaction = self.begin()?;
        let touch =
            format!("UPDATE transcript_cache_index SET last_accessed_at = :at WHERE {IN_SCOPE}");
        transaction.prepare_cached(&touch)?.execute(named_params! {
            ":at": accessed,
            ":transport": scope.transport,
            ":generation": scope.generation,
            ":directory": scope.directory,
            ":session": scope.session,
        })?;
        let records = {
            let ordered = format!("{RECORDS} ORDER BY idx.created_at, idx.message_id");
            let mut statement = transaction.prepare_cached(&ordered)?;
            let rows = statement.query_map(
                named_params! {
                    ":transport": scope.transport,
                    ":generation": scope.generation,
                    ":directory": scope.directory,
                    ":session": scope.session,
                },
                |row| Ok(record(row)),
            )?;
            rows.filter_map(Result::transpose).collect::<Result<_, _>>()?
        };
        transaction.commit()?;
        Ok(records)
    }

    /// One message, which counts as asked for.
    pub(super) fn message(&mut self, scope: &Scope, id: &str) -> rusqlite::Result<Option<Record>> {
        let accessed = self.access();
        let transaction = self.begin()?;
        let found = find(&transaction, scope, id)?;
        if found.is_some() {
            touch(&transaction, scope, id, accessed)?;
        }
        transaction.commit()?;
        Ok(found.map(|record| Record { accessed, ..record }))
    }

    /// Keeps a message, unless it may still change or nothing would be gained.
    ///
    /// When the file has become as large as it may, what was not asked for longest makes room.
    pub(super) fn put(&mut self, scope: &Scope, entry: Entry) -> rusqlite::Result<Outcome> {
        if !entry.is_settled {
            return Ok(Outcome::NotSettled);
        }
        match self.try_put(scope, &entry) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                let room = i64::try_from(self.most_bytes / 16).unwrap_or(i64::MAX);
                self.free(room.max(entry.bytes.saturating_mul(2)))?;
                self.try_put(scope, &entry)
            }
            done => done,
        }
        .map(|done| done.unwrap_or_else(|accessed| Outcome::Written(entry.into_record(accessed))))
    }

    /// `Err` with the time when it was written.
    fn try_put(&mut self, scope: &Scope, entry: &Entry) -> rusqlite::Result<Result<Outcome, i64>> {
        let accessed = self.access();
        let transaction = self.begin()?;
        if let Some(kept) = find(&transaction, scope, &entry.message)? {
            let would_lose = kept.completeness() == Completeness::Full
                && entry.completeness == Completeness::Slim;
            if would_lose {
                return Ok(Ok(Outcome::SlimDowngrade(kept)));
            }
            if kept.hash == entry.hash {
                touch(&transaction, scope, &entry.message, accessed)?;
                transaction.commit()?;
                return Ok(Ok(Outcome::Unchanged(Record { accessed, ..kept })));
            }
        }
        transaction.prepare_cached(PUT_INDEX)?.execute(params![
            scope.transport,
            scope.generation,
            scope.directory,
            scope.session,
            entry.message,
            entry.created,
            entry.hash,
            entry.completeness.word(),
            entry.bytes,
            accessed,
        ])?;
        transaction.prepare_cached(PUT_CONTENT)?.execute(params![
            scope.transport,
            scope.generation,
            scope.directory,
            scope.session,
            entry.message,
            entry.info,
            entry.parts,
            entry.part_completeness(),
        ])?;
        transaction.commit()?;
        Ok(Err(accessed))
    }

    /// Removes a message; nothing when it is not kept.
    pub(super) fn remove_message(&mut self, scope: &Scope, id: &str) -> rusqlite::Result<()> {
        let remove =
            format!("DELETE FROM transcript_cache_index WHERE {IN_SCOPE} AND message_id = :id");
        self.connection.prepare_cached(&remove)?.execute(named_params! {
            ":transport": scope.transport,
            ":generation": scope.generation,
            ":directory": scope.directory,
            ":session": scope.session,
            ":id": id,
        })?;
        Ok(())
    }

    /// Removes the messages of a session.
    pub(super) fn clear_session(&mut self, scope: &Scope) -> rusqlite::Result<()> {
        let remove = format!("DELETE FROM transcript_cache_index WHERE {IN_SCOPE}");
        self.connection.prepare_cached(&remove)?.execute(named_params! {
            ":transport": scope.transport,
            ":generation": scope.generation,
            ":directory": scope.directory,
            ":session": scope.session,
        })?;
        Ok(())
    }

    /// Removes the messages of every session of a runtime.
    pub(super) fn clear_generation(&mut self, of: &Generation) -> rusqlite::Result<()> {
        let remove = "DELETE FROM transcript_cache_index WHERE transport = ?1 AND generation = ?2";
        let mut remove = self.connection.prepare_cached(remove)?;
        remove.execute(params![of.transport, of.generation])?;
        Ok(())
    }

    /// Removes everything, and gives its room back.
    pub(super) fn clear_all(&mut self) -> rusqlite::Result<()> {
        self.connection.execute("DELETE FROM transcript_cache_index", [])?;
        self.shrink();
        Ok(())
    }

    /// Removes what was not asked for longest until no more than the budget is left. What is
    /// protected stays, even when it is more than that.
    pub(super) fn evict(&mut self, budget: &Budget) -> rusqlite::Result<Evicted> {
        let protect: HashSet<_> = budget.protect.iter().collect();
        let max_bytes = budget.max_bytes.max(0.0);
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
        self.evict_while(|evicted| evicted.remaining_bytes as f64 > max_bytes, &protect)
    }

    /// Removes what was not asked for longest until this many bytes are free.
    fn free(&mut self, bytes: i64) -> rusqlite::Result<Evicted> {
        self.evict_while(|evicted| evicted.freed_bytes < bytes, &HashSet::new())
    }

    fn evict_while(
        &mut self,
        goes_on: impl Fn(&Evicted) -> bool,
        protect: &HashSet<&Scope>,
    ) -> rusqlite::Result<Evicted> {
        let transaction = self.begin()?;
        // What another program wrote may be no numbers, or too large ones.
        let total = "SELECT CAST(total(byte_size) AS INTEGER) FROM transcript_cache_index";
        let remaining_bytes = transaction.query_row(total, [], |row| row.get(0))?;
        let mut evicted = Evicted { remaining_bytes, ..Evicted::default() };
        let mut victims = Vec::new();
        if goes_on(&evicted) {
            let mut statement = transaction.prepare_cached(
                "SELECT rowid, CAST(byte_size AS INTEGER), \
                   CAST(transport AS TEXT), CAST(generation AS INTEGER), \
                   CAST(directory AS TEXT), CAST(session_id AS TEXT) \
                 FROM transcript_cache_index \
                 ORDER BY last_accessed_at, created_at, message_id",
            )?;
            let mut rows = statement.query([])?;
            while goes_on(&evicted)
                && let Some(row) = rows.next()?
            {
                if !protect.is_empty() {
                    let scope = Scope {
                        transport: row.get(2)?,
                        generation: row.get(3)?,
                        directory: row.get(4)?,
                        session: row.get(5)?,
                    };
                    if protect.contains(&scope) {
                        continue;
                    }
                }
                let bytes: i64 = row.get(1)?;
                victims.push(row.get::<_, i64>(0)?);
                evicted.rows += 1;
                evicted.freed_bytes = evicted.freed_bytes.saturating_add(bytes);
                evicted.remaining_bytes = evicted.remaining_bytes.saturating_sub(bytes);
            }
        }
        {
            let remove = "DELETE FROM transcript_cache_index WHERE rowid = ?1";
            let mut remove = transaction.prepare_cached(remove)?;
            for victim in victims {
                remove.execute([victim])?;
            }
        }
        transaction.commit()?;
        Ok(evicted)
    }
}

fn find(connection: &Connection, scope: &Scope, id: &str) -> rusqlite::Result<Option<Record>> {
    let one = format!("{RECORDS} AND idx.message_id = :id");
    let mut statement = connection.prepare_cached(&one)?;
    let found = statement.query_row(
        named_params! {
            ":transport": scope.transport,
            ":generation": scope.generation,
            ":directory": scope.directory,
            ":session": scope.session,
            ":id": id,
        },
        |row| Ok(record(row)),
    );
    found.optional().map(Option::flatten)
}

fn touch(connection: &Connection, scope: &Scope, id: &str, at: i64) -> rusqlite::Result<()> {
    let touch = format!(
        "UPDATE transcript_cache_index SET last_accessed_at = :at \
         WHERE {IN_SCOPE} AND message_id = :id"
    );
    connection.prepare_cached(&touch)?.execute(named_params! {
        ":at": at,
        ":transport": scope.transport,
        ":generation": scope.generation,
        ":directory": scope.directory,
        ":session": scope.session,
        ":id": id,
    })?;
    Ok(())
}

/// Reads a row. One that holds something else than we write there is as good as none: whoever asks
/// for the message gets it from where it came from, and writes it anew.
fn record(row: &Row<'_>) -> Option<Record> {
    let text = |at| row.get::<_, String>(at).ok();
    let record = Record {
        message: text(0)?,
        created: row.get(1).ok()?,
        hash: text(2).filter(|hash| !hash.is_empty())?,
        bytes: row.get(3).ok()?,
        accessed: row.get(4).ok()?,
        info: text(5)?,
        parts: text(6)?,
    };
    let has = |text: &str, kind| Json::parse(text).is_ok_and(|json| json.kind() == kind);
    (has(&record.info, Kind::Object) && has(&record.parts, Kind::Array)).then_some(record)
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
