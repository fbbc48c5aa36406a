//! Bodies that are handed on.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Nothing came for too long.
#[derive(Clone, Copy, Debug, Error)]
#[error("nothing came for too long")]
pub(crate) struct Idle;

/// What becomes of a body from which nothing comes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenIdle {
    /// It breaks off, so that nobody takes what came for the whole.
    Break,
    /// It ends: every event that came is whole, and a client that wants more connects again.
    End,
}

/// A body that is given up when nothing has come for some time although somebody waits for it.
/// Trailers are left out: they belong to one connection.
#[derive(Debug)]
pub(crate) struct Watched<B> {
    inner: B,
    limit: Duration,
    when_idle: WhenIdle,
    waiting: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

impl<B> Watched<B> {
    /// Watches over a body.
    pub(crate) fn new(inner: B, limit: Duration, when_idle: WhenIdle) -> Self {
        Self { inner, limit, when_idle, waiting: None, is_over: false }
    }
}

impl<B> HttpBody for Watched<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<AnyError>,
{
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        while let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) {
            // Time counts only while somebody waits: a client that takes its time is no stall.
            this.waiting = None;
            match frame {
                Some(Ok(frame)) if !frame.is_data() => {}
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            }
        }
        let limit = this.limit;
        let until = || Box::pin(tokio::time::sleep_until(Instant::now() + limit));
        match this.waiting.get_or_insert_with(until).as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                this.is_over = true;
                Poll::Ready((this.when_idle == WhenIdle::Break).then(|| Err(Idle.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A request's body that can be sent again as long as nothing of it has been taken.
#[derive(Clone, Debug)]
pub(crate) struct Upload(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    body: Mutex<Watched<Body>>,
    progress: AtomicU8,
}

/// How far a request's body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Progress {
    /// Nothing of it was taken.
    Untouched,
    /// Some of it was.
    Begun,
    /// The client stopped sending it.
    Stalled,
    /// The client broke it off.
    Broken,
}

impl Upload {
    /// The body of a request, of which something must come every now and then.
    pub(crate) fn new(body: Body, idle: Duration) -> Self {
        let body = Mutex::new(Watched::new(body, idle, WhenIdle::Break));
        Self(Arc::new(Shared { body, progress: AtomicU8::new(Progress::Untouched as u8) }))
    }

    /// How far it has come.
    pub(crate) fn progress(&self) -> Progress {
        match self.0.progress.load(Ordering::Acquire) {
            0 => Progress::Untouched,
            1 => Progress::Begun,
            2 => Progress::Stalled,
            _ => Progress::Broken,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Watched<Body>> {
        self.0.body.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = AnyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AnyError>>> {
        let polled = Pin::new(&mut *self.lock()).poll_frame(cx);
        let progress = match &polled {
            Poll::Ready(Some(Ok(_))) => Progress::Begun,
            Poll::Ready(Some(Err(error))) if is_late(&**error) => Progress::Stalled,
            Poll::Ready(Some(Err(_))) => Progress::Broken,
            Poll::Ready(None) | Poll::Pending => return polled,
        };
        self.0.progress.store(progress as u8, Ordering::Release);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}

/// Whether a body broke off because nothing came any more, which its connection may have noticed
/// before us.
fn is_late(mut error: &(dyn std::error::Error + 'static)) -> bool {
    loop {
        let io = error.downcast_ref::<std::io::Error>();
        if error.is::<Idle>() || io.is_some_and(|io| io.kind() == std::io::ErrorKind::TimedOut) {
            return true;
        }
        match error.source() {
            Some(source) => error = source,
            None => return false,
        }
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
