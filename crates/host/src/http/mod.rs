//! The HTTP surface.
//!
//! A request passes, in this order: the guard, which keeps other sites' pages out; the route,
//! which is read from the path by [`Route::parse`]; its handler; and what every response gets:
//! headers, compression, one log line. A panic in a handler is a bug of ours and becomes a 500
//! with nothing in it.

mod changes;
mod conditional;
pub(crate) mod guard;
mod headers;
mod log;
mod message;
mod percent;
mod pieces;
mod query;
mod reader;
mod reconcile;
mod route;
mod sessions;
mod turn_page;

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};
use futures_util::FutureExt as _;
use tower_http::compression::{CompressionLayer, predicate::SizeAbove};

use self::{
    log::RequestLog,
    query::Query,
    route::{MalformedPath, Route},
};
use crate::{failure::Failure, host::Host};

/// Bodies below this many bytes are not worth compressing.
const COMPRESS_FROM_BYTES: u64 = 1024;

/// Everything that answers requests.
pub(crate) fn router(host: Arc<Host>) -> Router {
    let compress = host.compresses();
    let router = Router::new().fallback(answer).with_state(host);
    if compress {
        let large_enough = SizeAbove::new(COMPRESS_FROM_BYTES);
        router.layer(CompressionLayer::new().compress_when(large_enough))
    } else {
        router
    }
}

async fn answer(State(host): State<Arc<Host>>, request: Request) -> Response<Body> {
    let (parts, _body) = request.into_parts();
    let mut log = RequestLog::start(&parts.method);
    let asked = Asked {
        method: parts.method,
        headers: parts.headers,
        query: Query::parse(parts.uri.query()),
    };
    let caller = host.guard().admit(&parts.uri, &asked.headers);
    let handled = match &caller {
        Ok(_) => handle(&host, parts.uri.path(), &asked, &mut log).await,
        Err(refusal) => Err(Failure::of_kind(refusal.kind())),
    };
    let mut response = handled.unwrap_or_else(|failure| {
        log.kind = Some(failure.kind());
        tell(&failure)
    });
    if let Ok(caller) = caller {
        caller.write_headers(response.headers_mut());
    }
    headers::write(response.headers_mut());
    log.finish(response.status(), response.body().size_hint().exact());
    response
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
    path: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let handled = AssertUnwindSafe(dispatch(host, path, asked, log)).catch_unwind().await;
    handled.unwrap_or_else(|_panic| {
        log.panicked();
        Err(Failure::internal())
    })
}

async fn dispatch(
    host: &Arc<Host>,
    path: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let route =
        Route::parse(path).map_err(|MalformedPath| Failure::bad_request("malformed path"))?;
    log.route(&route);
    if asked.method == Method::OPTIONS {
        return Ok(headers::preflight(&asked.headers));
    }
    let reads = asked.method == Method::GET || asked.method == Method::HEAD;
    match route {
        // Under `/api` another method is another resource: the upstream's, if anyone's.
        Route::TurnPage(_) | Route::Reconcile(_) | Route::Changes(_) | Route::Message { .. }
            if !reads =>
        {
            return Err(host.no_such_api());
        }
        Route::Api => {}
        _ if !reads => return Ok(method_not_allowed()),
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
        Route::Api => Err(host.no_such_api()),
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

fn method_not_allowed() -> Response<Body> {
    let mut response = tell(&Failure::of_kind("method_not_allowed"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    response
}
