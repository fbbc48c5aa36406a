//! The events that can be saved of a log, as they are read out.

use tokio::sync::{mpsc, oneshot};
use turnkeep_log::{Event, SessionHeader, SessionId};

use super::Recovery;
use crate::{error::SalvageError, seam::Cancel, verify::Verification};

/// How many parts of a log are read ahead of whoever stores them.
const AHEAD: usize = 2;

/// What can be saved of a log: known as a whole, read out part by part.
///
/// Dropping it ends the reading.
#[derive(Debug)]
pub struct Salvage {
    start: SalvageStart,
    parts: mpsc::Receiver<Result<Vec<Event>, SalvageError>>,
    /// What did not fit the last batch.
    rest: std::vec::IntoIter<Event>,
}

/// What is known of a salvage before its events are read out.
#[derive(Debug)]
pub(crate) struct SalvageStart {
    pub(crate) header: Option<SessionHeader>,
    /// How many events will come.
    pub(crate) events: u64,
    /// How many of them are from behind the place where readers stop.
    pub(crate) salvaged: u64,
    /// Why there are no more.
    pub(crate) stopped: Option<String>,
    pub(crate) first_time: Option<i64>,
    pub(crate) verification: Verification,
}

/// Where the blocking side puts what it reads.
pub(crate) struct Feed {
    start: Option<oneshot::Sender<Result<SalvageStart, SalvageError>>>,
    parts: mpsc::Sender<Result<Vec<Event>, SalvageError>>,
}

/// A salvage that begins once its feed says how.
pub(crate) fn start() -> (Feed, impl Future<Output = Option<Result<Salvage, SalvageError>>>) {
    let (tell, told) = oneshot::channel::<Result<SalvageStart, SalvageError>>();
    let (send, parts) = mpsc::channel(AHEAD);
    let salvage = async move {
        let start = told.await.ok()?;
        Some(start.map(|start| Salvage { start, parts, rest: Vec::new().into_iter() }))
    };
    (Feed { start: Some(tell), parts: send }, salvage)
}

impl Feed {
    /// Says what will come.
    pub(crate) fn begin(&mut self, start: SalvageStart) {
        if let Some(tell) = self.start.take() {
            let _ = tell.send(Ok(start));
        }
    }

    /// Hands over the next events; whether anyone still wants more.
    pub(crate) fn put(&self, events: Vec<Event>) -> bool {
        self.parts.blocking_send(Ok(events)).is_ok()
    }

    /// Says that there is nothing, or no more, and why.
    pub(crate) fn fail(&mut self, error: SalvageError) {
        match self.start.take() {
            Some(tell) => drop(tell.send(Err(error))),
            None => drop(self.parts.blocking_send(Err(error))),
        }
    }
}

impl Salvage {
    /// The log's header, when it can be read. Its id is the one it says, which need not be the one
    /// that the log was found by.
    #[must_use]
    pub fn header(&self) -> Option<&SessionHeader> {
        self.start.header.as_ref()
    }

    /// How many events there are to be saved.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.start.events
    }

    /// The time of the first of them.
    #[must_use]
    pub fn first_time(&self) -> Option<i64> {
        self.start.first_time
    }

    /// What is wrong with the log.
    #[must_use]
    pub fn verification(&self) -> &Verification {
        &self.start.verification
    }

    /// The next events, about as many as take this many bytes; none once all have come.
    ///
    /// # Errors
    ///
    /// `io` when the log cannot be read any more, or is not the one any more that it was.
    pub async fn batch(&mut self, bytes: usize) -> Result<Vec<Event>, SalvageError> {
        let mut batch = Vec::new();
        let mut taken = 0;
        loop {
            for event in self.rest.by_ref() {
                taken += event.text().len();
                batch.push(event);
                if taken >= bytes {
                    return Ok(batch);
                }
            }
            match self.parts.recv().await {
                Some(part) => self.rest = part?.into_iter(),
                None => return Ok(batch),
            }
        }
    }

    pub(super) fn finish(self, into: SessionId, kept: u64, header_lost: bool) -> Recovery {
        let SalvageStart { salvaged, stopped, verification, .. } = self.start;
        let left = verification.found.saturating_sub(kept);
        Recovery { into, kept, salvaged, left, stopped, header_lost, verification }
    }
}

/// Whether saving was called off.
pub(crate) fn check(cancel: &Cancel) -> Result<(), crate::error::Cancelled> {
    crate::shell::check(cancel, "recover")
}
