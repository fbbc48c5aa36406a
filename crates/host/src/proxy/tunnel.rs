//! Connections that become something else than HTTP: bytes both ways, until one side is done.

use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf, copy, split};

use crate::serve::Shutdown;

/// How long the other direction may go on after one has ended. A side that has nothing more to say
/// may still want to hear the rest; one that is gone never will.
const LINGER: Duration = Duration::from_secs(10);

/// Joins two connections once both have been given up by HTTP, until one of them ends or the host
/// stops. However long they say nothing, they stay joined.
pub(crate) fn join(client: OnUpgrade, upstream: OnUpgrade, shutdown: &Shutdown) {
    let stops = shutdown.begun_owned();
    tokio::spawn(async move {
        let joined = async {
            let (client, upstream) = tokio::try_join!(client, upstream)?;
            carry(open(client), open(upstream), LINGER).await;
            Ok::<_, hyper::Error>(())
        };
        tokio::select! {
            // A side that broke off is its own business.
            _ = joined => {}
            () = stops => {}
        }
    });
}

fn open(upgraded: Upgraded) -> TokioIo<Upgraded> {
    TokioIo::new(upgraded)
}

async fn carry<A, B>(client: A, upstream: B, linger: Duration)
where
    A: AsyncRead + AsyncWrite,
    B: AsyncRead + AsyncWrite,
{
    let (from_client, to_client) = split(client);
    let (from_upstream, to_upstream) = split(upstream);
    let mut up = std::pin::pin!(one_way(from_client, to_upstream));
    let mut down = std::pin::pin!(one_way(from_upstream, to_client));
    tokio::select! {
        ended = &mut up => if ended.is_ok() {
            let _ = tokio::time::timeout(linger, down).await;
        },
        ended = &mut down => if ended.is_ok() {
            let _ = tokio::time::timeout(linger, up).await;
        },
    }
}

/// Carries bytes one way to their end, and passes the end on.
async fn one_way<A: AsyncRead, B: AsyncWrite>(
    mut from: ReadHalf<A>,
    mut to: WriteHalf<B>,
) -> std::io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}

#[cfg(test)]
#[path = "tunnel_tests.rs"]
mod tests;
