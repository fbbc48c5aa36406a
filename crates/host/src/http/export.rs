//! A session as a ZIP archive.

use std::sync::Arc;

use axum::{body::Body, http::Response};

use super::{Asked, log::RequestLog};
use crate::{failure::Failure, host::Host};

#[expect(clippy::unused_async, reason = "will wait")]
pub(super) async fn answer(
    host: &Arc<Host>,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let _ = host;
    let _ = asked;
    let _ = log;
    Err(Failure::of_kind("no_route"))
}
