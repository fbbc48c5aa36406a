//! Bodies on their way out, seen to their end.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::metrics::InFlight;

/// A body that is counted while it is sent.
#[derive(Debug)]
pub(super) struct Watched {
    body: Body,
    bytes: u64,
    ended: bool,
    in_flight: Option<InFlight>,
    ending: Option<Ending>,
}

/// What the line at the end of a stream says.
#[derive(Debug)]
pub(super) struct Ending {
    /// The id of the request.
    pub(super) request: Arc<str>,
    /// The fixed name of the route.
    pub(super) route: &'static str,
    /// When the request came.
    pub(super) started: Instant,
}

impl Watched {
    pub(super) fn new(body: Body, in_flight: Option<InFlight>, ending: Option<Ending>) -> Self {
        Self { body, bytes: 0, ended: false, in_flight, ending }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            None => self.ended = true,
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.bytes += bytes as u64;
                if let Some(in_flight) = &self.in_flight {
                    in_flight.sent(bytes);
                }
            }
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// However a stream ends, its line is written: the client may have left in the middle.
impl Drop for Watched {
    fn drop(&mut self) {
        let Some(Ending { request, route, started }) = self.ending.take() else { return };
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let whole = self.ended || self.body.is_end_stream();
        let bytes = self.bytes;
        tracing::info!(request = &*request, route, ms, bytes, whole, "stream ended");
    }
}
