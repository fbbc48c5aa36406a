//! Clients that stop reading or sending are not waited for without end.
//!
//! A connection that has nothing to say may last for ever: an event stream between two events, a
//! request whose answer takes a whole turn. What ends it is standing still in the middle of
//! something: a response that is not read, a request body that does not come.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::BoxError;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// How long somebody has kept us waiting.
#[derive(Debug)]
struct Waiting {
    patience: Duration,
    since: Option<Pin<Box<Sleep>>>,
}

impl Waiting {
    fn new(patience: Duration) -> Self {
        Self { patience, since: None }
    }

    /// Passes on what came of something; when nothing did, for too long, an error.
    fn bounded<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.since = None;
            return outcome;
        }
        let patience = self.patience;
        let since = self.since.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(since.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Ends a connection that is no exchange of requests any more, a WebSocket above all, whoever has
/// it by then. In the extensions of every request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangup(CancellationToken);

impl Hangup {
    /// To the one who has the connection it is as if the client had left.
    pub(crate) fn hang_up(&self) {
        self.0.cancel();
    }

    /// Ready once the connection has ended, whoever ended it.
    pub(crate) async fn ended(&self) {
        self.0.cancelled().await;
    }
}

/// A connection that is given up when the other side does not take what is written to it.
#[derive(Debug)]
pub(super) struct Connection<S, P> {
    stream: S,
    writing: Waiting,
    hung_up: Pin<Box<WaitForCancellationFutureOwned>>,
    _ends: DropGuard,
    /// What is held as long as the connection lasts, upgrades included.
    _held: P,
}

impl<S, P> Connection<S, P> {
    pub(super) fn new(stream: S, patience: Duration, held: P, hangup: &Hangup) -> Self {
        Self {
            stream,
            writing: Waiting::new(patience),
            hung_up: Box::pin(hangup.0.clone().cancelled_owned()),
            _ends: hangup.0.clone().drop_guard(),
            _held: held,
        }
    }

    fn is_hung_up(&mut self, context: &mut Context<'_>) -> bool {
        self.hung_up.as_mut().poll(context).is_ready()
    }
}

impl<S: AsyncRead + Unpin, P: Unpin> AsyncRead for Connection<S, P> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_hung_up(context) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, P: Unpin> AsyncWrite for Connection<S, P> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_hung_up(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.writing.bounded(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_hung_up(context) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.writing.bounded(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.writing.bounded(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closed = Pin::new(&mut this.stream).poll_shutdown(context);
        this.writing.bounded(closed, context)
    }
}

/// The body of a request, which breaks off when nothing of it comes while it is waited for.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    reading: Waiting,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, patience: Duration) -> Self {
        Self { body, reading: Waiting::new(patience) }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(context).map(Ok);
        match ready!(this.reading.bounded(frame, context)) {
            Ok(frame) => Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from))),
            Err(late) => Poll::Ready(Some(Err(late.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "patience_tests.rs"]
mod tests;
