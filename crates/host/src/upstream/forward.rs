//! Sending other people's requests to the upstream.
//!
//! A request goes out once the upstream takes requests. It is sent a second time only when that
//! can do no harm: when no connection came about, or when it asks for something and its connection
//! broke before the answer began. What changes something always gets a connection of its own, so
//! that it is not lost with one that the upstream was about to close.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody as _},
    http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::StreamExt as _;
use hyper::{StatusCode, body::Incoming};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Room, Trouble, Upstream, readiness::NotReady};
use crate::proxy::{
    ProxyOptions,
    body::{Progress, Upload},
};

/// Between two looks at an upstream that is starting.
const POLL: Duration = Duration::from_millis(75);

/// How long a connection may take to come about.
const CONNECT_DEADLINE: Duration = Duration::from_secs(15);

/// Connections that wait for an answer say nothing for minutes. The system asks every so often
/// whether the other side is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// After how many such questions without an answer it is not.
const KEEPALIVE_RETRIES: u32 = 4;

/// Idle connections are kept for less time than servers keep theirs.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// How much room a body gets on the word of its header alone.
const MAX_ANNOUNCED_BYTES: usize = 16 << 20;

/// What sends requests.
#[derive(Debug)]
pub(super) struct Clients {
    /// For what only asks.
    pooled: Client<HttpConnector, Upload>,
    /// For everything else: each request has a new connection.
    fresh: Client<HttpConnector, Upload>,
}

/// A request to be sent.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) method: Method,
    /// Path and query as they follow the base address, escaped.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Upload,
}

/// Why there is no answer to hand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unforwarded {
    /// The upstream takes no requests, and did not begin to in time.
    Restarting,
    /// The connection ended before the answer began.
    Unavailable,
    /// The answer did not begin in time.
    TimedOut,
    /// The client stopped sending the body.
    UploadStalled,
    /// The client broke off.
    ClientLeft,
    /// The target is none that can be asked for.
    BadTarget,
}

impl Unforwarded {
    /// A fixed name for what is counted.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Restarting => "restarting",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
            Self::UploadStalled => "upload_stalled",
            Self::ClientLeft => "client_left",
            Self::BadTarget => "bad_target",
        }
    }
}

impl Clients {
    pub(super) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_DEADLINE));
        connector.set_keepalive(Some(KEEPALIVE));
        connector.set_keepalive_interval(Some(KEEPALIVE));
        connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE);
        let pooled = builder.build(connector.clone());
        let fresh = builder.pool_max_idle_per_host(0).build(connector);
        Self { pooled, fresh }
    }
}

impl Upstream {
    /// Authority and path of the base address.
    pub(crate) fn place(&self) -> (&str, &str) {
        self.options.place()
    }

    /// Sends a request and returns the answer once its head is there. Its body is still to come,
    /// and dropping it ends the request.
    pub(crate) async fn forward(
        &self,
        forward: Forward,
        options: &ProxyOptions,
    ) -> Result<Response<Incoming>, Unforwarded> {
        let asks = forward.method == Method::GET || forward.method == Method::HEAD;
        let start = Instant::now();
        let end_of_hold = start + options.hold;
        let deadline = asks.then(|| start + options.head_deadline);
        let client = if asks { &self.forwarding.pooled } else { &self.forwarding.fresh };
        let mut broken_before = false;
        loop {
            self.hold(end_of_hold).await?;
            let sending = client.request(self.outgoing(&forward)?);
            let sent = match deadline {
                Some(deadline) => match timeout_at(deadline, sending).await {
                    Ok(sent) => sent,
                    Err(_) => {
                        self.readiness.lose();
                        return Err(Unforwarded::TimedOut);
                    }
                },
                None => sending.await,
            };
            let error = match sent {
                Ok(response) => {
                    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
                        self.readiness.lose();
                    }
                    return Ok(response);
                }
                Err(error) => error,
            };
            match forward.body.progress() {
                Progress::Stalled => return Err(Unforwarded::UploadStalled),
                Progress::Broken => return Err(Unforwarded::ClientLeft),
                Progress::Untouched | Progress::Begun => {}
            }
            self.readiness.lose();
            if error.is_connect() {
                // Nothing was sent.
                if Instant::now() >= end_of_hold {
                    return Err(Unforwarded::Restarting);
                }
                tokio::time::sleep(POLL).await;
            } else if !asks || broken_before || forward.body.progress() != Progress::Untouched {
                return Err(Unforwarded::Unavailable);
            } else {
                broken_before = true;
            }
        }
    }

    /// Waits until the upstream takes requests.
    async fn hold(&self, end: Instant) -> Result<(), Unforwarded> {
        let ready = async {
            while let Err(NotReady) = self.readiness.wait(|| self.probe()).await {
                let next = Instant::now() + POLL;
                if next >= end {
                    return Err(Unforwarded::Restarting);
                }
                sleep_until(next).await;
            }
            Ok(())
        };
        timeout_at(end, ready).await.unwrap_or(Err(Unforwarded::Restarting))
    }

    /// Reads a body whole, once there is room for it, together with that room.
    pub(crate) async fn collect(&self, body: Body) -> Result<(Vec<u8>, Room), Trouble> {
        let largest = self.rooms.largest();
        let announced = body.size_hint().exact();
        let announced = announced.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if announced.is_some_and(|bytes| bytes > largest) {
            return Err(Trouble::Oversized);
        }
        let mut room = self.rooms.take(announced.unwrap_or(largest)).await;
        let mut collected =
            Vec::with_capacity(announced.unwrap_or_default().min(MAX_ANNOUNCED_BYTES));
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Trouble::Broken)?;
            if collected.len() + chunk.len() > largest {
                return Err(Trouble::Oversized);
            }
            collected.extend_from_slice(&chunk);
        }
        room.shrink_to(collected.len());
        Ok((collected, room))
    }

    fn outgoing(&self, forward: &Forward) -> Result<Request<Upload>, Unforwarded> {
        let (authority, base) = self.place();
        let uri = Uri::builder()
            .scheme("http")
            .authority(authority)
            .path_and_query(format!("{base}{}", forward.target))
            .build()
            .map_err(|_| Unforwarded::BadTarget)?;
        let mut request = Request::new(forward.body.clone());
        request.method_mut().clone_from(&forward.method);
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&forward.headers);
        if let Some((username, password)) = self.options.login() {
            let login = format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
            let mut login = HeaderValue::try_from(login).map_err(|_| Unforwarded::BadTarget)?;
            login.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, login);
        }
        Ok(request)
    }
}
