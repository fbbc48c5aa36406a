//! Which requests are let in to what.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, HttpBody as _},
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};
use http_body_util::Limited;

use super::{
    guard::{self, Caller},
    percent,
    route::{MalformedPath, Route},
    tell,
};
use crate::{
    auth::{self, Denial, Ending, Pass, Scope, Via, Wait, Watched},
    failure::Failure,
    host::Host,
    serve::{Hangup, Peer, Shutdown},
};

/// How much a login may say.
const LOGIN_BYTES: usize = 4 << 10;

/// The first segment of what the upstream's terminals are under.
const TERMINALS: &str = "pty";

/// What a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing: it shows nothing of anyone's.
    Nothing,
    /// To be let in, and this much.
    Scope(Scope),
}

/// A response instead of an answer, and why.
#[derive(Debug)]
pub(super) struct Refused {
    failure: Box<Failure>,
    wait: Option<Wait>,
    cookie: Option<HeaderValue>,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { failure: failure.into(), wait: None, cookie: None }
    }
}

impl Refused {
    pub(super) fn kind(&self) -> &'static str {
        self.failure.kind()
    }

    pub(super) fn locked_out(wait: Wait) -> Self {
        let failure = Failure::with_code("locked_out");
        Self { failure: failure.into(), wait: Some(wait), cookie: None }
    }

    /// There are so many logins that another one would only wait.
    pub(super) fn busy() -> Self {
        let wait = Some(Wait(Duration::from_secs(5)));
        Self { failure: Failure::with_code("busy").into(), wait, cookie: None }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = tell(&self.failure);
        let headers = response.headers_mut();
        if self.failure.status() == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.wait {
            headers.insert(header::RETRY_AFTER, wait.seconds().into());
        }
        if let Some(cookie) = self.cookie {
            headers.insert(header::SET_COOKIE, cookie);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// What a request for a path takes.
pub(super) fn needs(method: &Method, path: &str) -> Result<Needs, MalformedPath> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    Ok(match Route::parse(path)? {
        Route::Asset(_) | Route::Auth(_) | Route::Health | Route::OpenApi => Needs::Nothing,
        Route::Api => {
            let segments = segments(path)?;
            let is_terminal = segments.iter().any(|segment| segment.starts_with(TERMINALS));
            match (is_terminal, reads) {
                (true, _) => Needs::Scope(Scope::Admin),
                (false, true) => Needs::Scope(Scope::Read),
                (false, false) => Needs::Scope(Scope::Write),
            }
        }
        Route::Sessions
        | Route::Session(_)
        | Route::TurnPage(_)
        | Route::Reconcile(_)
        | Route::Changes(_)
        | Route::Message { .. }
        | Route::Messages(_)
        | Route::Events(_)
        | Route::EventSocket(_)
        | Route::SessionEvents(_)
        | Route::SessionEventStream(_)
        | Route::TranscriptCache(_)
        | Route::Export
        | Route::Metrics => Needs::Scope(if reads { Scope::Read } else { Scope::Write }),
    })
}

/// The segments of a path that is handed on, as whoever gets it may come to read them: decoded, in
/// lower case, with backslashes and escaped slashes between them too. A path that could mean
/// another one further on is refused, since what it takes was decided by what it says here.
fn segments(path: &str) -> Result<Vec<String>, MalformedPath> {
    let mut segments = Vec::new();
    for raw in path.split('/') {
        let decoded = percent::decode_path(raw).ok_or(MalformedPath)?.to_lowercase();
        if decoded.chars().any(char::is_control) {
            return Err(MalformedPath);
        }
        for segment in decoded.split(['/', '\\']) {
            if [".", ".."].contains(&segment) {
                return Err(MalformedPath);
            }
            segments.push(segment.to_owned());
        }
    }
    Ok(segments)
}

/// Lets a request in, or says why not.
pub(super) fn check(host: &Host, request: &Request, peer: Peer) -> Result<Option<Pass>, Refused> {
    let (method, headers) = (request.method(), request.headers());
    // A browser asks by itself whether a page may ask, and shows nothing for it. Which pages may
    // was decided by then.
    if *method == Method::OPTIONS {
        return Ok(None);
    }
    let needs = needs(method, request.uri().path());
    let needed = match needs {
        Ok(Needs::Nothing) => return Ok(None),
        Ok(Needs::Scope(scope)) => scope,
        Err(MalformedPath) => Scope::Read,
    };
    if guard::is_embedded_elsewhere(headers) {
        return Err(Failure::of_kind("forbidden_origin").into());
    }
    let pass = host.auth().check(headers, peer).map_err(|denial| denied(denial, headers, peer))?;
    if matches!(pass.via(), Via::Login(_)) && guard::is_unexplained(method, headers) {
        return Err(Failure::of_kind("forbidden_origin").into());
    }
    if pass.scope() < needed {
        return Err(Failure::with_code("insufficient_scope").into());
    }
    match needs {
        Err(MalformedPath) => Err(Failure::bad_request("malformed path").into()),
        Ok(_) => Ok(Some(pass)),
    }
}

fn denied(denial: Denial, headers: &HeaderMap, peer: Peer) -> Refused {
    match denial {
        Denial::LockedOut(wait) => Refused::locked_out(wait),
        Denial::Unknown => Refused {
            failure: Failure::unauthenticated().into(),
            wait: None,
            cookie: auth::ended_cookie(headers, peer),
        },
    }
}

/// How long the body of a request may be, where it is read into memory here.
fn body_limit(path: &str) -> Option<usize> {
    match Route::parse(path) {
        Ok(Route::Auth(_)) => Some(LOGIN_BYTES),
        _ => None,
    }
}

/// Bounds the body of a request; refuses one that says it is longer.
pub(super) fn bounded(request: Request) -> Result<Request, Refused> {
    let Some(limit) = body_limit(request.uri().path()) else { return Ok(request) };
    if request.body().size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(Failure::of_kind("too_large").into());
    }
    Ok(request.map(|body| Body::new(Limited::new(body, limit))))
}

/// Has a response that goes on end with the right to it, and an event stream with the host. A
/// connection that becomes another one ends with the right to it, too.
pub(super) fn watched(
    host: &Arc<Host>,
    response: Response<Body>,
    pass: Pass,
    hangup: Option<Hangup>,
    shutdown: &Shutdown,
) -> Response<Body> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        if let Some(hangup) = hangup {
            let every = host.limits().recheck;
            tokio::spawn(async move {
                tokio::select! {
                    () = pass.ended(every) => hangup.hang_up(),
                    () = hangup.ended() => {}
                }
            });
        }
        return response;
    }
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let media_type = response.headers().get(header::CONTENT_TYPE);
    let is_events = media_type.is_some_and(|it| it.as_bytes().starts_with(b"text/event-stream"));
    let ending = if is_events { Ending::Quiet } else { Ending::Broken };
    let every = host.limits().recheck;
    response.map(|body| Body::new(Watched::new(body, pass, ending, every, shutdown)))
}

/// On whose behalf a request was let in, as far as its page goes.
pub(super) fn page(host: &Host, request: &Request, peer: Peer) -> Result<Caller, Refused> {
    let admitted = host.guard().admit(request.uri(), request.headers(), peer, host.auth().door());
    admitted.map_err(|refusal| Failure::of_kind(refusal.kind()).into())
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
