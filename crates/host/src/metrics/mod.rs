//! What a host counts, for whoever watches it.
//!
//! Every host has a registry of its own, so that two of them in one process do not count for each
//! other. What is counted as it happens is in [`Metrics`]; what is a state rather than a count is
//! read when someone asks ([`Reading`]), and costs nothing in between.
//!
//! A label is a `&'static str` throughout: a word of the program. No id, path, address or text of
//! a client can become one, and how many series there are is bounded by the program.

mod events;
mod pages;
mod process;
mod requests;
mod upstream;

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::{
        counter::ConstCounter,
        family::Family,
        gauge::{ConstGauge, Gauge},
        info::Info,
    },
    registry::{Registry, Unit},
};

pub(crate) use self::{
    events::{bytes_of, readings as events},
    pages::Pages,
    requests::{InFlight, Outcome, Requests},
    upstream::UpstreamCalls,
};

/// The media type of [`Metrics::render`].
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// One label of a series: its name and its value.
pub(crate) type Label = (&'static str, &'static str);

/// The counts of one host.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    started: SystemTime,
    /// Requests and their answers.
    pub(crate) requests: Requests,
    /// Pages of transcripts.
    pub(crate) pages: Pages,
    /// What was asked of the upstream.
    pub(crate) upstream: Arc<UpstreamCalls>,
}

/// A number that is read when someone asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// Its name, without unit and suffix.
    pub(crate) name: &'static str,
    /// What it is, in one sentence without its full stop.
    pub(crate) help: &'static str,
    /// What it is counted in; `None` for things.
    pub(crate) unit: Option<Unit>,
    /// The number.
    pub(crate) value: Value,
}

/// What kind of number a [`Reading`] is.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// One that only grows.
    Count(u64),
    /// One that goes up and down.
    State(f64),
    /// Several of those, told apart by a label.
    States(&'static str, Vec<(&'static str, i64)>),
}

impl Default for Metrics {
    /// Nothing counted yet.
    fn default() -> Self {
        let mut registry = Registry::with_prefix("turnkeep");
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The build that is running", version);
        Self {
            started: SystemTime::now(),
            requests: Requests::register(&mut registry),
            pages: Pages::register(&mut registry),
            upstream: Arc::new(UpstreamCalls::register(&mut registry)),
            registry,
        }
    }
}

impl Metrics {
    /// Everything as `OpenMetrics` text, these readings included.
    pub(crate) fn render(&self, readings: Vec<Reading>) -> String {
        let mut now = Registry::with_prefix("turnkeep");
        for reading in readings {
            reading.register(&mut now);
        }
        let mut process = Registry::with_prefix("process");
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        for reading in process::read(started.as_secs_f64()) {
            reading.register(&mut process);
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        for registry in [&self.registry, &now, &process] {
            let _ = encode_registry(&mut text, registry);
        }
        let _ = encode_eof(&mut text);
        text
    }
}

impl Reading {
    fn register(self, registry: &mut Registry) {
        match (self.value, self.unit) {
            (Value::Count(count), None) => {
                registry.register(self.name, self.help, ConstCounter::new(count));
            }
            (Value::Count(count), Some(unit)) => {
                let count = ConstCounter::new(count);
                registry.register_with_unit(self.name, self.help, unit, count);
            }
            (Value::State(state), None) => {
                registry.register(self.name, self.help, ConstGauge::new(state));
            }
            (Value::State(state), Some(unit)) => {
                registry.register_with_unit(self.name, self.help, unit, ConstGauge::new(state));
            }
            (Value::States(label, states), _) => {
                let family = Family::<[Label; 1], Gauge>::default();
                for (value, state) in states {
                    family.get_or_create(&[(label, value)]).set(state);
                }
                registry.register(self.name, self.help, family);
            }
        }
    }
}

#[cfg(test)]
mod tests;
