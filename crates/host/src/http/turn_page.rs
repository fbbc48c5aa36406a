//! `GET /api/openchamber/sessions/:id/messages`: the last few turns of a session.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use turnkeep_turns::{
    TurnPageError, TurnQuery,
    query::{Param, check_session, parse_before, parse_scan_limit, parse_turns},
};

use super::{Asked, conditional, headers, log::RequestLog, query::Query};
use crate::{driver::TurnPageRequest, failure::Failure, host::Host};

/// Answers with the page that the query asks for.
pub(super) async fn answer(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    check_session(id)?;
    log.session = Some(id.to_owned());
    let request = read(&asked.query, host.scan_limit())?;
    log.has_before = request.query.before.is_some();
    log.has_directory = request.directory.is_some();
    let page = host.turn_page(id, &request, |source| log.source = Some(source)).await?;
    let response = conditional::in_pieces(&asked.headers, page.body.into_pieces()).await;
    Ok(headers::dated(response, page.since))
}

/// Reads the parameters, in the order in which clients are told of mistakes.
fn read(query: &Query, default_width: usize) -> Result<TurnPageRequest, TurnPageError> {
    let param = |key| Param::from_values(query.all(key));
    let turns = parse_turns(param("turns"))?;
    let before = parse_before(param("before"));
    let directory = query.directory();
    let width = parse_scan_limit(param("scanLimit"), default_width)?;
    let include_reasoning = query.include_reasoning();
    Ok(TurnPageRequest { query: TurnQuery { turns, width, before }, directory, include_reasoning })
}

#[cfg(test)]
#[path = "turn_page_tests.rs"]
mod tests;
