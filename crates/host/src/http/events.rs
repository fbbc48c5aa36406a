//! `GET /api/global/event` and `GET /api/event`: events over SSE.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, Method, Response, header},
};

use super::{Asked, log::RequestLog, percent, route::Channel};
use crate::{
    events::{
        body::EventBody,
        client::Watch,
        event::{Form, Wire},
        frames,
        link::Unavailable,
    },
    failure::Failure,
    host::Host,
};

/// The media type of an event stream.
const EVENT_STREAM: &str = "text/event-stream";

/// Says to proxies that a stream must not be collected before it is passed on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How clients of OpenCode name the directory of a request.
const DIRECTORY: &str = "x-opencode-directory";

/// Answers with what happens from now on, or since the event that the client saw last.
pub(super) async fn stream(
    host: &Arc<Host>,
    channel: Channel,
    asked: &Asked,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let (live, sources) = (host.live(), host.sources());
    match (&sources.opencode, &sources.log) {
        (None, None) => return Err(Failure::no_route("no upstream configured")),
        // What is stored is worth watching whatever the upstream does.
        (_, Some(_)) => {}
        (Some(_), None) => live.wait_for_upstream().await.map_err(unavailable)?,
    }
    let asking = Asking::read(channel, asked);
    log.has_directory = asking.directory.is_some();
    let watch = asking.watch(host, Wire::Sse).await;
    let body = if asked.method == Method::HEAD {
        Body::empty()
    } else {
        let subscribed = live.hub().subscribe(watch.map_err(unavailable)?);
        let (subscription, start) = subscribed.ok_or_else(Failure::internal)?;
        Body::new(EventBody::new(subscription, &start, live.timing()))
    };
    let mut response = Response::new(body);
    for (name, value) in [
        (header::CONTENT_TYPE, EVENT_STREAM),
        (header::CACHE_CONTROL, "no-cache"),
        (ACCEL_BUFFERING, "no"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

fn unavailable(unavailable: Unavailable) -> Failure {
    Failure::of_kind(match unavailable {
        Unavailable::Silent => "upstream_timed_out",
        Unavailable::Refused | Unavailable::Status(_) | Unavailable::Login(_) => {
            "service_unavailable"
        }
    })
}

/// What a client asks to watch, over either wire.
#[derive(Debug)]
pub(super) struct Asking {
    channel: frames::Channel,
    pub(super) directory: Option<String>,
    reasoning: bool,
    last: Option<String>,
}

impl Asking {
    pub(super) fn read(channel: Channel, asked: &Asked) -> Self {
        let header = |name: &str| {
            let value = asked.headers.get(name).map(HeaderValue::as_bytes);
            let value = value.and_then(|value| std::str::from_utf8(value).ok());
            value.filter(|value| !value.is_empty())
        };
        // OpenCode decodes it in any case, and its SDK always escapes it.
        let named = || {
            let value = header(DIRECTORY)?;
            Some(percent::decode_path(value).unwrap_or_else(|| value.to_owned()))
        };
        let trimmed = |directory: &String| directory.trim().to_owned();
        let in_query = asked.query.directory().as_ref().map(trimmed);
        let directory = in_query
            .filter(|name| !name.is_empty())
            .or_else(|| named().as_ref().map(trimmed).filter(|name| !name.is_empty()));
        // A browser that comes back repeats its first query, and says in the header where it is.
        let last = header("last-event-id").or_else(|| asked.query.text("lastEventId"));
        Self {
            channel: match channel {
                Channel::Global => frames::Channel::Global,
                Channel::Directory => frames::Channel::Directory,
            },
            directory,
            reasoning: asked.query.include_reasoning(),
            last: last.map(str::to_owned),
        }
    }

    pub(super) fn channel(&self) -> frames::Channel {
        self.channel
    }

    /// What to watch; a directory that is not named is the one the upstream was started in.
    ///
    /// # Errors
    ///
    /// Nothing says which directory is meant.
    pub(super) async fn watch(self, host: &Host, wire: Wire) -> Result<Watch, Unavailable> {
        let live = host.live();
        let directory = match (self.channel, self.directory, &host.sources().opencode) {
            (frames::Channel::Directory, Some(named), _) => {
                let hub = Arc::clone(live.hub());
                let real = tokio::task::spawn_blocking(move || hub.real_directory(&named)).await;
                real.ok()
            }
            (frames::Channel::Directory, None, Some(opencode)) => {
                let own = live.own_directory(opencode).await;
                if own.is_none() && host.sources().log.is_none() {
                    return Err(Unavailable::Refused);
                }
                own
            }
            // Without a server there is no directory that it was started in.
            (frames::Channel::Global, ..) | (frames::Channel::Directory, None, None) => None,
        };
        let Self { channel, reasoning, last, .. } = self;
        Ok(Watch { form: Form { wire, channel, reasoning }, directory, last })
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
