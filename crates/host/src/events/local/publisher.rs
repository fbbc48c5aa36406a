//! The way of events from stored sessions to the hub.

use std::{sync::Arc, time::Duration};

use turnkeep_log::SessionHeader;
use turnkeep_turns::fold::Change;

use super::ids::EventIds;
use crate::events::{Hub, Origin, Published};

/// How many bytes are published in one go. The hub takes a client for slow that has many megabytes
/// waiting, and none could take a long stretch of a log that is published without a breath.
const GO_BYTES: usize = 512 << 10;

/// How long a breath is.
const BREATH: Duration = Duration::from_millis(4);

/// Publishes what happens in stored sessions.
pub(super) struct Publisher<'a> {
    pub(super) hub: &'a Arc<Hub>,
    ids: EventIds,
    /// How many bytes were published since the last breath.
    bytes: usize,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(hub: &'a Arc<Hub>) -> Self {
        Self { hub, ids: EventIds::new(), bytes: 0 }
    }

    /// Publishes these events of a session, in order.
    pub(super) async fn send(&mut self, header: &SessionHeader, changes: Vec<Change>) {
        for change in changes {
            let payload = change.payload(&self.ids.next());
            self.bytes += payload.len();
            self.hub.publish(Published {
                directory: header.cwd.clone(),
                project: None,
                payload,
                origin: Origin::Store,
            });
            if self.bytes >= GO_BYTES {
                self.bytes = 0;
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}
