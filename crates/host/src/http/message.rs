//! `GET /api/session/:id/message/:message`: one message whole, but for the patches in its summary.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use turnkeep_turns::{
    message::{check_session, parse_message},
    query::Param,
};

use super::{Asked, conditional, headers, log::RequestLog};
use crate::{driver::MessageRequest, failure::Failure, host::Host};

/// Answers with the message.
pub(super) async fn answer(
    host: &Arc<Host>,
    session: &str,
    message: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    check_session(session)?;
    log.session = Some(session.to_owned());
    let message = parse_message(Param::One(message))?.to_owned();
    log.message = Some(message.clone());
    let directory = asked.query.directory();
    log.has_directory = directory.is_some();
    let request =
        MessageRequest { message, directory, include_reasoning: asked.query.include_reasoning() };
    let message = host.message(session, &request, |source| log.source = Some(source)).await?;
    let response = conditional::in_pieces(&asked.headers, vec![message.body]).await;
    Ok(headers::dated(response, message.since))
}
