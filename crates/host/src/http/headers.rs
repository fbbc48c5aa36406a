//! Headers that do not depend on the resource.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header},
};

use super::guard;
use crate::{events::EventId, serve::Peer};

/// What the reader may load: its own files, and images that a transcript carries inline. Nothing
/// may frame it, and no script may turn text into markup.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The last event that may be in a response already.
const EVENT_ID: HeaderName = HeaderName::from_static("x-turnkeep-event-id");

const FIXED: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
];

/// A year over HTTPS only, once somebody has come over HTTPS.
const STRICT_TRANSPORT: &str = "max-age=31536000";

/// Whether a browser may be told to use HTTPS with this host from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strict {
    Yes,
    /// It did not come over HTTPS, or it came to a name of the loopback: other servers on the same
    /// machine go by that name as well, and not all of them speak HTTPS.
    No,
}

impl Strict {
    pub(crate) fn of(peer: Peer, uri: &Uri, request: &HeaderMap) -> Self {
        if peer.secure && !guard::names_loopback(uri, request) { Self::Yes } else { Self::No }
    }
}

/// Adds what every response carries, and over HTTPS that it stays so.
pub(crate) fn write(headers: &mut HeaderMap, strict: Strict) {
    for (name, value) in FIXED {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if strict == Strict::Yes {
        let value = HeaderValue::from_static(STRICT_TRANSPORT);
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
}

/// Keeps what only some may see out of shared caches, and what is no answer out of all.
pub(crate) fn keep_private(response: &mut Response<Body>) {
    let is_error = response.status().as_u16() >= 400;
    let value = if is_error { "no-store" } else { "private, no-cache" };
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(value));
}

/// Says which event a client goes on from that has this response: on one without a body as well, for
/// what the client holds is as good as the body would be.
pub(crate) fn dated(mut response: Response<Body>, since: Option<EventId>) -> Response<Body> {
    let since = since.and_then(|since| HeaderValue::try_from(since.to_string()).ok());
    if let Some(since) = since {
        response.headers_mut().insert(EVENT_ID, since);
    }
    response
}

/// Tells a browser what a page of an allowed origin may send. Which origins those are is decided
/// before.
pub(crate) fn preflight(request: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE"),
    );
    if let Some(wanted) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    headers.append(header::VARY, HeaderValue::from_static("Access-Control-Request-Headers"));
    response
}
