//! `GET /openapi.json`: the description of the routes.

use axum::{body::Body, http::Response};
use bytes::Bytes;

use super::{Asked, conditional};
use crate::{failure::Failure, openapi};

/// Answers with the document.
#[expect(clippy::unnecessary_wraps, reason = "handlers are of one shape")]
pub(super) fn answer(asked: &Asked) -> Result<Response<Body>, Failure> {
    let text = Bytes::from_static(openapi::text().as_bytes());
    Ok(conditional::ok(&asked.headers, conditional::JSON, text))
}
