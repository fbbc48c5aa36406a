//! Requests, by what was asked for and how it went.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::Label;

/// From what a lookup takes to the deadline of a page and beyond it.
const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 45.0, 120.0];

/// What was asked for, and how it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Outcome {
    /// The fixed name of the route.
    pub(crate) route: &'static str,
    /// `read`, `write` or `preflight`.
    pub(crate) method: &'static str,
    /// `2xx` and so on; `aborted` when the client left before there was a status.
    pub(crate) status: &'static str,
}

/// What is counted of requests.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    seconds: Family<Outcome, Histogram, fn() -> Histogram>,
    bytes: Family<[Label; 1], Counter>,
    in_flight: Family<[Label; 1], Gauge>,
    failures: Family<[Label; 2], Counter>,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let requests = Self {
            seconds: Family::new_with_constructor(histogram),
            bytes: Family::default(),
            in_flight: Family::default(),
            failures: Family::default(),
        };
        registry.register_with_unit(
            "http_request_duration",
            "Time from a request to the head of its answer, by route, method class and status class",
            Unit::Seconds,
            requests.seconds.clone(),
        );
        registry.register_with_unit(
            "http_response_body",
            "What was sent of bodies, before compression, by route",
            Unit::Bytes,
            requests.bytes.clone(),
        );
        registry.register(
            "http_requests_in_flight",
            "Requests whose answer has not been sent to its end, by route",
            requests.in_flight.clone(),
        );
        registry.register(
            "http_failures",
            "Failures that clients were told of, by route and kind",
            requests.failures.clone(),
        );
        requests
    }

    /// A request was answered, or given up.
    pub(crate) fn answered(
        &self,
        outcome: Outcome,
        after: Duration,
        failure: Option<&'static str>,
    ) {
        self.seconds.get_or_create(&outcome).observe(after.as_secs_f64());
        if let Some(kind) = failure {
            self.failures.get_or_create(&[("route", outcome.route), ("kind", kind)]).inc();
        }
    }

    /// A request for this route is under way until this is dropped.
    pub(crate) fn begin(&self, route: &'static str) -> InFlight {
        let gauge = self.in_flight.get_or_create_owned(&[("route", route)]);
        gauge.inc();
        InFlight { gauge, sent: self.bytes.get_or_create_owned(&[("route", route)]) }
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct InFlight {
    gauge: Gauge,
    sent: Counter,
}

impl InFlight {
    /// So much more of the body was sent.
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.inc_by(bytes as u64);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}
