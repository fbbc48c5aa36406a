//! The store in memory, through the contract.

use std::sync::Arc;

use turnkeep_store::{
    SessionStore,
    contract::{Backend, live::Failing},
    contract_suite, live_suite,
    memory::{Disk, MemoryStore},
};

struct Memory(Disk);

impl Backend for Memory {
    fn empty() -> Self {
        Self(Disk::new())
    }

    fn instance(&self) -> Arc<dyn SessionStore> {
        Arc::new(MemoryStore::new(&self.0))
    }
}

impl Failing for Memory {
    fn set_failing(&self, failing: bool) {
        self.0.set_full(failing);
    }
}

contract_suite!(memory: Memory);
live_suite!(memory_live: Memory);
