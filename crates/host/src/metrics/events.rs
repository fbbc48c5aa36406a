//! The event channels, as their hub counts them.

use prometheus_client::registry::Unit;

use super::{Reading, Value};
use crate::events::HubStats;

/// What a hub has counted so far, and how it is now.
pub(crate) fn readings(stats: &HubStats) -> Vec<Reading> {
    let clients =
        vec![("sse", signed(stats.sse_clients)), ("socket", signed(stats.socket_clients))];
    let count = |name, help, count| Reading { name, help, unit: None, value: Value::Count(count) };
    let bytes = |name, help, bytes| Reading {
        name,
        help,
        unit: Some(Unit::Bytes),
        value: Value::State(bytes_of(bytes)),
    };
    vec![
        Reading {
            name: "event_clients",
            help: "Clients of the event channels, by kind",
            unit: None,
            value: Value::States("kind", clients),
        },
        count("events", "Events that were published", stats.events),
        bytes("event_replay", "Events kept for clients that come back", stats.replay_bytes),
        bytes("event_queue", "Events that wait for clients, over all clients", stats.queued_bytes),
        count("event_resets", "Clients told that they may have missed events", stats.resets),
        count("event_clients_too_slow", "Clients dropped as too slow", stats.clients_too_slow),
        count(
            "event_upstream_connects",
            "Times the upstream's events began",
            stats.upstream_connects,
        ),
        count(
            "event_upstream_stalls",
            "Times the upstream's events were given up since nothing came",
            stats.upstream_stalls,
        ),
        count(
            "event_upstream_skipped",
            "Pieces of the upstream's events that were too large, or no events",
            stats.upstream_skipped,
        ),
    ]
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// To the kibibyte: whole numbers of bytes need not fit a float.
pub(crate) fn bytes_of(bytes: u64) -> f64 {
    match u32::try_from(bytes) {
        Ok(exact) => f64::from(exact),
        Err(_) => u32::try_from(bytes >> 10).map_or(f64::MAX, |kib| f64::from(kib) * 1024.0),
    }
}
