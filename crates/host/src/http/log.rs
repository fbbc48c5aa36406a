//! One line a request: ids and flags, never content, paths or tokens.

use std::time::Instant;

use axum::http::{Method, StatusCode};

use super::route::Route;

/// What the log says about one request, filled in while it is answered.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the line, and no state")]
pub(crate) struct RequestLog {
    started: Instant,
    method: &'static str,
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
    pub(crate) fn start(method: &Method) -> Self {
        Self {
            started: Instant::now(),
            method: name(method),
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

    /// Names the route, by its fixed name. A page asks for its files by the dozen, so those are
    /// told of only to who looks for details.
    pub(crate) fn route(&mut self, route: &Route) {
        self.route = route.label();
        self.is_detail = matches!(route, Route::Asset(_));
    }

    /// Says that answering broke off.
    pub(crate) fn panicked(&self) {
        let session = self.session.as_deref();
        tracing::error!(route = self.route, session, "a handler panicked, please report this");
    }

    /// Stops the clock and writes the line. `bytes` is the length of the body, before compression.
    pub(crate) fn finish(mut self, status: StatusCode, bytes: Option<u64>) {
        self.outcome = Some((status, bytes));
    }
}

/// A request whose client left is dropped before it is answered, and its line is written all the
/// same.
impl Drop for RequestLog {
    fn drop(&mut self) {
        let (status, bytes) = self.outcome.map_or((499, None), |(s, bytes)| (s.as_u16(), bytes));
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
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
        if self.is_detail {
            line!(debug);
        } else {
            line!(info);
        }
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
