//! `GET /api/turnkeep/sessions/:id/events` and `…/events/stream`: what the log of a stored session
//! says, event by event.

use std::{io, sync::Arc};

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Method, Response, header},
};
use bytes::Bytes;
use futures_util::stream;
use tokio_util::sync::CancellationToken;
use turnkeep_log::{Seq, SessionId};
use turnkeep_store::EventRange;
use turnkeep_turns::query::check_session;

use super::{Asked, log::RequestLog, query::Query};
use crate::{
    driver::{Place, stored_trouble},
    failure::Failure,
    host::Host,
    session_log::{LogFollower, LogReader, Step, blocks, lines},
    source::LogSource,
};

/// The media type of one JSON text a line.
const NDJSON: &str = "application/x-ndjson";

/// The media type of an event stream.
const EVENT_STREAM: &str = "text/event-stream";

/// Says to proxies that a stream must not be collected before it is passed on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The largest integer that every client can hold.
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Answers with a range of events, one a line, exactly as they are stored.
///
/// The first are read before anything is sent, so that what is wrong with the log has a status. A
/// log that turns out to be damaged further on breaks the body off, which is never just shorter.
pub(super) async fn read(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let range = EventRange {
        offset: natural(&asked.query, "offset")?.unwrap_or(0),
        length: natural(&asked.query, "length")?,
    };
    let (source, session) = stored(host, id, log).await?;
    let trouble = |error| stored_trouble(&error, id);
    let mut reader = LogReader::open(&source, &session, range).await.map_err(trouble)?;
    let first = reader.next().await.map_err(|error| trouble(error.into()))?;
    let is_whole = reader.is_done() || first.is_empty();
    let first = lines(&first);
    let body = if is_whole {
        Body::from(first)
    } else if asked.method == Method::HEAD {
        Body::empty()
    } else {
        let rest = stream::try_unfold((reader, session), |(mut reader, session)| async {
            match reader.next().await {
                Ok(events) if events.is_empty() => Ok(None),
                Ok(events) => Ok(Some((lines(&events), (reader, session)))),
                Err(error) => {
                    tracing::warn!(session = ?session.as_str(), kind = error.kind(), "stored session");
                    Err(io::Error::other("the log cannot be read to its end"))
                }
            }
        });
        let first = stream::iter([Ok::<_, io::Error>(first)]);
        Body::from_stream(futures_util::StreamExt::chain(first, rest))
    };
    Ok(respond(body, &[(header::CONTENT_TYPE, NDJSON), (header::CACHE_CONTROL, "no-store")]))
}

/// Answers with what comes to the log from behind an event on, as an event stream.
pub(super) async fn follow(
    host: &Arc<Host>,
    id: &str,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let after = after(asked)?;
    let (source, session) = stored(host, id, log).await?;
    let follower = LogFollower::start(&source, &session, after).await;
    let follower = follower.map_err(|error| stored_trouble(&error, id))?;
    let follower = follower.ok_or_else(|| Failure::of_kind("invalid_boundary"))?;
    let body = if asked.method == Method::HEAD {
        Body::empty()
    } else {
        let following = Following {
            follower,
            session,
            heartbeat: host.live().timing().heartbeat,
            stop: host.live().stop(),
            is_over: false,
        };
        // What a client that just came sees first tells it, and all between, that it is connected.
        let hello = stream::iter([Ok(Bytes::from_static(b": connected\n\n"))]);
        let rest = stream::unfold(following, |mut following| async {
            let block = following.next().await?;
            Some((Ok::<_, io::Error>(block), following))
        });
        Body::from_stream(futures_util::StreamExt::chain(hello, rest))
    };
    Ok(respond(
        body,
        &[
            (header::CONTENT_TYPE, EVENT_STREAM),
            (header::CACHE_CONTROL, "no-cache, no-transform"),
            (ACCEL_BUFFERING, "no"),
        ],
    ))
}

/// A stream as it is sent. It looks for more only when its client has taken what there was.
struct Following {
    follower: LogFollower,
    session: SessionId,
    heartbeat: std::time::Duration,
    stop: CancellationToken,
    is_over: bool,
}

impl Following {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        match self.follower.next(self.heartbeat, &self.stop).await {
            Step::Events(events) => Some(blocks(&events)),
            Step::Quiet => Some(Bytes::from_static(b": heartbeat\n\n")),
            Step::Failed(kind) => {
                self.is_over = true;
                let session = self.session.as_str();
                tracing::warn!(?session, kind, "a followed session");
                let failure = Failure::of_stored_session(kind, session);
                Some(format!("event: error\ndata: {}\n\n", failure.body()).into())
            }
            Step::Closed => None,
        }
    }
}

/// The session, in the store. The upstream keeps no log that could be read here.
async fn stored(
    host: &Arc<Host>,
    id: &str,
    log: &mut RequestLog,
) -> Result<(Arc<LogSource>, SessionId), Failure> {
    check_session(id)?;
    log.session = Some(id.to_owned());
    match host.sources().place(id).await? {
        Place::Store(source, stat) => {
            log.source = Some("store");
            Ok((source, stat.header.id.clone()))
        }
        Place::Upstream(_) => Err(Failure::of_kind("not_stored")),
    }
}

/// A parameter that is a whole number from 0 on, if it is there.
fn natural(query: &Query, key: &str) -> Result<Option<u64>, Failure> {
    match query.all(key).as_slice() {
        [] => Ok(None),
        [text] => match integer(text) {
            Some(number) => Ok(Some(number)),
            None => Err(Failure::bad_request(&format!("{key} must be a non-negative integer"))),
        },
        _ => Err(Failure::bad_request(&format!("{key} must be a non-negative integer"))),
    }
}

fn integer(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number <= MAX_INTEGER)
}

/// The event that the client saw last. A browser that comes back repeats its first query, and says
/// in the header where it is.
fn after(asked: &Asked) -> Result<Option<Seq>, Failure> {
    let refuse = || Failure::bad_request("after must be -1 or the seq of an event");
    let seq = |text: &str| match text {
        "-1" => Ok(None),
        text => integer(text).map(|number| Some(Seq(number))).ok_or_else(refuse),
    };
    if let Some(last) = asked.headers.get("last-event-id").filter(|last| !last.is_empty()) {
        return seq(last.to_str().map_err(|_| refuse())?);
    }
    match asked.query.all("after").as_slice() {
        [] => Ok(None),
        [text] => seq(text),
        _ => Err(refuse()),
    }
}

fn respond(body: Body, headers: &[(HeaderName, &'static str)]) -> Response<Body> {
    let mut response = Response::new(body);
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
