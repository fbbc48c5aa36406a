//! `GET /metrics`: what the host counts, in the text that monitoring systems read.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, Response, header},
};

use crate::{failure::Failure, host::Host, metrics::MEDIA_TYPE};

/// Answers with every number there is.
pub(super) async fn answer(host: &Arc<Host>) -> Result<Response<Body>, Failure> {
    let host = Arc::clone(host);
    // The process is read from files, which are no files of a disk but may be slow all the same.
    let text = tokio::task::spawn_blocking(move || host.metrics_text());
    let text = text.await.map_err(|_| Failure::internal())?;
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
