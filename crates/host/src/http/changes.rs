//! `GET /api/openchamber/sessions/:id/changes`: which files a message changed, or how it changed one.

use std::sync::Arc;

use axum::{body::Body, http::Response};
use turnkeep_turns::{
    changes::parse_file,
    message::{check_session, parse_message},
    query::Param,
};

use super::{Asked, conditional, log::RequestLog};
use crate::{driver::ChangesRequest, failure::Failure, host::Host};

/// Answers with the list of files, or with the diff of the one that is named.
pub(super) async fn answer(
    host: &Arc<Host>,
    session: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    check_session(session)?;
    log.session = Some(session.to_owned());
    let param = |key| Param::from_values(asked.query.all(key));
    let message = parse_message(param("messageID"))?.to_owned();
    log.message = Some(message.clone());
    let file = parse_file(param("file"))?.map(str::to_owned);
    log.has_file = file.is_some();
    let directory = asked.query.directory();
    log.has_directory = directory.is_some();
    let request = ChangesRequest { message, file, directory };
    let body = host.changes(session, &request, |source| log.source = Some(source)).await?;
    Ok(conditional::in_pieces(&asked.headers, vec![body]).await)
}
