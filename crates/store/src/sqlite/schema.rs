//! The tables, and telling our databases from others.

use rusqlite::{Connection, Transaction, params};

use super::fault::Fault;

/// `TKLG` in the header of the file, where tools look for the program that a database belongs to.
pub(super) const APPLICATION_ID: i32 = 0x544B_4C47;

/// Which tables these are. Any other version is refused, not converted.
pub(super) const VERSION: i32 = 2;

/// What makes the tables, spelled as it is compared with what a database says of itself.
const TABLES: [(&str, &str); 4] = [
    (
        "store",
        "CREATE TABLE store (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  name TEXT NOT NULL
) STRICT",
    ),
    (
        "sessions",
        "CREATE TABLE sessions (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  header TEXT NOT NULL,
  stored_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT",
    ),
    (
        "live_sessions",
        "CREATE UNIQUE INDEX live_sessions ON sessions (id) WHERE deleted_at IS NULL",
    ),
    (
        "frames",
        "CREATE TABLE frames (
  session INTEGER NOT NULL REFERENCES sessions (key),
  seq INTEGER NOT NULL CHECK (seq >= 0),
  events INTEGER NOT NULL CHECK (events > 0),
  stored_at INTEGER NOT NULL,
  frame BLOB NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT",
    ),
];

/// Makes the tables in an empty database.
pub(super) fn make(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    for (_, table) in TABLES {
        transaction.execute(table, [])?;
    }
    transaction.execute("INSERT INTO store VALUES (1, ?1)", params![name])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)
}

/// Checks that a database is one of ours, as it was made. Returns the store's name, which no other
/// has.
pub(super) fn check(connection: &Connection) -> Result<String, Fault> {
    check_version(connection)?;
    let mut statement = connection.prepare(
        "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let mut objects = statement.query([])?;
    let mut found = 0;
    while let Some(object) = objects.next()? {
        let name: String = object.get(0)?;
        let sql: Option<String> = object.get(1)?;
        if !TABLES.iter().any(|(table, made)| *table == name && sql.as_deref() == Some(made)) {
            return Err(Fault::Refused(format!(
                "its `{name}` is not as this build makes it; restore it, or use another file"
            )));
        }
        found += 1;
    }
    if found < TABLES.len() {
        let problem = "tables are missing; restore it from a copy, or use another file";
        return Err(Fault::Refused(problem.to_owned()));
    }
    let name = connection.query_row("SELECT name FROM store", [], |row| row.get(0))?;
    Ok(name)
}

/// Checks that a database is one of ours, and of this version.
pub(super) fn check_version(connection: &Connection) -> Result<(), Fault> {
    let number = |pragma: &str| -> rusqlite::Result<i32> {
        connection.pragma_query_value(None, pragma, |row| row.get(0))
    };
    if number("application_id")? != APPLICATION_ID {
        let problem = "it belongs to another program; name a file of its own for the sessions";
        return Err(Fault::Refused(problem.to_owned()));
    }
    let version = number("user_version")?;
    if version == VERSION {
        return Ok(());
    }
    let advice = if version > VERSION {
        "it was made by a newer build; upgrade this one"
    } else {
        "this build does not convert it; use the build that made it"
    };
    Err(Fault::Refused(format!("its tables are of version {version}, not {VERSION}: {advice}")))
}
