//! How closing a handle ended, for whoever wants to know.

use tokio::sync::watch;

use crate::error::CloseError;

/// Where the end of a handle is announced. A failure that nobody waits for is logged.
#[derive(Clone, Debug)]
pub(crate) struct Closed(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    outcome: Option<Result<(), CloseError>>,
    /// How many wait for it.
    waiting: usize,
}

impl Closed {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(State::default()))
    }

    /// For a handle that is being closed, or will be.
    pub(crate) fn wait(&self) -> Ended {
        self.0.send_modify(|state| state.waiting += 1);
        Ended { of: self.clone(), heard: false }
    }

    pub(crate) fn is_announced(&self) -> bool {
        self.0.borrow().outcome.is_some()
    }

    /// Tells how closing ended. Only the first time counts.
    pub(crate) fn announce(&self, outcome: Result<(), CloseError>) {
        let mut unheard = None;
        self.0.send_modify(|state| {
            if state.outcome.is_none() {
                unheard = outcome.clone().err().filter(|_| state.waiting == 0);
                state.outcome = Some(outcome);
            }
        });
        if let Some(error) = unheard {
            warn(&error, NOBODY_WAITED);
        }
    }
}

/// Waits for the end of a handle.
#[derive(Debug)]
pub(crate) struct Ended {
    of: Closed,
    heard: bool,
}

impl Ended {
    pub(crate) async fn outcome(mut self) -> Result<(), CloseError> {
        let mut announced = self.of.0.subscribe();
        // The sender is held here, so it is never gone.
        let state = announced.wait_for(|state| state.outcome.is_some()).await;
        let outcome = state.ok().and_then(|state| state.outcome.clone()).unwrap_or(Ok(()));
        self.heard = true;
        outcome
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let mut unheard = None;
        self.of.0.send_if_modified(|state| {
            state.waiting -= 1;
            if let (false, Some(Err(error))) = (self.heard, &state.outcome) {
                unheard = Some(error.clone());
            }
            false
        });
        if let Some(error) = unheard {
            warn(&error, NOBODY_WAITED);
        }
    }
}

const NOBODY_WAITED: &str = "a session was closed, but not cleanly, and nobody waited for it";

/// Ids and numbers only: what events say is nobody else's.
pub(crate) fn warn(error: &CloseError, what: &str) {
    let unstored = error.unstored;
    tracing::warn!(
        session = %error.id,
        kind = error.kind,
        first = unstored.map(|range| range.offset),
        events = unstored.and_then(|range| range.length),
        "{what}",
    );
}
