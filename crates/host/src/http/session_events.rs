//! The events of one stored session.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::{Asked, log::RequestLog};
use crate::{failure::Failure, host::Host};

#[expect(clippy::unused_async, reason = "will wait")]
pub(super) async fn read(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let _ = host;
    let _ = id;
    let _ = asked;
    let _ = log;
    Err(Failure::of_kind("no_route"))
}

#[expect(clippy::unused_async, reason = "will wait")]
pub(super) async fn follow(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let _ = host;
    let _ = id;
    let _ = asked;
    let _ = log;
    Err(Failure::of_kind("no_route"))
}
