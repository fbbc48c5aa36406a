//! The jsonl store, through the contract, in both encodings.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::sync::Arc;

use support::{disk::Disk, faulty::FaultyFs};
use turnkeep_store::{
    Durability, SessionStore,
    contract::{Backend, live::Failing},
    contract_suite,
    jsonl::{Encoding, JsonlOptions, JsonlStore},
    live_suite,
};

struct Zstd(Disk);

impl Backend for Zstd {
    fn empty() -> Self {
        Self(Disk::new(Encoding::Zstd))
    }

    fn instance(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.store())
    }

    fn tear(&self, session: &str) {
        let frame = self.0.encode("{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{}}\n");
        self.0.add(session, &frame[..frame.len() - 1]);
    }
}

struct Plain(Disk);

impl Backend for Plain {
    fn empty() -> Self {
        Self(Disk::new(Encoding::None))
    }

    fn instance(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.store())
    }

    fn tear(&self, session: &str) {
        self.0.add(session, b"{\"type\":\"turn/start\",\"seq\":3,\"ti");
    }
}

/// A disk that gets full.
struct Filling<const PLAIN: bool>(Disk, FaultyFs);

impl<const PLAIN: bool> Backend for Filling<PLAIN> {
    fn empty() -> Self {
        let encoding = if PLAIN { Encoding::None } else { Encoding::Zstd };
        Self(Disk::new(encoding), FaultyFs::default())
    }

    fn instance(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.store_on(Arc::new(self.1.clone())))
    }
}

impl<const PLAIN: bool> Failing for Filling<PLAIN> {
    fn set_failing(&self, failing: bool) {
        self.1.set_full(failing);
    }
}

/// One that acknowledges before it syncs. Nobody can tell, as long as the machine runs.
struct Flushing(Disk);

impl Backend for Flushing {
    fn empty() -> Self {
        Self(Disk::new(Encoding::Zstd))
    }

    fn instance(&self) -> Arc<dyn SessionStore> {
        let options = JsonlOptions { durability: Durability::Flush, ..self.0.options() };
        Arc::new(JsonlStore::open(options).unwrap())
    }

    fn tear(&self, session: &str) {
        let frame = self.0.encode("{\"type\":\"turn/start\",\"seq\":3,\"time\":1,\"data\":{}}\n");
        self.0.add(session, &frame[..frame.len() - 1]);
    }
}

contract_suite!(flushing: Flushing);
contract_suite!(zstd: Zstd);
contract_suite!(none: Plain);
live_suite!(zstd_live: Filling<false>);
live_suite!(none_live: Filling<true>);
