//! One line a request: ids and flags, never content, paths or tokens.
//!
//! A body whose length nobody knows beforehand is a stream, and gets a second line at its end.
//! Both lines, and the answer's `x-request-id`, carry the same random id.

use std::{sync::Arc, time::Instant};

use axum::{
    body::{Body, HttpBody as _},
    http::{HeaderName, HeaderValue, Method, Response, StatusCode},
};
use tracing::Span;

use super::{
    ending::{Ending, Watched},
    route::Route,
};
use crate::metrics::{InFlight, Metrics, Outcome};

/// The header that names the request as the log does.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the log says about one request, filled in while it is answered.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the line, and no state")]
pub(crate) struct RequestLog {
    metrics: Arc<Metrics>,
    request: Arc<str>,
    in_flight: Option<InFlight>,
    started: Instant,
    method: &'static str,
    class: &'static str,
    route: &'static str,
    is_detail: bool,
    outcome: Option<(StatusCode, Option<u64>)>,
    /// The session asked for.
    pub(crate) session: Option<String>,
    /// The message asked for.
    pub(crate) message: Option<String>,
    /// Which source answered.
    pub(crate) source: Option<&'static str>,
    /// What went wrong, by its fixed name.
    pub(crate) kind: Option<&'static str>,
    /// Whether a reconciling round was started.
    pub(crate) has_anchor: bool,
    /// Whether one was gone on with.
    pub(crate) has_continuation: bool,
    /// Whether the diff of one file was asked for.
    pub(crate) has_file: bool,
    /// Whether older turns were asked for.
    pub(crate) has_before: bool,
    /// Whether a directory was named.
    pub(crate) has_directory: bool,
}

impl RequestLog {
    /// Starts the clock.
    pub(crate) fn start(method: &Method, metrics: &Arc<Metrics>) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            request: random_id(),
            in_flight: None,
            started: Instant::now(),
            method: name(method),
            class: class(method),
            route: "unknown",
            is_detail: false,
            outcome: None,
            session: None,
            message: None,
            source: None,
            kind: None,
            has_anchor: false,
            has_continuation: false,
            has_file: false,
            has_before: false,
            has_directory: false,
        }
    }

    /// What other lines that are written on behalf of the request are marked with.
    pub(crate) fn span(&self) -> Span {
        tracing::info_span!("request", id = &*self.request)
    }

    /// Names the route, by its fixed name. A page asks for its files by the dozen, and monitors ask
    /// every few seconds, so those are told of only to who looks for details.
    pub(crate) fn route(&mut self, route: &Route) {
        self.route = route.label();
        self.is_detail = matches!(route, Route::Asset(_) | Route::Health | Route::Metrics);
        self.in_flight = Some(self.metrics.requests.begin(self.route));
    }

    /// Says that answering broke off.
    pub(crate) fn panicked(&self) {
        let session = self.session.as_deref();
        tracing::error!(route = self.route, session, "a handler panicked, please report this");
    }

    /// Stops the clock and writes the line. The answer leaves with the id of the request, and its
    /// body is counted on its way out.
    pub(crate) fn finish(mut self, mut response: Response<Body>) -> Response<Body> {
        // Before compression.
        let bytes = response.body().size_hint().exact();
        self.outcome = Some((response.status(), bytes));
        if let Ok(id) = HeaderValue::from_str(&self.request) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        let is_stream = bytes.is_none() && self.method != "HEAD";
        let ending = is_stream.then(|| Ending {
            request: Arc::clone(&self.request),
            route: self.route,
            started: self.started,
        });
        let in_flight = self.in_flight.take();
        response.map(|body| Body::new(Watched::new(body, in_flight, ending)))
    }
}

/// A request whose client left is dropped before it is answered, and its line is written all the
/// same.
impl Drop for RequestLog {
    fn drop(&mut self) {
        let (status, bytes) = self.outcome.map_or((499, None), |(s, bytes)| (s.as_u16(), bytes));
        let elapsed = self.started.elapsed();
        let status_class = self.outcome.map_or("aborted", |(status, _)| status_class(status));
        let outcome = Outcome { route: self.route, method: self.class, status: status_class };
        self.metrics.requests.answered(outcome, elapsed, self.kind);
        let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let session = self.session.as_ref().map(tracing::field::debug);
        let message = self.message.as_ref().map(tracing::field::debug);
        // A field without a value is left out.
        let flag = |is_set: bool| is_set.then_some(true);
        let (has_before, has_directory) = (flag(self.has_before), flag(self.has_directory));
        let (has_anchor, has_continuation) = (flag(self.has_anchor), flag(self.has_continuation));
        let has_file = flag(self.has_file);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    request = &*self.request,
                    method = self.method,
                    route = self.route,
                    status,
                    ms,
                    bytes,
                    session,
                    message_id = message,
                    source = self.source,
                    kind = self.kind,
                    has_anchor,
                    has_continuation,
                    has_file,
                    has_before,
                    has_directory,
                    "request"
                )
            };
        }
        match status {
            500 => line!(error),
            // What is turned off was turned off on purpose.
            501 => line!(info),
            502.. => line!(warn),
            _ if self.is_detail => line!(debug),
            _ => line!(info),
        }
    }
}

/// Sixteen hexadecimal digits that say nothing.
fn random_id() -> Arc<str> {
    let mut bytes = [0; 8];
    // Without random numbers requests are not told apart, and are answered.
    let _ = getrandom::fill(&mut bytes);
    format!("{:016x}", u64::from_ne_bytes(bytes)).into()
}

fn class(method: &Method) -> &'static str {
    match *method {
        Method::GET | Method::HEAD => "read",
        Method::OPTIONS => "preflight",
        _ => "write",
    }
}

fn status_class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        ..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500.. => "5xx",
    }
}

/// The method, if it is one of the usual ones: any other is the client's own text.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
