//! Everything else under `/api`, which is the upstream's, and the official list of messages, which
//! is the upstream's for its own sessions.

use std::{convert::Infallible, sync::Arc};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};
use bytes::Bytes;
use futures_util::stream;
use hyper::{body::Incoming, upgrade::OnUpgrade};
use tokio::time::{Instant, timeout_at};
use turnkeep_log::SessionId;
use turnkeep_turns::{TurnPageError, message::check_session};

use super::{Asked, conditional, log::RequestLog};
use crate::{
    driver::{Place, stored_trouble},
    failure::Failure,
    host::Host,
    proxy::{
        Target,
        body::{Upload, Watched},
        headers,
        list::{self, ListQuery},
        tunnel,
    },
    serve::Shutdown,
    source::LogSource,
    upstream::{Forward, Trouble, Unforwarded, Upstream},
};

/// Marks an answer of the upstream that leaves as it came: not compressed by us, which would hold
/// back events and need what is large to be gone over once more.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsItCame;

/// Hands a request on to the upstream, and its answer back.
pub(super) async fn forward(
    host: &Arc<Host>,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    // An upstream that repeats what it got would tell our login.
    if asked.method == Method::TRACE || asked.method == Method::CONNECT {
        return Err(Failure::of_kind("method_not_allowed"));
    }
    let target = target(request.uri().path())?;
    if target.is_below("turnkeep") {
        return Err(Failure::of_kind("no_route"));
    }
    log.has_directory = asked.query.directory().is_some();
    if let Some(session) = target.session() {
        if let Some(refusal) = refuse_stored(host, &session, &asked.method).await {
            log.session = Some(session);
            return Err(refusal);
        }
        // Only what is an id for certain is logged.
        log.session = Some(session).filter(|session| session.starts_with("ses_"));
    }
    let upstream = host.sources().upstream().ok_or_else(|| host.no_such_api())?;
    if target.is_below("openchamber") {
        return Err(Failure::of_kind("no_route"));
    }
    log.source = Some("upstream");
    let target = target.with_query(request.uri().query(), host.proxy().directories(), None).await;
    let response = send(host, upstream, &target, request).await?;
    Ok(response)
}

/// Answers with the official list of messages.
pub(super) async fn messages(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    check_session(id)?;
    log.session = Some(id.to_owned());
    log.has_directory = asked.query.directory().is_some();
    log.has_before = asked.query.first("before").is_some_and(|before| !before.is_empty());
    let end = Instant::now() + host.page_deadline();
    let place = timeout_at(end, host.sources().place(id)).await;
    match place.unwrap_or_else(|_| Err(TurnPageError::TimedOut.into()))? {
        Place::Store(source, stat) => {
            log.source = Some("store");
            let query = ListQuery {
                limit: asked.query.first("limit"),
                before: asked.query.first("before"),
                reasoning: asked.query.include_reasoning(),
            };
            let listed = timeout_at(end, async {
                let session = source.session(&stat).await;
                let session = session.map_err(|error| stored_trouble(&error, id))?;
                list::of_stored(&session, query).await
            });
            let listed = listed.await.unwrap_or_else(|_| Err(TurnPageError::TimedOut.into()))?;
            stored_list(id, asked, query, listed).await
        }
        Place::Upstream(opencode) => {
            log.source = Some("upstream");
            let upstream = opencode.upstream();
            let directories = host.proxy().directories();
            let target = target(request.uri().path())?
                .with_query(request.uri().query(), directories, Some("includeReasoning"))
                .await;
            official_list(host, upstream, &target, asked, request).await
        }
    }
}

async fn stored_list(
    id: &str,
    asked: &Asked,
    query: ListQuery<'_>,
    listed: list::List,
) -> Result<Response<Body>, Failure> {
    let mut response = conditional::in_pieces(&asked.headers, listed.body).await;
    if let Some(next) = listed.next {
        let link = HeaderValue::try_from(list::link(id, query, &next));
        let next = HeaderValue::try_from(next);
        let (link, next) = (link.map_err(internal)?, next.map_err(internal)?);
        response.headers_mut().insert("x-next-cursor", next);
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

async fn official_list(
    host: &Host,
    upstream: &Upstream,
    target: &Target,
    asked: &Asked,
    mut request: Request,
) -> Result<Response<Body>, Failure> {
    // To a HEAD the server would answer with its web page.
    let wants_body = asked.method != Method::HEAD;
    *request.method_mut() = Method::GET;
    let filter = !asked.query.include_reasoning();
    if filter {
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let mut response = send(host, upstream, target, request).await?;
    if filter {
        keep_reasoning_out_of_links(response.headers_mut());
        let is_plain = headers::is_json(response.headers())
            && !response.headers().contains_key(header::CONTENT_ENCODING);
        if is_plain && wants_body {
            response = without_reasoning(upstream, response).await?;
        }
    }
    if !wants_body {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::empty();
    }
    Ok(response)
}

/// Reads an answer and leaves reasoning out of it. Untouched, it is sent as it was.
async fn without_reasoning(
    upstream: &Upstream,
    response: Response<Body>,
) -> Result<Response<Body>, Failure> {
    let (mut parts, body) = response.into_parts();
    let (text, room) = upstream.collect(body).await.map_err(|trouble| match trouble {
        Trouble::Oversized => TurnPageError::Upstream.into(),
        _ => Failure::of_kind("service_unavailable"),
    })?;
    let filtered = crate::blocking::off_the_workers(text.len(), move || {
        let filtered =
            std::str::from_utf8(&text).ok().and_then(crate::proxy::reasoning::without_reasoning);
        let body = filtered.map_or(text, String::into_bytes);
        drop(room);
        body
    });
    let body = filtered.await;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.extensions.remove::<AsItCame>();
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// A client that goes on by `Link` wants no reasoning there either.
fn keep_reasoning_out_of_links(headers: &mut HeaderMap) {
    let link = headers.get(header::LINK).and_then(|link| link.to_str().ok());
    let Some((address, rest)) = link.and_then(|link| link.split_once('>')) else { return };
    let joint = if address.contains('?') { '&' } else { '?' };
    let link = format!("{address}{joint}includeReasoning=false>{rest}");
    if let Ok(link) = HeaderValue::try_from(link) {
        headers.insert(header::LINK, link);
    }
}

/// Sends the request, and makes its answer ours.
async fn send(
    host: &Host,
    upstream: &Upstream,
    target: &Target,
    mut request: Request,
) -> Result<Response<Body>, Failure> {
    let options = host.proxy().options();
    let upgrade = headers::wanted_upgrade(request.headers());
    let on_upgrade = upgrade.as_ref().and_then(|_| request.extensions_mut().remove::<OnUpgrade>());
    let shutdown = Shutdown::of(request.extensions());
    let (parts, body) = request.into_parts();
    let mut forwarded = headers::to_upstream(&parts.headers, host.proxy().directories()).await;
    if let (Some(protocol), Some(_)) = (upgrade, &on_upgrade) {
        forwarded.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        forwarded.insert(header::UPGRADE, protocol);
    }
    let forward = Forward {
        method: parts.method.clone(),
        target: target.to_text(),
        headers: forwarded,
        body: Upload::new(body, options.idle),
    };
    let forwarded = upstream.forward(forward, options).await;
    upstream.calls().forwarded(forwarded.as_ref().map_or_else(|why| why.label(), |_| "answered"));
    let response = forwarded.map_err(refused)?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return switched(&shutdown, upstream, on_upgrade, response);
    }
    // The client has sent no login that could be wrong, and would take this for ours.
    if response.status() == StatusCode::UNAUTHORIZED {
        tracing::warn!(
            "OpenCode refuses our login: set OPENCODE_SERVER_PASSWORD or upstream_password_file"
        );
        return Err(Failure::with_code("upstream_login"));
    }
    let (answer, body) = response.into_parts();
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers::to_client(answer.headers, upstream.place());
    response.extensions_mut().insert(AsItCame);
    *response.body_mut() = if parts.method == Method::HEAD {
        // Of a length that is not known: the one in the head, if any, is that of another answer.
        Body::from_stream(stream::empty::<Result<Bytes, Infallible>>())
    } else {
        let may_be_silent = headers::is_event_stream(response.headers());
        Body::new(Watched::new(body, (!may_be_silent).then_some(options.idle)))
    };
    Ok(response)
}

/// Both connections become what the client wanted.
fn switched(
    shutdown: &Shutdown,
    upstream: &Upstream,
    on_upgrade: Option<OnUpgrade>,
    mut answer: Response<Incoming>,
) -> Result<Response<Body>, Failure> {
    let protocol = answer.headers().get(header::UPGRADE).cloned();
    let (Some(client), Some(protocol)) = (on_upgrade, protocol) else {
        return Err(Failure::of_kind("service_unavailable"));
    };
    let server = hyper::upgrade::on(&mut answer);
    tunnel::join(client, server, shutdown);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut headers = headers::to_client(answer.headers().clone(), upstream.place());
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
    *response.headers_mut() = headers;
    response.extensions_mut().insert(AsItCame);
    Ok(response)
}

/// What is said of a session that the store holds: the upstream has no such one, and what it says
/// of ids that are none of its own is an internal error.
async fn refuse_stored(host: &Host, session: &str, method: &Method) -> Option<Failure> {
    let log: &Arc<LogSource> = host.sources().log.as_ref()?;
    let id = SessionId::new(session)?;
    let is_stored = matches!(log.stat(&id).await, Ok(Some(_)));
    let reads = *method == Method::GET || *method == Method::HEAD;
    let kind = if reads { "stored_session" } else { "stored_session_is_read" };
    is_stored.then(|| Failure::of_kind(kind))
}

fn target(path: &str) -> Result<Target, Failure> {
    Target::below_api(path).map_err(|_| Failure::bad_request("malformed path"))
}

fn refused(why: Unforwarded) -> Failure {
    match why {
        Unforwarded::Restarting => Failure::restarting(),
        Unforwarded::Unavailable => Failure::of_kind("service_unavailable"),
        Unforwarded::TimedOut => Failure::of_kind("upstream_timed_out"),
        Unforwarded::UploadStalled => Failure::of_kind("upload_timed_out"),
        Unforwarded::ClientLeft => Failure::of_kind("cancelled"),
        Unforwarded::BadTarget => Failure::bad_request("malformed path"),
    }
}

fn internal<E>(_: E) -> Failure {
    Failure::internal()
}
