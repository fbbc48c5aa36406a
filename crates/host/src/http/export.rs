//! `GET /api/session.export`: a session as a ZIP archive.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderValue, Method, Response, header},
};
use bytes::Bytes;
use futures_util::stream;
use turnkeep_log::SessionId;
use turnkeep_turns::{TurnPageError, message::check_session};

use super::{Asked, log::RequestLog, query::Query};
use crate::{
    export::{Archive, ExportError, archive_name},
    failure::Failure,
    host::Host,
};

/// The media type of archives, which are compressed already.
pub(super) const MEDIA_TYPE: &str = "application/zip";

/// Answers with the archive, once everything is known to be there that it needs.
///
/// A HEAD is answered in the same way, since a browser that saves a link has no other way to hear
/// what is wrong; only nothing is packed for it.
pub(super) async fn answer(
    host: &Arc<Host>,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let (session, descendants) = wanted(&asked.query)?;
    log.session = Some(session.as_str().to_owned());
    let exporter =
        host.exporter().ok_or_else(|| Failure::of_export("no_store", session.as_str()))?;
    log.source = Some("store");
    let checked = exporter.check(&session, descendants, |_| {}).await;
    let plan = checked.map_err(|error| told(host, &session, &error))?;
    let body = if asked.method == Method::HEAD {
        // Of no known length, as the archive.
        Body::from_stream(stream::empty::<Result<Bytes, ExportError>>())
    } else {
        streamed(exporter.archive(plan), session.clone())
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let disposition = format!("attachment; filename=\"{}\"", archive_name(&session));
    let disposition = HeaderValue::from_str(&disposition).map_err(|_| Failure::internal())?;
    headers.insert(header::CONTENT_DISPOSITION, disposition);
    Ok(response)
}

/// Which session is asked for, and whether what stems from it is.
fn wanted(query: &Query) -> Result<(SessionId, bool), Failure> {
    let no_session = || Failure::bad_request("sessionId is required");
    let session = query.text("sessionId").ok_or_else(no_session)?;
    check_session(session).map_err(|_| no_session())?;
    let descendants = match query.all("includeDescendants").as_slice() {
        [] | ["false"] => false,
        ["true"] => true,
        _ => return Err(Failure::bad_request("includeDescendants must be true or false")),
    };
    Ok((SessionId::new(session).ok_or_else(no_session)?, descendants))
}

fn told(host: &Host, session: &SessionId, error: &ExportError) -> Failure {
    if !error.is_not_found() {
        // The text may name a file.
        tracing::warn!(session = ?session.as_str(), kind = error.kind(), "export");
        return Failure::of_export(error.kind(), session.as_str());
    }
    if host.may_be_upstreams(session.as_str()) {
        return Failure::of_kind("not_exportable");
    }
    TurnPageError::SessionNotFound.into()
}

/// A body that is made as it is sent. When making it fails the connection is closed in the middle:
/// by then nothing else tells the client that it has half an archive.
fn streamed(archive: Archive, session: SessionId) -> Body {
    Body::from_stream(stream::try_unfold(archive, move |mut archive| {
        let session = session.clone();
        async move {
            match archive.next().await {
                Ok(piece) => Ok(piece.map(|piece| (piece, archive))),
                Err(error) => {
                    let (session, kind) = (session.as_str(), error.kind());
                    tracing::warn!(session = ?session, kind, "export broke off");
                    Err(error)
                }
            }
        }
    }))
}
