//! Syncs of many sessions, together.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use super::{registry::Registry, writer::WriteLog, writing::Writing};
use crate::Durability;

/// How many logs are synced at once. The system makes one write of its journal of syncs that wait
/// together; each of them takes a thread, though.
const AT_ONCE: usize = 64;

/// Rounds of syncs that nobody asked for.
///
/// The first event that is accepted without a sync starts a clock. When it has run down, all
/// sessions of the store that have anything to sync are synced, at the same time and each through
/// its own queue, so that a sync meets no append of its session. Then the next event starts the
/// clock again: a store that is not written to has no thread.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    expected: AtomicBool,
}

impl Rounds {
    /// Sees to it that a round begins before long.
    pub(crate) fn expect_one<L: WriteLog>(&self, registry: &Arc<Registry<L>>) {
        if self.expected.swap(true, Ordering::AcqRel) {
            return;
        }
        let waiting = Arc::downgrade(registry);
        let clock = move || {
            thread::sleep(Durability::WINDOW);
            if let Some(registry) = waiting.upgrade() {
                // Before anyone is looked at: who comes later starts the next clock.
                registry.rounds().expected.store(false, Ordering::Release);
                run(&registry);
            }
        };
        // Not a task of the runtime, which would wait for it when it ends.
        let started = thread::Builder::new().name("turnkeep-sync".to_owned()).spawn(clock);
        if let Err(error) = started {
            self.expected.store(false, Ordering::Release);
            tracing::warn!(%error, "no thread to sync what was accepted; the next append tries again");
        }
    }
}

fn run<L: WriteLog>(registry: &Registry<L>) {
    let owners = registry.owners();
    let unsynced = owners.into_iter().filter(|(_, owner)| owner.is_unsynced());
    let handles: Vec<_> = unsynced.filter_map(|(_, owner)| owner.weak_writing()).collect();
    for together in handles.chunks(AT_ONCE) {
        sync_all(together);
    }
}

/// Syncs sessions at the same time; returns when the last one is done.
fn sync_all<L: WriteLog>(handles: &[Weak<Writing<L>>]) {
    let (done, all_done) = mpsc::channel::<()>();
    for handle in handles.iter().filter_map(Weak::upgrade) {
        let done = done.clone();
        handle.sync_unasked(move || {
            let _ = done.send(());
        });
    }
    drop(done);
    // Ends when nobody is left who could send: also when a queue was lost.
    all_done.into_iter().for_each(drop);
}
