//! The host: everything it needs to answer, and how it is run.

use std::{future::Future, sync::Arc, time::Duration};

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
    driver::{self, ChangesRequest, MessageRequest, Place, Sources, TurnPageRequest},
    export::Exporter,
    failure::Failure,
    http::{self, guard},
    listing::{self, ListRequest, Listing, SessionSummary},
    options::{HostError, HostOptions},
    serve,
    source::{FoldLimits, LogSource, OpenCodeSource},
    upstream::{Trouble, Upstream},
};

/// An HTTP host over a store of session logs, an OpenCode server, or both.
#[derive(Debug)]
pub struct Host {
    sources: Sources,
    exporter: Option<Exporter>,
    guard: guard::Guard,
    listen: std::net::SocketAddr,
    reconcile: ReconcileConfig,
    scan_limit: usize,
    page_deadline: Duration,
    compress: bool,
}

impl Host {
    /// Makes a host. Nothing is read or sent before the first request.
    ///
    /// # Errors
    ///
    /// An address to listen on that other machines can reach, or a system without random numbers.
    pub fn new(options: HostOptions) -> Result<Self, HostError> {
        if !guard::is_loopback(options.listen.ip()) {
            return Err(HostError::NotLoopback { address: options.listen });
        }
        let limits =
            FoldLimits { cache_bytes: options.fold_cache_bytes, listing: options.listing_probe };
        let attachments = options.attachments.map(Attachments::at);
        let images = attachments.clone();
        let exporter = options.store.clone().map(|store| Exporter::new(store, attachments));
        let log = options
            .store
            .map(|store| Arc::new(LogSource::new(store, limits).with_attachments(images)));
        let upstream =
            options.upstream.map(|server| Upstream::new(server, options.upstream_body_bytes));
        let opencode = upstream.transpose()?.map(|server| Arc::new(OpenCodeSource::new(server)));
        let keys = match options.continuation_keys {
            Some(keys) => keys,
            None => random_keys()?,
        };
        Ok(Self {
            sources: Sources { log, opencode },
            exporter,
            reconcile: ReconcileConfig {
                runtime: options.runtime,
                width: options.scan_limit,
                budgets: options.reconcile,
                keys,
            },
            guard: guard::Guard::new(&options.allow_origins),
            listen: options.listen,
            scan_limit: options.scan_limit,
            page_deadline: options.page_deadline,
            compress: options.compress,
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

    /// Serves until `shutdown` is ready, and then until what was under way is answered, for ten
    /// seconds at most.
    ///
    /// # Errors
    ///
    /// A listener that other machines can reach.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), HostError> {
        let bound = listener.local_addr();
        let address = bound.map_err(|source| HostError::Listen { address: self.listen, source })?;
        if !guard::is_loopback(address.ip()) {
            return Err(HostError::NotLoopback { address });
        }
        serve::until(listener, http::router(self), shutdown).await;
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
        Ok(self.turn_page(session, request, |_| {}).await?.to_json())
    }

    pub(crate) async fn turn_page(
        &self,
        session: &str,
        request: &TurnPageRequest,
        place: impl FnMut(&'static str) + Send,
    ) -> Result<TurnPage, Failure> {
        driver::turn_page(&self.sources, session, request, self.page_deadline, place).await
    }

    /// One message whole: the JSON text of the body.
    pub(crate) async fn message(
        &self,
        session: &str,
        request: &MessageRequest,
        place: impl FnMut(&'static str) + Send,
    ) -> Result<String, Failure> {
        driver::message(&self.sources, session, request, self.page_deadline, place).await
    }

    /// One page of what happened in a session since a message.
    pub(crate) async fn reconcile(
        &self,
        request: ReconcileRequest,
        place: impl FnMut(&'static str) + Send,
    ) -> Result<ReconcilePage, Failure> {
        let (sources, config) = (&self.sources, &self.reconcile);
        driver::reconcile(sources, config, request, self.page_deadline, place).await
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

    pub(crate) fn scan_limit(&self) -> usize {
        self.scan_limit
    }

    pub(crate) fn compresses(&self) -> bool {
        self.compress
    }

    /// What a path under `/api` that is no route of ours is answered with.
    pub(crate) fn no_such_api(&self) -> Failure {
        let text = match self.sources.upstream() {
            Some(_) => "this host does not forward other requests to its upstream",
            None => "no upstream configured",
        };
        Failure::no_route(text)
    }
}

/// A key that no other process has, and that ends with this one.
fn random_keys() -> Result<KeyRing, HostError> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(HostError::Random)?;
    KeyRing::new(&key).map_err(HostError::Key)
}
