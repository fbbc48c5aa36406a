//! The process itself, under the names that every process of a fleet goes by.

use std::fs;

use prometheus_client::registry::Unit;

use super::{Reading, Value};

/// What is known of this process. Where there is no `/proc`, that is when it was started.
pub(super) fn read(started_seconds: f64) -> Vec<Reading> {
    let state = |name, help, unit, state| Reading { name, help, unit, value: Value::State(state) };
    let mut readings = vec![state(
        "start_time",
        "When the host was started, in seconds since the epoch",
        Some(Unit::Seconds),
        started_seconds,
    )];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(bytes) = resident_bytes(&status) {
        readings.push(state("resident_memory", "Memory in use", Some(Unit::Bytes), bytes));
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // The directory itself is open while it is counted.
        let open = open.count().saturating_sub(1);
        readings.push(state("open_fds", "Open files and connections", None, number(open)));
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(most) = open_files_limit(&limits) {
        readings.push(state("max_fds", "How many may be open", None, most));
    }
    readings
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// `VmRSS:   12345 kB`
pub(super) fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// `Max open files            1024                 1048576              files`: the soft limit.
pub(super) fn open_files_limit(limits: &str) -> Option<f64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
