//! What was asked of the upstream.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::{Registry, Unit},
};

use super::Label;

/// What is counted of the upstream.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamCalls {
    requests: Counter,
    bytes: Counter,
    probes: Family<[Label; 1], Counter>,
    pages: Family<[Label; 1], Counter>,
    troubles: Family<[Label; 1], Counter>,
    forwarded: Family<[Label; 1], Counter>,
}

impl UpstreamCalls {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let calls = Self {
            requests: Counter::default(),
            bytes: Counter::default(),
            probes: Family::default(),
            pages: Family::default(),
            troubles: Family::default(),
            forwarded: Family::default(),
        };
        registry.register(
            "upstream_requests",
            "Requests for transcripts and lists that were sent to the upstream, probes of its readiness not counted",
            calls.requests.clone(),
        );
        registry.register_with_unit(
            "upstream_body",
            "What was read of its answers",
            Unit::Bytes,
            calls.bytes.clone(),
        );
        registry.register(
            "upstream_probes",
            "Probes of its readiness, by outcome",
            calls.probes.clone(),
        );
        registry.register(
            "upstream_pages",
            "Pages of messages that were asked of it, by purpose",
            calls.pages.clone(),
        );
        registry.register(
            "upstream_troubles",
            "Requests that it did not answer as asked, by what was amiss",
            calls.troubles.clone(),
        );
        registry.register(
            "upstream_forwarded",
            "Requests of clients that were handed on to it, by whether it answered",
            calls.forwarded.clone(),
        );
        calls
    }

    /// A request of a client was handed on, and how that went.
    pub(crate) fn forwarded(&self, outcome: &'static str) {
        self.forwarded.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A request goes out.
    pub(crate) fn request(&self) {
        self.requests.inc();
    }

    /// A body has been read.
    pub(crate) fn body(&self, bytes: usize) {
        self.bytes.inc_by(bytes as u64);
    }

    /// Its readiness was probed.
    pub(crate) fn probe(&self, outcome: &'static str) {
        self.probes.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A page of messages is asked for.
    pub(crate) fn page(&self, purpose: &'static str) {
        self.pages.get_or_create(&[("purpose", purpose)]).inc();
    }

    /// There was no good answer.
    pub(crate) fn trouble(&self, kind: &'static str) {
        self.troubles.get_or_create(&[("kind", kind)]).inc();
    }
}
