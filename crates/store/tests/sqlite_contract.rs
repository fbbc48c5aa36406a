//! The sqlite store, through the contract.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use support::database::Database;
use turnkeep_store::{SessionStore, contract::Backend, contract_suite};

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

contract_suite!(sqlite: Sqlite);
