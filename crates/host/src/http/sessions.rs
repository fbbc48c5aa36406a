//! `GET /api/turnkeep/sessions` and `GET /api/turnkeep/sessions/:id`.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use serde::Serialize;
use turnkeep_store::SessionState;
use turnkeep_turns::query::check_session;

use super::{Asked, conditional, log::RequestLog, query::Query};
use crate::{
    failure::Failure,
    host::Host,
    listing::{ListCursor, ListRequest},
};

/// How many sessions a page of the list holds when the request does not say.
const DEFAULT_LIMIT: usize = 50;
/// How many it holds at most.
const MAX_LIMIT: usize = 200;

const STATES: [SessionState; 4] =
    [SessionState::Ok, SessionState::Damaged, SessionState::Newer, SessionState::Foreign];

/// Answers with a page of the list.
pub(super) async fn list(host: &Arc<Host>, asked: &Asked) -> Result<Response<Body>, Failure> {
    let request = read(&asked.query)?;
    json(asked, &host.list(&request).await?)
}

/// Answers with what is known of one session, which may mean reading all of it.
pub(super) async fn one(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    check_session(id)?;
    log.session = Some(id.to_owned());
    let summary = host.session(id).await?;
    log.source = Some(summary.source);
    json(asked, &summary)
}

fn json(asked: &Asked, body: &impl Serialize) -> Result<Response<Body>, Failure> {
    let body = serde_json::to_vec(body).map_err(|_| Failure::internal())?;
    Ok(conditional::ok(&asked.headers, conditional::JSON, body.into()))
}

fn read(query: &Query) -> Result<ListRequest, Failure> {
    let limit = match query.all("limit").as_slice() {
        [] => Some(DEFAULT_LIMIT),
        [text] => text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)),
        _ => None,
    };
    let limit =
        limit.ok_or_else(|| Failure::bad_request("limit must be an integer between 1 and 200"))?;
    let cursor = match query.text("cursor") {
        Some(text) => {
            ListCursor::decode(text).ok_or_else(|| Failure::bad_request("invalid cursor"))?
        }
        None => ListCursor::default(),
    };
    let words = query.all("state");
    let words = words.iter().flat_map(|words| words.split(',')).filter(|word| !word.is_empty());
    let states: Option<Vec<_>> =
        words.map(|word| STATES.into_iter().find(|state| state.as_str() == word)).collect();
    let states = states
        .ok_or_else(|| Failure::bad_request("state must be ok, damaged, newer or foreign"))?;
    Ok(ListRequest {
        cursor,
        limit,
        text: query.text("q").map(str::to_lowercase),
        cwd: query.text("cwd").map(str::to_owned),
        states,
    })
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
