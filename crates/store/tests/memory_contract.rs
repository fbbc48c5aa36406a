//! The store in memory, through the contract.

use std::sync::Arc;

use turnkeep_store::{
    SessionStore,
    contract::Backend,
    contract_suite,
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

contract_suite!(memory: Memory);
