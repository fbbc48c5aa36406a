//! A client over SSE, as the body of its response: there is no task for it besides the connection's.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{
    client::{Start, Subscription, Taken},
    frames::{self, CONNECTED, Channel, ResetReason},
    id::EventId,
};

/// The body of an event stream.
#[derive(Debug)]
pub(crate) struct EventBody {
    subscription: Subscription,
    channel: Channel,
    /// What goes out next.
    blocks: VecDeque<Bytes>,
    beat: Bytes,
    beats: Interval,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// The host stops.
    Closed,
    /// The client has to come back for the rest. A body that just ended would not make every client
    /// do that.
    Slow,
}

impl EventBody {
    /// A stream that begins with the event every OpenCode stream begins with, and with a reset where
    /// the client cannot go on from where it was.
    pub(crate) fn new(subscription: Subscription, start: &Start, heartbeat: Duration) -> Self {
        let channel = subscription.form().channel;
        let mut beats = interval_at(Instant::now() + heartbeat, heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let reset = start.reset.map(|reason| reset(channel, start.position, reason));
        let blocks = [Some(connected(channel)), reset].into_iter().flatten().collect();
        Self { subscription, channel, blocks, beat: frames::heartbeat(channel), beats, end: None }
    }
}

/// What a client is sent where its stream begins, also where it begins anew: one that knows nothing
/// of resets takes that for a new connection, and fetches again what it shows.
fn connected(channel: Channel) -> Bytes {
    frames::block(channel, None, None, None, CONNECTED)
}

/// A reset, with the id that the client may go on from.
fn reset(channel: Channel, position: EventId, reason: ResetReason) -> Bytes {
    frames::block(channel, Some(position), None, None, &reason.payload())
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        loop {
            if let Some(block) = this.blocks.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(block))));
            }
            match this.end {
                None => {}
                Some(End::Closed) => return Poll::Ready(None),
                Some(End::Slow) => {
                    let error = io::Error::new(io::ErrorKind::TimedOut, "too slow");
                    return Poll::Ready(Some(Err(error)));
                }
            }
            match this.subscription.poll_take(context) {
                Poll::Ready(Taken::Events(events)) => {
                    for event in events {
                        this.blocks.extend(event.encoded(this.subscription.form()));
                        if event.reset.is_some() {
                            this.blocks.push_back(connected(this.channel));
                        }
                    }
                }
                Poll::Ready(Taken::Slow(position)) => {
                    this.blocks.push_back(reset(this.channel, position, ResetReason::Slow));
                    this.end = Some(End::Slow);
                }
                Poll::Ready(Taken::Closed) => this.end = Some(End::Closed),
                Poll::Pending => {
                    ready!(this.beats.poll_tick(context));
                    this.blocks.push_back(this.beat.clone());
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
