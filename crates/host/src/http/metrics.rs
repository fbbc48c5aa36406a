//! What the process counts.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use crate::{failure::Failure, host::Host};

#[expect(clippy::unused_async, reason = "will wait")]
pub(super) async fn answer(host: &Arc<Host>) -> Result<Response<Body>, Failure> {
    let _ = host;
    Err(Failure::of_kind("no_route"))
}
