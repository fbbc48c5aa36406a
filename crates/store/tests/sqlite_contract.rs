//! The sqlite store, through the contract.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rusqlite::Connection;
use support::database::Database;
use turnkeep_store::{
    SessionStore,
    contract::{Backend, live::Failing},
    contract_suite, live_suite,
    sqlite::{SqliteOptions, SqliteStore},
};

struct Sqlite(Database);

impl Backend for Sqlite {
    fn empty() -> Self {
        Self(Database::new())
    }

    fn instance(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.store())
    }

    fn tear(&self, session: &str) {
        self.0.tear(session);
    }
}

/// A database that another program writes to for longer than anyone waits.
struct Busy(Database, Mutex<Option<Connection>>);

impl Backend for Busy {
    fn empty() -> Self {
        Self(Database::new(), Mutex::default())
    }

    fn instance(&self) -> Arc<dyn SessionStore> {
        let options = SqliteOptions {
            busy_timeout: Duration::from_millis(10),
            ..SqliteOptions::new(self.0.path())
        };
        Arc::new(SqliteStore::open(options).unwrap())
    }
}

impl Failing for Busy {
    fn set_failing(&self, failing: bool) {
        let mut writing = self.1.lock().unwrap();
        *writing = failing.then(|| {
            let connection = self.0.connection();
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            connection
        });
    }
}

contract_suite!(sqlite: Sqlite);
live_suite!(sqlite_live: Busy);
