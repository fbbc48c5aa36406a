//! Logging in and out.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, Method, Response, header},
};
use http_body_util::{BodyExt as _, LengthLimitError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Asked, access::Refused, conditional, guard, log::RequestLog, method_not_allowed};
use crate::{
    auth::{self, LoginError, Pass, Scope, Secret, Via},
    failure::Failure,
    host::Host,
    serve::Peer,
};

/// What a login says.
#[derive(Deserialize)]
struct Login {
    /// The password, or an API token.
    password: String,
}

/// Answers `/auth/login`, `/auth/logout` and `/auth/status`.
pub(super) async fn answer(
    host: &Arc<Host>,
    name: &str,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let peer = Peer::of(request.extensions());
    let answered = match (name, &asked.method) {
        ("login", &Method::POST) => log_in(host, request, peer).await,
        ("logout", &Method::POST) => log_out(host, asked, peer),
        ("status", &Method::GET | &Method::HEAD) => status(host, asked, peer),
        ("login" | "logout", _) => return Ok(method_not_allowed("POST, OPTIONS")),
        ("status", _) => return Ok(method_not_allowed("GET, HEAD, OPTIONS")),
        _ => return Err(Failure::of_kind("no_route")),
    };
    Ok(answered.unwrap_or_else(|refused| {
        log.kind = Some(refused.kind());
        refused.into_response()
    }))
}

async fn log_in(host: &Host, request: Request, peer: Peer) -> Result<Response<Body>, Refused> {
    if host.is_open() {
        return Ok(told(&json!({ "authenticated": true, "scope": Scope::Admin.as_str() }), None));
    }
    let body = timeout(host.limits().head, request.into_body().collect()).await;
    let body = body.map_err(|_| Failure::bad_request("the login did not come in time"))?;
    let body = body.map_err(|error| {
        let error: &(dyn std::error::Error + 'static) = &error;
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        if causes.any(<dyn std::error::Error>::is::<LengthLimitError>) {
            Failure::of_kind("too_large")
        } else {
            Failure::bad_request("the login did not come whole")
        }
    })?;
    // What serde_json says of a body may repeat it.
    let login: Login = serde_json::from_slice(&body.to_bytes())
        .map_err(|_| Failure::bad_request(r#"a login is {"password":"…"}"#))?;
    let logged_in = host.auth().log_in(Secret::new(login.password), peer).await;
    match logged_in {
        Ok((cookie, scope)) => {
            let told_of = json!({ "authenticated": true, "scope": scope.as_str() });
            Ok(told(&told_of, Some(cookie)))
        }
        Err(LoginError::Wrong) => Err(Failure::with_code("wrong_password").into()),
        Err(LoginError::LockedOut(wait)) => Err(Refused::locked_out(wait)),
        Err(LoginError::Busy) => Err(Refused::busy()),
        Err(LoginError::NoRandom) => Err(Failure::internal().into()),
    }
}

/// Ends the login, also one that has ended.
fn log_out(host: &Host, asked: &Asked, peer: Peer) -> Result<Response<Body>, Refused> {
    let cookie = auth::ended_cookie(&asked.headers, peer);
    if cookie.is_some() && guard::is_unexplained(&asked.method, &asked.headers) {
        return Err(Failure::of_kind("forbidden_origin").into());
    }
    host.auth().log_out(&asked.headers, peer);
    Ok(told(&json!({ "authenticated": false }), cookie))
}

/// Says whether a request would be let in, and what it would be allowed.
fn status(host: &Host, asked: &Asked, peer: Peer) -> Result<Response<Body>, Refused> {
    let pass = match host.auth().check(&asked.headers, peer) {
        Ok(pass) => Some(pass),
        Err(auth::Denial::Unknown) => None,
        Err(auth::Denial::LockedOut(wait)) => return Err(Refused::locked_out(wait)),
    };
    let via = pass.as_ref().map(|pass| match pass.via() {
        Via::Nothing => "open",
        Via::Login(_) => "login",
        Via::Token(_) => "token",
    });
    let told_of = json!({
        "authenticated": pass.is_some(),
        "passwordRequired": host.auth().has_password(),
        "scope": pass.as_ref().map(Pass::scope).map(Scope::as_str),
        "via": via,
    });
    Ok(told(&told_of, None))
}

fn told(body: &Value, cookie: Option<HeaderValue>) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(conditional::JSON));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(cookie) = cookie {
        headers.insert(header::SET_COOKIE, cookie);
    }
    response
}
