//! Connections: accepted, limited, and seen to their end.
//!
//! Everything here is about what a client can cost that has not shown a password yet: places,
//! memory for heads, time. What it asks for is none of this module's business.

mod patience;
mod peer;
mod room;
mod shutdown;
mod tls;

use std::{future::Future, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, extract::Request};
use hyper::{
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};

pub use self::tls::TlsError;
pub(crate) use self::{
    patience::Hangup,
    peer::{Peer, Proxies, is_from_elsewhere},
    shutdown::Shutdown,
    tls::{Tls, acceptor},
};
use self::{
    patience::{Connection, RequestBody},
    room::{Place, Room},
};
use crate::options::ConnectionLimits;

/// How large the head of a request may be. A cursor of 8192 units, every one of them escaped, fits.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How many headers a request may have.
const MAX_HEADERS: usize = 100;

/// How long to wait after an accept that failed for want of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What connections are served with.
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) limits: ConnectionLimits,
    pub(crate) proxies: Proxies,
    pub(crate) tls: Option<Tls>,
    pub(crate) shutdown: Shutdown,
}

/// Serves connections until `stop` is ready, gives the [`Shutdown`] signal then, and finishes what
/// was under way.
pub(crate) async fn until(listener: TcpListener, serving: Serving, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let limits = serving.limits.clone();
    let room = Room::new(limits.connections, limits.connections_of_one);
    let serving = Arc::new(serving);
    loop {
        let accepted = async {
            let place = room.place().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        let (Some(place), Ok((stream, address))) = (place, accepted) else {
            // One connection failed, or there are too many open files: either passes.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // All clients of a reverse proxy come from its address, and whoever is on this machine has
        // easier ways to disturb us.
        let address = address.ip().to_canonical();
        let is_counted = !address.is_loopback() && !serving.proxies.trusts(address);
        let place = if is_counted { room.take(place, address) } else { Some(place) };
        let Some(place) = place else { continue };
        tokio::spawn(Arc::clone(&serving).connection(stream, address, place));
    }
    drop(listener);
    serving.shutdown.begin();
    let _ = timeout(limits.drain, room.is_empty()).await;
}

impl Serving {
    /// Sees one connection to its end. A client that leaves or talks nonsense is its own business.
    async fn connection(self: Arc<Self>, stream: TcpStream, address: IpAddr, place: Place) {
        // Answers are written whole, and a client waits for each.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.requests(stream, address, place, Encrypted::No).await;
        };
        let handshake = timeout(self.limits.head, tls.accept(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = self.shutdown.begun() => return,
        };
        if let Ok(Ok(stream)) = shaken {
            self.requests(stream, address, place, Encrypted::Yes).await;
        }
    }

    async fn requests<S>(&self, stream: S, address: IpAddr, place: Place, encrypted: Encrypted)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let router = TowerToHyperService::new(self.router.clone());
        let hangup = Hangup::default();
        let service = service_fn(|request| {
            let mut request = self.incoming(request, address, encrypted);
            request.extensions_mut().insert(hangup.clone());
            router.call(request)
        });
        let stream = Connection::new(stream, self.limits.write_idle, place, &hangup);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = self.shutdown.begun() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    /// A request as the routes get it.
    fn incoming(
        &self,
        request: Request<Incoming>,
        address: IpAddr,
        encrypted: Encrypted,
    ) -> Request {
        let is_encrypted = matches!(encrypted, Encrypted::Yes);
        let peer = self.proxies.peer(address, is_encrypted, request.headers());
        let patience = self.limits.body_idle;
        let mut request = request.map(|body| Body::new(RequestBody::new(body, patience)));
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(self.shutdown.clone());
        request
    }
}

/// Whether a connection is HTTPS.
#[derive(Clone, Copy, Debug)]
enum Encrypted {
    Yes,
    No,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        let connections = room_for(open_files());
        Self {
            head: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            write_idle: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            connections,
            connections_of_one: (connections / 4).max(32),
            recheck: Duration::from_secs(5),
        }
    }
}

/// How many connections these many open files are enough for, when each may need another one for
/// the upstream, and the store needs some.
fn room_for(open_files: u64) -> u32 {
    let places = open_files.saturating_sub(128) / 2;
    u32::try_from(places.clamp(64, 8192)).unwrap_or(64)
}

fn open_files() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
