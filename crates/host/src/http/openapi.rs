//! The description of the routes.

use axum::{body::Body, http::Response};

use super::Asked;
use crate::failure::Failure;

pub(super) fn answer(asked: &Asked) -> Result<Response<Body>, Failure> {
    let _ = asked;
    Err(Failure::of_kind("no_route"))
}
