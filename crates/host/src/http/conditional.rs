//! Bodies that a client may already have.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, StatusCode, header},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use sha1::{Digest as _, Sha1};

use super::pieces::Pieces;
use crate::blocking::off_the_workers;

/// The media type of every JSON body.
pub(crate) const JSON: &str = "application/json; charset=utf-8";

/// Answers with `body`, or with 304 when the client says that it has it already.
///
/// The tag is the one clients of the older host hold, so that their copies stay good: the body's
/// length in hex and the first 27 characters of the base64 of its SHA-1. It is weak, since the
/// body may leave compressed.
pub(crate) fn ok(request: &HeaderMap, media_type: &'static str, body: Bytes) -> Response<Body> {
    let tag = entity_tag([&body]);
    answer(request, media_type, &tag, || Body::from(body))
}

/// The same with JSON in pieces, which may be large.
pub(crate) async fn in_pieces(request: &HeaderMap, pieces: Vec<String>) -> Response<Body> {
    let bytes = pieces.iter().map(String::len).sum();
    let tagged = off_the_workers(bytes, || (entity_tag(&pieces), pieces));
    let (tag, pieces) = tagged.await;
    answer(request, JSON, &tag, || Body::new(Pieces::from(pieces)))
}

fn answer(
    request: &HeaderMap,
    media_type: &'static str,
    tag: &str,
    body: impl FnOnce() -> Body,
) -> Response<Body> {
    let mut response = if is_fresh(request, tag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let mut response = Response::new(body());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        response
    };
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

fn entity_tag(pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let (mut digest, mut length) = (Sha1::new(), 0);
    for piece in pieces {
        digest.update(piece.as_ref());
        length += piece.as_ref().len();
    }
    let digest = STANDARD.encode(digest.finalize());
    format!("W/\"{length:x}-{}\"", digest.get(..27).unwrap_or_default())
}

/// Whether the client's copy is the current one. `Cache-Control: no-cache` asks for a new one in
/// any case.
fn is_fresh(request: &HeaderMap, tag: &str) -> bool {
    let forced = tokens(request, &header::CACHE_CONTROL)
        .any(|directive| directive.eq_ignore_ascii_case("no-cache"));
    let strong = tag.trim_start_matches("W/");
    let held = tokens(request, &header::IF_NONE_MATCH)
        .any(|candidate| candidate == "*" || candidate.trim_start_matches("W/") == strong);
    held && !forced
}

/// The comma-separated parts of every header of this name.
fn tokens<'a>(
    headers: &'a HeaderMap,
    name: &header::HeaderName,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
#[path = "conditional_tests.rs"]
mod tests;
