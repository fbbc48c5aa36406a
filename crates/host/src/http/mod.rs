//! The HTTP surface.
//!
//! A request passes, in this order: the guard, which keeps other sites' pages out; the route,
//! which is read from the path by [`Route::parse`]; its handler; and what every response gets:
//! headers, compression, one log line. A panic in a handler is a bug of ours and becomes a 500
//! with nothing in it.

mod conditional;
pub(crate) mod guard;
mod headers;
mod log;
mod percent;
mod query;
mod reader;
mod route;
mod sessions;
mod turn_page;

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Router,
    body::{Body, HttpBody as _},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};
use futures_util::FutureExt as _;
use tower_http::compression::{CompressionLayer, predicate::SizeAbove};

use self::{guard::Refusal, log::RequestLog, query::Query, route::Route};
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
    let mut response = match host.guard().admit(&parts.uri, &asked.headers) {
        Ok(caller) => {
            let route = Route::parse(parts.uri.path());
            let handled = AssertUnwindSafe(dispatch(&host, route, &asked, &mut log));
            let handled = handled.catch_unwind().await.unwrap_or_else(|panic| Err(bug(&*panic)));
            let mut response = handled.unwrap_or_else(|failure| {
                log.kind = Some(failure.kind());
                tell(&failure)
            });
            caller.write_headers(response.headers_mut());
            response
        }
        Err(refusal) => {
            let failure = match refusal {
                Refusal::Host => Failure::of_surface("host", 403, "forbidden host"),
                Refusal::Origin => Failure::of_surface("origin", 403, "forbidden origin"),
            };
            log.kind = Some(failure.kind());
            tell(&failure)
        }
    };
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

async fn dispatch(
    host: &Arc<Host>,
    route: Result<Route, route::MalformedPath>,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let route = route.map_err(|_| Failure::bad_request("malformed path"))?;
    log.route(route.label());
    if asked.method == Method::OPTIONS {
        return Ok(headers::preflight(&asked.headers));
    }
    let reads = asked.method == Method::GET || asked.method == Method::HEAD;
    if !reads && route != Route::Api {
        return Ok(method_not_allowed());
    }
    match route {
        Route::Asset(name) => reader::asset(&name, &asked.headers),
        Route::Health => Ok(health()),
        Route::Sessions => sessions::list(host, asked).await,
        Route::Session(id) => sessions::one(host, &id, asked, log).await,
        Route::TurnPage(id) => turn_page::answer(host, &id, asked, log).await,
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
    let failure = Failure::of_surface("method", 405, "method not allowed");
    let mut response = tell(&failure);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
    response
}

/// What a panic says may repeat content, so it stays out of the log; where it happened is on
/// standard error by then.
fn bug(_panic: &(dyn Any + Send)) -> Failure {
    tracing::error!("a handler panicked, please report this");
    Failure::internal()
}
