//! The host: everything it needs to answer, and how it is run.

use std::{
    future::Future,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    net::TcpListener,
    time::{Instant, timeout_at},
};
use turnkeep_store::attachments::Attachments;
use turnkeep_turns::{
    ReconcilePage, TurnPage, TurnPageError,
    reconcile::{KeyRing, ReconcileConfig, ReconcileRequest},
};

use crate::{
    auth::Auth,
    driver::{self, ChangesRequest, Dated, MessageRequest, Place, Sources, TurnPageRequest},
    events::{Hub, live::LiveHost},
    export::Exporter,
    failure::Failure,
    http::{
        self,
        guard::{self, Door},
    },
    listing::{self, ListRequest, Listing, SessionSummary},
    metrics::{self, Metrics},
    options::{ConnectionLimits, HostError, HostOptions},
    proxy::Proxy,
    serve::{self, Proxies, Serving, Shutdown, Tls},
    source::{FoldLimits, LogSource, OpenCodeSource},
    transcript_cache::{TranscriptCache, path::is_blank},
    upstream::{Trouble, Upstream},
};

/// An HTTP host over a store of session logs, an OpenCode server, or both.
#[derive(Debug)]
pub struct Host {
    sources: Sources,
    live: LiveHost,
    exporter: Option<Exporter>,
    guard: guard::Guard,
    auth: Arc<Auth>,
    listen: std::net::SocketAddr,
    reconcile: ReconcileConfig,
    scan_limit: usize,
    page_deadline: Duration,
    compress: bool,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    proxies: Proxies,
    transcript_cache_path: Option<PathBuf>,
    /// Open while the host serves, when there is one.
    transcript_cache: OnceLock<TranscriptCache>,
    proxy: Proxy,
}

impl Host {
    /// Makes a host. Only the files that say who is let in and what HTTPS is served with are read;
    /// nothing is sent before the first request.
    ///
    /// # Errors
    ///
    /// An address to listen on that other machines can reach without a password or a token, a file
    /// of those that is of no use, or a system without random numbers.
    pub fn new(options: HostOptions) -> Result<Self, HostError> {
        let auth = Auth::load(&options.auth, options.listen)?;
        let limits =
            FoldLimits { cache_bytes: options.fold_cache_bytes, listing: options.listing_probe };
        let attachments = options.attachments.map(Attachments::at);
        let images = attachments.clone();
        let exporter = options.store.clone().map(|store| Exporter::new(store, attachments));
        let log = options
            .store
            .map(|store| Arc::new(LogSource::new(store, limits).with_attachments(images)));
        let metrics = Arc::new(Metrics::default());
        let upstream = options.upstream.map(|server| {
            Upstream::new(server, options.upstream_body_bytes, Arc::clone(&metrics.upstream))
        });
        let opencode = upstream.transpose()?.map(|server| Arc::new(OpenCodeSource::new(server)));
        let hub = Hub::new(options.replay_buffer_bytes, options.client_queue_bytes);
        let keys = match options.continuation_keys {
            Some(keys) => keys,
            None => random_keys()?,
        };
        Ok(Self {
            sources: Sources { log, opencode, metrics },
            live: LiveHost::new(hub, options.event_timing),
            exporter,
            reconcile: ReconcileConfig {
                runtime: options.runtime,
                width: options.scan_limit,
                budgets: options.reconcile,
                keys,
            },
            guard: guard::Guard::new(&options.allow_origins),
            auth: Arc::new(auth),
            listen: options.listen,
            scan_limit: options.scan_limit,
            page_deadline: options.page_deadline,
            compress: options.compress,
            limits: options.limits,
            tls: options.tls.as_ref().map(serve::acceptor).transpose()?,
            proxies: Proxies::new(options.auth.trusted_proxies),
            transcript_cache_path: options.transcript_cache.filter(|path| !is_blank(path)),
            transcript_cache: OnceLock::new(),
            proxy: Proxy::new(options.proxy),
        })
    }

    /// Takes the address to listen on.
    ///
    /// # Errors
    ///
    /// The address is taken, or is none of this machine's.
    pub async fn bind(&self) -> Result<TcpListener, HostError> {
        let address = self.listen;
        let bound = TcpListener::bind(address).await;
        bound.map_err(|source| HostError::Listen { address, source })
    }

    /// Serves until `shutdown` is ready, and then until what was under way is answered, for
    /// [`ConnectionLimits::drain`] at most. A host serves once: event streams end with it.
    ///
    /// # Errors
    ///
    /// A listener that other machines can reach, of an open host.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), HostError> {
        let bound = listener.local_addr();
        let address = bound.map_err(|source| HostError::Listen { address: self.listen, source })?;
        if self.auth.door() == Door::Open && !guard::is_loopback(address.ip()) {
            return Err(HostError::Unprotected { address });
        }
        if let Some(path) = &self.transcript_cache_path
            && let Some(cache) = TranscriptCache::open(path).await
        {
            // A host that served before has it open already.
            let _ = self.transcript_cache.set(cache);
        }
        let serving = Serving {
            limits: self.limits.clone(),
            proxies: self.proxies.clone(),
            tls: self.tls.clone(),
            shutdown: Shutdown::default(),
            router: http::router(Arc::clone(&self)),
        };
        let live = self.live.begin(self.sources.opencode.clone(), self.sources.log.clone());
        let shutdown = async {
            shutdown.await;
            // Streams of events have no end of their own.
            live.end();
        };
        serve::until(listener, serving, shutdown).await;
        Ok(())
    }

    /// One turn page, exactly as the route sends it: the JSON text of the body.
    ///
    /// # Errors
    ///
    /// What the route would answer instead.
    pub async fn turn_page_json(
        &self,
        session: &str,
        request: &TurnPageRequest,
    ) -> Result<String, Failure> {
        Ok(self.turn_page(session, request, |_| {}).await?.body.to_json())
    }

    pub(crate) async fn turn_page(
        &self,
        session: &str,
        request: &TurnPageRequest,
        place: impl FnMut(&'static str) + Send,
    ) -> Result<Dated<TurnPage>, Failure> {
        let (sources, hub, deadline) = (&self.sources, self.hub(), self.page_deadline);
        driver::turn_page(sources, hub, session, request, deadline, place).await
    }

    /// One message whole: the JSON text of the body.
    pub(crate) async fn message(
        &self,
        session: &str,
        request: &MessageRequest,
        place: impl FnMut(&'static str) + Send,
    ) -> Result<Dated<String>, Failure> {
        let (sources, hub, deadline) = (&self.sources, self.hub(), self.page_deadline);
        driver::message(sources, hub, session, request, deadline, place).await
    }

    /// One page of what happened in a session since a message.
    pub(crate) async fn reconcile(
        &self,
        request: ReconcileRequest,
        place: impl FnMut(&'static str) + Send,
    ) -> Result<Dated<ReconcilePage>, Failure> {
        let (sources, hub, config) = (&self.sources, self.hub(), &self.reconcile);
        driver::reconcile(sources, hub, config, request, self.page_deadline, place).await
    }

    /// What one message changed: the JSON text of the body.
    pub(crate) async fn changes(
        &self,
        session: &str,
        request: &ChangesRequest,
        place: impl FnMut(&'static str) + Send,
    ) -> Result<String, Failure> {
        driver::changes(&self.sources, session, request, self.page_deadline, place).await
    }

    pub(crate) async fn list(&self, request: &ListRequest) -> Result<Listing, Failure> {
        listing::list(&self.sources, request).await
    }

    /// What is known of one session. A stored one is read for it.
    pub(crate) async fn session(&self, id: &str) -> Result<SessionSummary, Failure> {
        let deadline = Instant::now() + self.page_deadline;
        let known = timeout_at(deadline, self.look_at(id)).await;
        known.unwrap_or_else(|_| Err(TurnPageError::TimedOut.into()))
    }

    async fn look_at(&self, id: &str) -> Result<SessionSummary, Failure> {
        match self.sources.place(id).await? {
            Place::Store(log, stat) => match log.session(&stat).await {
                Ok(session) => Ok(SessionSummary::of_stat(&stat, session.glimpse().await)),
                Err(error) => {
                    tracing::warn!(session = ?id, kind = error.kind(), "stored session");
                    Ok(SessionSummary::of_unreadable(&stat, error.kind()))
                }
            },
            Place::Upstream(opencode) => {
                let upstream = opencode.upstream();
                let known = async {
                    let mut session = upstream.session(id).await?;
                    upstream.tell(&mut session).await?;
                    Ok(session)
                };
                known.await.map(SessionSummary::of_upstream).map_err(|trouble| {
                    tracing::warn!(session = ?id, trouble = Trouble::label(trouble), "upstream");
                    Failure::from(match trouble {
                        Trouble::NotFound => TurnPageError::SessionNotFound,
                        Trouble::Unavailable => TurnPageError::Unavailable,
                        _ => TurnPageError::Upstream,
                    })
                })
            }
        }
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.sources.metrics
    }

    /// Every number there is, as `OpenMetrics` text. Reads files.
    pub(crate) fn metrics_text(&self) -> String {
        let mut readings = Vec::new();
        if let Some(log) = &self.sources.log {
            readings.extend(log.readings());
        }
        readings.extend(metrics::events(&self.hub().stats()));
        self.metrics().render(readings)
    }

    /// The line of events that clients watch. While the host serves, it follows its upstream.
    #[must_use]
    pub fn hub(&self) -> &Arc<Hub> {
        self.live.hub()
    }

    pub(crate) fn live(&self) -> &LiveHost {
        &self.live
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Whether this host lets in whoever is on its machine: there is no password, and no token is
    /// asked for.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.auth.door() == Door::Open
    }

    /// Who is let in.
    pub(crate) fn auth(&self) -> &Arc<Auth> {
        &self.auth
    }

    pub(crate) fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// What makes archives of the store's sessions, if there is a store.
    pub(crate) fn exporter(&self) -> Option<&Exporter> {
        self.exporter.as_ref()
    }

    /// Whether a session that the store does not hold may live behind the upstream.
    pub(crate) fn may_be_upstreams(&self, session: &str) -> bool {
        self.sources.may_be_upstreams(session)
    }

    pub(crate) fn guard(&self) -> &guard::Guard {
        &self.guard
    }

    /// The transcript cache, if it is on.
    pub(crate) fn transcript_cache(&self) -> Option<&TranscriptCache> {
        self.transcript_cache.get()
    }

    pub(crate) fn scan_limit(&self) -> usize {
        self.scan_limit
    }

    pub(crate) fn compresses(&self) -> bool {
        self.compress
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    pub(crate) fn page_deadline(&self) -> Duration {
        self.page_deadline
    }

    /// What a path under `/api` that is no route of ours is answered with where there is no
    /// upstream to ask.
    #[expect(clippy::unused_self, reason = "other answers of this host say so as well")]
    pub(crate) fn no_such_api(&self) -> Failure {
        Failure::no_route("no upstream configured")
    }
}

/// A key that no other process has, and that ends with this one.
fn random_keys() -> Result<KeyRing, HostError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(HostError::Random)?;
    KeyRing::new(&key).map_err(HostError::Key)
}
