//! `/api/global/event/ws` and `/api/event/ws`: events over WebSockets.

use std::{
    future::poll_fn,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    body::Body,
    extract::{
        FromRequestParts as _, Request,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code},
    },
    http::Response,
};
use bytes::Bytes;
use futures_util::SinkExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::{Asked, events::Asking, log::RequestLog, route::Channel};
use crate::{
    events::{
        EventTiming, Hub,
        client::{Start, Subscription, Taken},
        event::Wire,
        frames,
        link::Unavailable,
    },
    failure::Failure,
    host::Host,
};

/// Clients have nothing to say but that they leave.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// A client that has not been heard of for so many heartbeats is gone: each is a question.
const MISSED_HEARTBEATS: u32 = 4;

/// Takes over the connection.
pub(super) async fn open(
    host: &Arc<Host>,
    channel: Channel,
    asked: &Asked,
    request: Request,
    log: &mut RequestLog,
) -> Result<Response<Body>, Failure> {
    let (mut parts, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
    let upgrade = upgrade.map_err(|_| Failure::of_kind("upgrade_required"))?;
    let asking = Asking::read(channel, asked);
    log.has_directory = asking.directory.is_some();
    let host = Arc::clone(host);
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let mut socket = Socket(socket);
        let leave = serve(&mut socket, &host, asking).await;
        socket.close(leave, host.live().timing().farewell).await;
    }))
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// The client has left.
    Gone,
    /// The client is too slow.
    Slow,
    /// The host stops.
    Closed,
    /// There is nothing to watch.
    Unavailable(&'static str),
}

impl Leave {
    fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Slow => (close_code::AGAIN, "Message stream client is too slow"),
            Self::Closed => (close_code::AWAY, "the host stops"),
            Self::Unavailable(reason) => (close_code::ERROR, reason),
        };
        Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })
    }
}

async fn serve(socket: &mut Socket, host: &Arc<Host>, asking: Asking) -> Leave {
    let (live, sources) = (host.live(), host.sources());
    if sources.opencode.is_none() && sources.log.is_none() {
        return socket.unavailable("OpenCode service unavailable", None).await;
    }
    let wire = Wire::Socket(
        asking
            .directory
            .as_deref()
            .map(Arc::from)
            .filter(|_| asking.channel() == frames::Channel::Directory),
    );
    let watch = async {
        // What is stored is worth watching whatever the upstream does.
        if sources.log.is_none() {
            live.wait_for_connection().await?;
        }
        asking.watch(host, wire).await
    };
    let watch = tokio::select! {
        watch = watch => watch,
        () = socket.left() => return Leave::Gone,
    };
    let watch = match watch {
        Ok(watch) => watch,
        Err(Unavailable::Status(status) | Unavailable::Login(status)) => {
            return socket.unavailable("OpenCode event stream unavailable", Some(status)).await;
        }
        Err(Unavailable::Refused | Unavailable::Silent) => {
            return socket.unavailable("Failed to connect to OpenCode event stream", None).await;
        }
    };
    let Some((subscription, start)) = live.hub().subscribe(watch) else {
        return Leave::Closed;
    };
    let expects_upstream = sources.opencode.is_some();
    Watching { subscription, start, is_ready: false, is_warned: false, expects_upstream }
        .run(socket, live.hub(), live.timing())
        .await
}

/// A client that watches.
struct Watching {
    subscription: Subscription,
    start: Start,
    /// Whether it was told that it has what it missed.
    is_ready: bool,
    /// Whether it was told that it is slow, and has not caught up since.
    is_warned: bool,
    /// Whether there is an upstream whose silence must not be covered up.
    expects_upstream: bool,
}

impl Watching {
    async fn run(mut self, socket: &mut Socket, hub: &Hub, timing: &EventTiming) -> Leave {
        let every = timing.socket_heartbeat;
        let mut beats = interval_at(Instant::now() + every, every);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        let mut messages = self.first();
        loop {
            let sent = tokio::select! {
                sent = socket.send(&mut messages) => sent,
                () = self.subscription.dropped() => return Leave::Slow,
            };
            if sent.is_err() {
                return Leave::Gone;
            }
            messages.extend(self.warning());
            if !messages.is_empty() {
                continue;
            }
            tokio::select! {
                taken = poll_fn(|context| self.subscription.poll_take(context)) => match taken {
                    Taken::Events(events) => {
                        for event in events {
                            if event.is_new(&self.start) {
                                messages.extend(self.ready());
                            }
                            messages.extend(event.encoded(self.subscription.form()).map(text));
                            if event.reset.is_some() && self.channel() == frames::Channel::Global {
                                messages.push(ready_message(self.channel()));
                            }
                        }
                        if self.subscription.has_passed(&self.start) {
                            messages.extend(self.ready());
                        }
                    }
                    Taken::Slow(_) => return Leave::Slow,
                    Taken::Closed => return Leave::Closed,
                },
                _ = beats.tick() => {
                    if heard.elapsed() > every * MISSED_HEARTBEATS {
                        return Leave::Gone;
                    }
                    if !self.expects_upstream || hub.is_connected() {
                        messages.push(text(frames::socket_heartbeat(now_ms())));
                    }
                    messages.push(Message::Ping(Bytes::new()));
                }
                is_there = socket.hear() => {
                    if !is_there {
                        return Leave::Gone;
                    }
                    heard = Instant::now();
                }
            }
        }
    }

    fn channel(&self) -> frames::Channel {
        self.subscription.form().channel
    }

    fn first(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        if let Some(reason) = self.start.reset {
            let directory = match &self.subscription.form().wire {
                Wire::Socket(directory) => directory.clone(),
                Wire::Sse => None,
            };
            let position = Some(self.start.position);
            let message = frames::message(position, directory.as_deref(), &reason.payload());
            messages.push(text(message));
        }
        if self.subscription.has_passed(&self.start) {
            messages.extend(self.ready());
        }
        messages
    }

    /// The message that what was missed has been sent, the first time.
    fn ready(&mut self) -> Option<Message> {
        let was_ready = std::mem::replace(&mut self.is_ready, true);
        (!was_ready).then(|| ready_message(self.channel()))
    }

    /// The message that the client is slow, once for each time it is.
    fn warning(&mut self) -> Option<Message> {
        let (waiting, most) = self.subscription.backlog();
        let is_slow = waiting > most / 4 * 3;
        let was_warned = std::mem::replace(&mut self.is_warned, is_slow);
        (is_slow && !was_warned).then(|| text(frames::backpressure(waiting, most).into()))
    }
}

/// A connection, as far as it is needed here.
struct Socket(WebSocket);

impl Socket {
    /// Sends messages in one go, and takes those out that are on their way.
    async fn send(&mut self, messages: &mut Vec<Message>) -> Result<(), axum::Error> {
        for message in messages.drain(..) {
            self.0.feed(message).await?;
        }
        self.0.flush().await
    }

    /// Waits for the client to say something; `false` when it leaves.
    async fn hear(&mut self) -> bool {
        !matches!(self.0.recv().await, None | Some(Err(_) | Ok(Message::Close(_))))
    }

    /// Waits until the client leaves.
    async fn left(&mut self) {
        while self.hear().await {}
    }

    async fn unavailable(&mut self, reason: &'static str, status: Option<u16>) -> Leave {
        let message = match status {
            Some(status) => format!("{reason} ({status})"),
            None => reason.to_owned(),
        };
        match self.send(&mut vec![text(frames::error(&message).into())]).await {
            Ok(()) => Leave::Unavailable(reason),
            Err(_) => Leave::Gone,
        }
    }

    /// Says farewell, and waits a moment for the answer: a connection that is closed at once may
    /// take along what was said.
    async fn close(&mut self, leave: Leave, within: Duration) {
        let Some(frame) = leave.frame() else { return };
        let farewell = async {
            if self.0.send(Message::Close(Some(frame))).await.is_ok() {
                while self.0.recv().await.is_some_and(|heard| heard.is_ok()) {}
            }
        };
        let _ = timeout(within, farewell).await;
    }
}

fn ready_message(channel: frames::Channel) -> Message {
    Message::Text(Utf8Bytes::from_static(frames::ready(channel)))
}

/// A message of text that is known to be one.
fn text(bytes: Bytes) -> Message {
    Message::Text(Utf8Bytes::try_from(bytes).unwrap_or_default())
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
