//! The OpenCode server behind the host.
//!
//! One pooled client. What comes back is either a body of JSON text or one of few kinds of
//! [`Trouble`]; nothing that the server says in an error reaches a client or a log.

mod forward;
mod health;
mod options;
mod readiness;
mod reply;
mod room;
mod sessions;
mod stream;

use std::sync::Arc;

use reqwest::{Client, StatusCode, Url, header, redirect};

use forward::Clients;
pub(crate) use forward::{Forward, Unforwarded};
pub use health::{UpstreamHealth, check_upstream};
pub use options::{UpstreamAddressError, UpstreamOptions};
use readiness::{NotReady, PROBE_DEADLINE, Probe, Readiness};
pub(crate) use reply::{Reply, Trouble};
pub(crate) use room::Room;
use room::Rooms;
use sessions::Told;
pub(crate) use sessions::UpstreamSession;
pub(crate) use stream::StreamTrouble;

use crate::metrics::UpstreamCalls;

/// Probes say little.
const MAX_PROBE_BYTES: usize = 64 << 10;

/// An OpenCode server, as a client sees it.
#[derive(Debug)]
pub(crate) struct Upstream {
    options: UpstreamOptions,
    client: Client,
    readiness: Readiness,
    told: Told,
    rooms: Rooms,
    calls: Arc<UpstreamCalls>,
    forwarding: Clients,
}

/// One request, so that it can be sent again.
#[derive(Clone, Debug)]
struct Ask {
    url: Url,
    /// A JSON body makes it a POST.
    json: Option<String>,
}

/// Why no response head came back.
enum Unsent {
    /// Nobody listens.
    Refused,
    /// The connection ended before the answer began.
    Broken,
}

impl Upstream {
    /// A client of the server that `options` names, which holds bodies of at most `body_bytes` in
    /// all. Nothing is sent yet. What is sent will be counted in `calls`.
    pub(crate) fn new(
        options: UpstreamOptions,
        body_bytes: usize,
        calls: Arc<UpstreamCalls>,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .http1_only()
            .referer(false)
            .build()?;
        Ok(Self {
            options,
            client,
            readiness: Readiness::default(),
            told: Told::default(),
            rooms: Rooms::new(body_bytes),
            calls,
            forwarding: Clients::new(),
        })
    }

    /// What is counted of it.
    pub(crate) fn calls(&self) -> &UpstreamCalls {
        &self.calls
    }

    /// Reads the resource at these path segments, of at most `max_bytes`.
    ///
    /// There is no deadline here: whoever asks stops waiting, which drops the request.
    pub(crate) async fn get(
        &self,
        segments: &[&str],
        query: &[(&str, &str)],
        max_bytes: usize,
    ) -> Result<Reply, Trouble> {
        let mut url = self.options.url(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.read(Ask { url, json: None }, max_bytes).await
    }

    /// Reads what a POST of this JSON text answers with. Only for requests that change nothing:
    /// they may be sent twice.
    pub(crate) async fn query(
        &self,
        segments: &[&str],
        json: String,
        max_bytes: usize,
    ) -> Result<Reply, Trouble> {
        self.read(Ask { url: self.options.url(segments), json: Some(json) }, max_bytes).await
    }

    async fn read(&self, ask: Ask, max_bytes: usize) -> Result<Reply, Trouble> {
        let reply = match self.send(&ask).await {
            Ok(response) => {
                let reply = reply::read(response, max_bytes, &self.rooms).await;
                if matches!(reply, Err(Trouble::Unavailable | Trouble::Broken)) {
                    self.readiness.lose();
                }
                reply
            }
            Err(unsent) => Err(unsent),
        };
        match &reply {
            Ok(reply) => self.calls.body(reply.body.len()),
            Err(trouble) => self.calls.trouble(trouble.label()),
        }
        reply
    }

    /// Sends once the upstream takes requests, and a second time when the connection broke before
    /// an answer: an idle connection may have been closed at the moment it was used.
    async fn send(&self, ask: &Ask) -> Result<reqwest::Response, Trouble> {
        let mut broken_before = false;
        loop {
            let ready = self.readiness.wait(|| self.probe()).await;
            ready.map_err(|NotReady| Trouble::Unavailable)?;
            self.calls.request();
            let unsent = match self.request(ask).await {
                Ok(response) => return Ok(response),
                Err(unsent) => unsent,
            };
            self.readiness.lose();
            match unsent {
                Unsent::Refused => return Err(Trouble::Unavailable),
                Unsent::Broken if broken_before => return Err(Trouble::Broken),
                Unsent::Broken => broken_before = true,
            }
        }
    }

    async fn probe(&self) -> Probe {
        let ask = Ask { url: self.options.url(&["global", "health"]), json: None };
        let probing = async {
            let Ok(response) = self.request(&ask).await else { return Probe::Refused };
            if response.status() == StatusCode::SERVICE_UNAVAILABLE {
                return Probe::Refused;
            }
            // Read to the end, so that the connection can be used again.
            let _ = reply::read(response, MAX_PROBE_BYTES, &self.rooms).await;
            Probe::Answered
        };
        let probed = tokio::time::timeout(PROBE_DEADLINE, probing).await;
        let probed = probed.unwrap_or(Probe::Silent);
        self.calls.probe(match probed {
            Probe::Answered => "answered",
            Probe::Refused => "refused",
            Probe::Silent => "silent",
        });
        probed
    }

    async fn request(&self, ask: &Ask) -> Result<reqwest::Response, Unsent> {
        Self::dispatch(self.build(ask).header(header::ACCEPT, "application/json")).await
    }

    /// The request without what it accepts, which does not go twice.
    fn build(&self, ask: &Ask) -> reqwest::RequestBuilder {
        let url = ask.url.clone();
        let mut request = match &ask.json {
            None => self.client.get(url),
            Some(json) => self
                .client
                .post(url)
                .header(header::CONTENT_TYPE, "application/json")
                .body(json.clone()),
        };
        request = request.header(header::ACCEPT_ENCODING, "identity");
        if let Some((username, password)) = self.options.login() {
            request = request.basic_auth(username, Some(password));
        }
        request
    }

    async fn dispatch(request: reqwest::RequestBuilder) -> Result<reqwest::Response, Unsent> {
        let refused_or_broken = |error: reqwest::Error| {
            if error.is_connect() { Unsent::Refused } else { Unsent::Broken }
        };
        request.send().await.map_err(refused_or_broken)
    }
}
