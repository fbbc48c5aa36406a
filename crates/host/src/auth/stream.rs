//! Responses that go on: they end with the right to them, and event streams with the host.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::Pass;
use crate::serve::Shutdown;

/// How a body that is cut off ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Like any other end: nobody expects an event stream to be whole.
    Quiet,
    /// As an error, so that nobody takes half a file for a whole one.
    Broken,
}

/// A body whose length is not known beforehand.
pub(crate) struct Watched {
    body: Body,
    pass: Pass,
    ending: Ending,
    looks: Option<Interval>,
    stops: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    has_ended: bool,
}

impl fmt::Debug for Watched {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Watched").field("ending", &self.ending).finish_non_exhaustive()
    }
}

impl Watched {
    /// Looks this often whether the pass is still good. An event stream also ends when the host
    /// stops; anything else is let come to its end.
    pub(crate) fn new(
        body: Body,
        pass: Pass,
        ending: Ending,
        every: Duration,
        shutdown: &Shutdown,
    ) -> Self {
        let looks = pass.can_end().then(|| {
            let mut looks = interval_at(Instant::now() + every, every);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            looks
        });
        let stops: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = match ending {
            Ending::Quiet => Some(Box::pin(shutdown.begun_owned())),
            Ending::Broken => None,
        };
        Self { body, pass, ending, looks, stops, has_ended: false }
    }

    /// Whether it is to be cut off now.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        if self.stops.as_mut().is_some_and(|stops| stops.as_mut().poll(context).is_ready()) {
            return true;
        }
        let Some(looks) = &mut self.looks else { return false };
        while looks.poll_tick(context).is_ready() {
            if !self.pass.still_good() {
                return true;
            }
        }
        false
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.has_ended {
            return Poll::Ready(None);
        }
        if this.is_over(context) {
            this.has_ended = true;
            this.body = Body::empty();
            return Poll::Ready(match this.ending {
                Ending::Quiet => None,
                Ending::Broken => {
                    let over = io::Error::new(io::ErrorKind::PermissionDenied, "access has ended");
                    Some(Err(axum::Error::new(over)))
                }
            });
        }
        Pin::new(&mut this.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
