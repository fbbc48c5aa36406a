//! The HTTP surface.
//!
//! A request passes, in this order: the guard, which keeps other sites' pages out; the check of who
//! asks and whether that is enough for what is asked; the route, which is read from the path by
//! [`Route::parse`]; its handler; and what every response gets: headers, compression, one log line. A panic in a handler is a bug of ours and becomes a 500
//! with nothing in it.

mod access;
mod auth;
mod changes;
mod conditional;
mod ending;
mod events;
mod export;
pub(crate) mod guard;
mod headers;
mod log;
mod message;
mod metrics;
mod openapi;
pub(crate) mod percent;
mod pieces;
mod proxy;
mod query;
mod reader;
mod reconcile;
pub(crate) mod route;
mod session_events;
mod sessions;
mod socket;
mod transcript_cache;
mod turn_page;

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Extensions, HeaderMap, HeaderValue, Method, Response, StatusCode, header},
    middleware::map_response,
};
use futures_util::FutureExt as _;
use tower_http::compression::{
    CompressionLayer,
    predicate::{NotForContentType, Predicate as _, SizeAbove},
};
use tracing::Instrument as _;

use self::{
    access::Refused,
    log::RequestLog,
    query::Query,
    route::{MalformedPath, Route},
};
use crate::{
    failure::Failure,
    host::Host,
    serve::{Peer, Shutdown},
};

/// Bodies below this many bytes are not worth compressing.
const COMPRESS_FROM_BYTES: u64 = 1024;

/// Everything that answers requests.
pub(crate) fn router(host: Arc<Host>) -> Router {
    let compress = host.compresses();
    let router = Router::new().fallback(answer).with_state(host);
    if compress {
        // An event has to leave when it happens, and not when a block of them is full; an archive
        // is compressed as it is.
        let worth_it = SizeAbove::new(COMPRESS_FROM_BYTES)
            .and(NotForContentType::SSE)
            .and(NotForContentType::const_new(export::MEDIA_TYPE));
        let ours = |_, _, _: &HeaderMap, extensions: &Extensions| {
            extensions.get::<proxy::AsItCame>().is_none()
        };
        router
            .layer(CompressionLayer::new().compress_when(worth_it.and(ours)))
            .layer(map_response(as_answered))
    } else {
        router
    }
}

/// What a request was answered with, before anything was made of the answer on its way out.
#[derive(Clone, Copy, Debug)]
struct Answered(StatusCode);

/// Takes back the 406 by which the compression says that a client takes no encoding at all, plain
/// bytes included. The request has been carried out by then, maybe by the upstream, and a client that
/// is told otherwise sends it again.
async fn as_answered(mut response: Response<Body>) -> Response<Body> {
    if let Some(Answered(status)) = response.extensions_mut().remove() {
        *response.status_mut() = status;
    }
    response
}

async fn answer(State(host): State<Arc<Host>>, request: Request) -> Response<Body> {
    let mut log = RequestLog::start(request.method(), host.metrics());
    let peer = Peer::of(request.extensions());
    let strict = headers::Strict::of(peer, request.uri(), request.headers());
    let page = access::page(&host, &request, peer);
    let (response, page) = match page {
        Ok(page) => (admitted(&host, request, peer, &mut log).await, Some(page)),
        Err(refused) => (Err(refused), None),
    };
    let mut response = response.unwrap_or_else(|refused| {
        log.kind = Some(refused.kind());
        refused.into_response()
    });
    if let Some(page) = page {
        page.write_headers(response.headers_mut());
    }
    headers::write(response.headers_mut(), strict);
    let answered = Answered(response.status());
    response.extensions_mut().insert(answered);
    log.finish(response)
}

/// Answers a request whose page, if it is of one, may ask.
async fn admitted(
    host: &Arc<Host>,
    request: Request,
    peer: Peer,
    log: &mut RequestLog,
) -> Result<Response<Body>, Refused> {
    let pass = access::check(host, &request, peer)?;
    let mut request = access::bounded(request)?;
    let asked = Asked {
        method: request.method().clone(),
        headers: request.headers().clone(),
        query: Query::parse(request.uri().query()),
    };
    if let Some(pass) = &pass {
        request.extensions_mut().insert(pass.clone());
    }
    let hangup = request.extensions().get().cloned();
    let shutdown = Shutdown::of(request.extensions());
    let span = log.span();
    let handled = handle(host, &asked, request, log).instrument(span).await;
    let mut response = handled.unwrap_or_else(|failure| {
        log.kind = Some(failure.kind());
        tell(&failure)
    });
    let Some(pass) = pass else { return Ok(response) };
    headers::keep_private(&mut response);
    Ok(access::watched(host, response, pass, hangup, &shutdown))
}

/// What a handler gets to see of a request.
pub(crate) struct Asked {
    method: Method,
    headers: HeaderMap,
    query: Query,
}

/// Runs the handler. What a panic says may repeat content, so it stays out of the log; where it
/// happened is on standard error by then.
async fn handle(
    host: &Arc<Host>,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let handled = AssertUnwindSafe(dispatch(host, asked, request, log)).catch_unwind().await;
    handled.unwrap_or_else(|_panic| {
        log.panicked();
        Err(Failure::internal())
    })
}

/// `request` is the request that `asked` was read from, for the handlers that read its body or take
/// over its connection.
async fn dispatch(
    host: &Arc<Host>,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let route = Route::parse(request.uri().path())
        .map_err(|MalformedPath| Failure::bad_request("malformed path"))?;
    log.route(&route);
    if asked.method == Method::OPTIONS {
        return Ok(headers::preflight(&asked.headers));
    }
    let reads = asked.method == Method::GET || asked.method == Method::HEAD;
    match route {
        // Under `/api` another method is another resource: the upstream's, if anyone's.
        Route::TurnPage(_)
        | Route::Reconcile(_)
        | Route::Changes(_)
        | Route::Message { .. }
        | Route::Messages(_)
        | Route::Events(_)
            if !reads =>
        {
            return proxy::forward(host, asked, request, log).await;
        }
        Route::Api | Route::Auth(_) | Route::TranscriptCache(_) => {}
        _ if !reads => return Ok(method_not_allowed("GET, HEAD, OPTIONS")),
        _ => {}
    }
    match route {
        Route::Asset(name) => reader::asset(&name, &asked.headers),
        Route::Health => Ok(health()),
        Route::Sessions => sessions::list(host, asked).await,
        Route::Session(id) => sessions::one(host, &id, asked, log).await,
        Route::TurnPage(id) => turn_page::answer(host, &id, asked, log).await,
        Route::Reconcile(id) => reconcile::answer(host, &id, asked, log).await,
        Route::Changes(id) => changes::answer(host, &id, asked, log).await,
        Route::Message { session, message } => {
            message::answer(host, &session, &message, asked, log).await
        }
        Route::Messages(id) => proxy::messages(host, &id, asked, request, log).await,
        Route::Events(channel) => events::stream(host, channel, asked, log).await,
        Route::EventSocket(channel) => socket::open(host, channel, asked, request, log).await,
        Route::SessionEvents(id) => session_events::read(host, &id, asked, log).await,
        Route::SessionEventStream(id) => session_events::follow(host, &id, asked, log).await,
        Route::TranscriptCache(name) => {
            transcript_cache::answer(host, &name, asked, request, log).await
        }
        Route::Export => export::answer(host, asked, log).await,
        Route::Auth(name) => auth::answer(host, &name, asked, request, log).await,
        Route::Metrics => metrics::answer(host).await,
        Route::OpenApi => openapi::answer(asked),
        Route::Api => proxy::forward(host, asked, request, log).await,
    }
}

/// The response that tells a client of a failure.
fn tell(failure: &Failure) -> Response<Body> {
    let mut response = Response::new(Body::from(failure.body().to_owned()));
    let status = StatusCode::from_u16(failure.status());
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media_type = HeaderValue::from_static(conditional::JSON);
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

/// Says that the process answers, and nothing about it.
fn health() -> Response<Body> {
    let mut response = Response::new(Body::from(r#"{"status":"ok"}"#));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(conditional::JSON));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn method_not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = tell(&Failure::of_kind("method_not_allowed"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}
