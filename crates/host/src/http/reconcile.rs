//! `GET /api/openchamber/sessions/:id/messages/reconcile`: what happened in a session since a message
//! that the client is sure of.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use turnkeep_turns::{
    query::{Param, check_session},
    reconcile::{ReconcileRequest, ReconcileStart},
};

use super::{Asked, conditional, headers, log::RequestLog};
use crate::{failure::Failure, host::Host};

/// Answers with a page of the round.
pub(super) async fn answer(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    check_session(id)?;
    log.session = Some(id.to_owned());
    let query = &asked.query;
    let param = |key| Param::from_values(query.all(key));
    let start =
        ReconcileStart::parse(param("anchor"), param("continuation")).inspect(
            |start| match start {
                ReconcileStart::Anchor(_) => log.has_anchor = true,
                ReconcileStart::Continuation(_) => log.has_continuation = true,
            },
        )?;
    let request = ReconcileRequest {
        session: id.to_owned(),
        directory: query.directory(),
        reasoning: query.include_reasoning(),
        start,
    };
    log.has_directory = request.directory.is_some();
    let page = host.reconcile(request, |source| log.source = Some(source)).await?;
    let response = conditional::in_pieces(&asked.headers, page.body.into_pieces()).await;
    Ok(headers::dated(response, page.since))
}
