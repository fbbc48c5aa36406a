//! The events of one stored session, read for a client as it takes them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnkeep_log::{Event, Seq, SessionId};
use turnkeep_store::{Cancel, EventBatches, EventRange, Revision, SessionHandle, error::ReadError};

use crate::source::{LogError, LogSource};

/// How often a followed log is looked at after something came, and how rarely it is at last while
/// nothing does.
const LOOK_EVERY: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_millis(400);

/// A log, open to be read in pieces.
#[derive(Debug)]
pub(crate) struct LogReader {
    handle: Arc<dyn SessionHandle>,
    batches: EventBatches,
}

impl LogReader {
    /// Opens a session of the store, to read these events.
    pub(crate) async fn open(
        log: &LogSource,
        id: &SessionId,
        range: EventRange,
    ) -> Result<Self, LogError> {
        Ok(Self { handle: log.open(id).await?, batches: EventBatches::new(range) })
    }

    /// The next events; none at the end of the range or of the log.
    pub(crate) async fn next(&mut self) -> Result<Vec<Event>, ReadError> {
        self.batches.next(&*self.handle, &Cancel::never()).await
    }

    /// Whether the range is at its end, whatever comes to the log.
    pub(crate) fn is_done(&self) -> bool {
        self.batches.is_done()
    }
}

/// What comes to one who follows a log.
#[derive(Debug)]
pub(crate) enum Step {
    /// These events.
    Events(Vec<Event>),
    /// Nothing for a while.
    Quiet,
    /// Nothing will come any more, for a reason of this kind.
    Failed(&'static str),
    /// The host stops.
    Closed,
}

/// A log as it grows.
#[derive(Debug)]
pub(crate) struct LogFollower {
    log: Arc<LogSource>,
    reader: LogReader,
    /// The newest event that was read. A log that has another one in its place is another log.
    newest: Option<Event>,
    /// The log as it was before it was last read to its end.
    seen: Option<Revision>,
    pause: Duration,
}

impl LogFollower {
    /// Follows a session from behind this event; from its beginning when there is none.
    ///
    /// # Errors
    ///
    /// Those of opening and reading it; `None` when it has no such event.
    pub(crate) async fn start(
        log: &Arc<LogSource>,
        id: &SessionId,
        after: Option<Seq>,
    ) -> Result<Option<Self>, LogError> {
        let first = after.map_or(Seq(0), |after| after.plus(1));
        let reader = LogReader::open(log, id, EventRange::from(first)).await?;
        let newest = match after {
            None => {
                // What is wrong with the log is told before anything is sent.
                let nothing = EventRange { offset: 0, length: Some(1) };
                reader.handle.read(nothing, &Cancel::never()).await?;
                None
            }
            Some(Seq(after)) => {
                let range = EventRange { offset: after, length: Some(1) };
                let Some(event) = reader.handle.read(range, &Cancel::never()).await?.pop() else {
                    return Ok(None);
                };
                Some(event)
            }
        };
        let (log, pause) = (Arc::clone(log), *LOOK_EVERY.start());
        Ok(Some(Self { log, reader, newest, seen: None, pause }))
    }

    /// Waits for what comes next, for this long at most.
    pub(crate) async fn next(&mut self, patience: Duration, stop: &CancellationToken) -> Step {
        let until = Instant::now() + patience;
        loop {
            if stop.is_cancelled() {
                return Step::Closed;
            }
            match self.look().await {
                Ok(events) if !events.is_empty() => {
                    self.pause = *LOOK_EVERY.start();
                    return Step::Events(events);
                }
                Ok(_) => {}
                Err(kind) => return Step::Failed(kind),
            }
            let now = Instant::now();
            if now >= until {
                return Step::Quiet;
            }
            tokio::select! {
                () = tokio::time::sleep_until(until.min(now + self.pause)) => {}
                () = stop.cancelled() => return Step::Closed,
            }
            self.pause = (self.pause * 2).min(*LOOK_EVERY.end());
        }
    }

    /// What has come; nothing when the log has not changed.
    async fn look(&mut self) -> Result<Vec<Event>, &'static str> {
        let handle = &self.reader.handle;
        let stat = self.log.stat(handle.id()).await.map_err(|error| error.kind())?;
        let stat = stat.filter(|stat| stat.header == *handle.header()).ok_or("not_found")?;
        if self.seen.as_ref() == Some(&stat.revision) {
            return Ok(Vec::new());
        }
        if let Some(newest) = &self.newest {
            let range = EventRange { offset: newest.seq().0, length: Some(1) };
            let there = handle.read(range, &Cancel::never()).await.map_err(|error| error.kind())?;
            if there.first() != Some(newest) {
                return Err("not_found");
            }
        }
        let events = self.reader.next().await.map_err(|error| error.kind())?;
        match events.last() {
            Some(last) => self.newest = Some(last.clone()),
            None => self.seen = Some(stat.revision),
        }
        Ok(events)
    }
}

/// Events as lines, each a JSON text and a line feed.
pub(crate) fn lines(events: &[Event]) -> Bytes {
    let bytes = events.iter().map(|event| event.text().len() + 1).sum();
    let mut lines = String::with_capacity(bytes);
    for event in events {
        lines.push_str(event.text());
        lines.push('\n');
    }
    lines.into()
}

/// Events as blocks of an event stream: the seq is the id, the JSON text the data.
pub(crate) fn blocks(events: &[Event]) -> Bytes {
    let bytes = events.iter().map(|event| event.text().len() + 40).sum();
    let mut blocks = String::with_capacity(bytes);
    for event in events {
        blocks.push_str("id: ");
        blocks.push_str(&event.seq().to_string());
        blocks.push_str("\ndata: ");
        // A carriage return between two values, all white space that JSON has besides line feeds,
        // would end the line.
        if event.text().contains('\r') {
            blocks.push_str(&event.text().replace('\r', " "));
        } else {
            blocks.push_str(event.text());
        }
        blocks.push_str("\n\n");
    }
    blocks.into()
}
