//! Everything else under `/api`, which is the upstream's.

use std::sync::Arc;

use axum::{body::Body, extract::Request, http::Response};

use super::{Asked, log::RequestLog};
use crate::{failure::Failure, host::Host};

#[expect(clippy::unused_async, reason = "will wait")]
pub(super) async fn forward(
    host: &Arc<Host>,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let _ = asked;
    let _ = request;
    let _ = log;
    Err(host.no_such_api())
}

#[expect(clippy::unused_async, reason = "will wait")]
pub(super) async fn messages(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let _ = id;
    let _ = asked;
    let _ = request;
    let _ = log;
    Err(host.no_such_api())
}
