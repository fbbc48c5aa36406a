//! Events over SSE.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::{Asked, log::RequestLog, route::Channel};
use crate::{failure::Failure, host::Host};

#[expect(clippy::unused_async, reason = "will wait")]
pub(super) async fn stream(
    host: &Arc<Host>,
    channel: Channel,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let _ = host;
    let _ = channel;
    let _ = asked;
    let _ = log;
    Err(Failure::of_kind("no_route"))
}
