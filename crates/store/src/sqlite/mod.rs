//! Sessions in one SQLite database.
//!
//! Behind the feature `sqlite`. `docs/sqlite.md` describes the tables, and why they are safe to
//! append to. In short: a session is a row with its header, and a row for each part of its log,
//! which holds the very frame that a jsonl log would have. Rows of a log are only ever inserted, by
//! whoever holds the kernel's lock on the session, after a look at the last one.
//!
//! | module | what it does |
//! |---|---|
//! | `place` | paths, permissions, making a new database |
//! | `schema` | the tables, and telling our databases from others |
//! | `database` | connections and how they are set up |
//! | `sessions` | finding sessions: what the rows say without their logs |
//! | `reader`, `writer` | reading a log, appending to it |
//! | `trash` | deleting sessions and undoing that |
//! | `inspect` | telling all that is wrong with a log, and reading out what is not |
//! | `store` | what it takes to be a store |

mod database;
mod fault;
mod inspect;
mod options;
mod place;
mod reader;
mod schema;
mod sessions;
mod store;
mod trash;
mod writer;

/// The version of SQLite that is built in.
#[must_use]
pub fn version() -> &'static str {
    rusqlite::version()
}

pub use self::{options::SqliteOptions, store::SqliteStore};
