//! Connections: accepted, limited, and seen to their end.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore};

/// How long a client may take to send the head of a request, or to say nothing between two.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);

/// How large the head of a request may be. A cursor of 8192 units, every one of them escaped, fits.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How many headers a request may have.
const MAX_HEADERS: usize = 100;

/// How many connections are served at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;

/// How long answers that are under way may take once the host stops.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// How long to wait after an accept that failed for want of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves connections until `shutdown` is ready, and then finishes what was under way.
pub(crate) async fn until(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut shutdown = pin!(shutdown);
    let connections = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut shutdown => break,
        };
        let Ok((stream, _)) = accepted else {
            // One connection failed, or there are too many open files: either passes.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Answers are written whole, and a client waits for each.
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_DEADLINE)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            let _place = place;
            // A client that leaves or talks nonsense is its own business.
            let _ = connection.await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_DEADLINE, connections.shutdown()).await;
}
