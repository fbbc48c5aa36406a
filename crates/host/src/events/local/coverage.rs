//! From which event on what happens in a stored session is published.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use turnkeep_log::{Seq, SessionId};

/// Of how many sessions is noted where they have to be followed from. A page of one more is not
/// dated.
const MAX_SESSIONS: usize = 1 << 16;

/// What pages and the watch agree on.
///
/// A page that is dated promises that whatever happens to its session after the page was read is
/// published after its date. The watch reads a session only once it has changed. So the page leaves
/// a note of the event it ends before, and the watch begins there, or is known to have begun
/// earlier.
#[derive(Debug, Default)]
pub(crate) struct Coverage(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_on: bool,
    starts: HashMap<SessionId, Start>,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    /// It has not been read. When it is, everything from this event on has to be published.
    Due(Seq),
    /// It is followed, and everything from this event on has been published or will be.
    From(Seq),
}

impl Coverage {
    /// Whether everything is published that happens in a session from this event on, now that this
    /// was asked.
    pub(crate) fn covers(&self, id: &SessionId, at: Seq) -> bool {
        let mut state = self.state();
        if !state.is_on {
            return false;
        }
        let is_full = state.starts.len() >= MAX_SESSIONS;
        match state.starts.get_mut(id) {
            Some(Start::From(first)) => *first <= at,
            Some(Start::Due(first)) => {
                *first = at.min(*first);
                true
            }
            None if is_full => false,
            None => {
                state.starts.insert(id.clone(), Start::Due(at));
                true
            }
        }
    }

    /// Nothing is covered yet, and everything that changes will be.
    pub(super) fn begin(&self) {
        *self.state() = State { is_on: true, starts: HashMap::new() };
    }

    /// Nothing is covered any more.
    pub(super) fn end(&self) {
        *self.state() = State::default();
    }

    /// From which event on a session has to be followed that is going to be, if anything says so.
    pub(super) fn due(&self, id: &SessionId) -> Option<Seq> {
        match self.state().starts.get(id) {
            Some(Start::Due(first) | Start::From(first)) => Some(*first),
            None => None,
        }
    }

    /// Follows a session from this event on, unless it has to be followed from an earlier one.
    pub(super) fn follow(&self, id: &SessionId, from: Seq) -> Result<(), Seq> {
        let mut state = self.state();
        match state.starts.get(id) {
            Some(Start::Due(first)) if *first < from => Err(*first),
            _ => {
                state.starts.insert(id.clone(), Start::From(from));
                Ok(())
            }
        }
    }

    /// A session is not followed any more; everything before this event has been published.
    pub(super) fn pause(&self, id: &SessionId, next: Seq) {
        self.state().starts.insert(id.clone(), Start::Due(next));
    }

    /// A session is gone.
    pub(super) fn forget(&self, id: &SessionId) {
        self.state().starts.remove(id);
    }

    /// Nothing can panic while this is locked; a poisoned lock would be as good as any.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_log::{Seq, SessionId};

    use super::Coverage;

    fn id(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    #[test]
    fn nothing_is_covered_while_nobody_watches() {
        let coverage = Coverage::default();
        assert!(!coverage.covers(&id("a"), Seq(5)));
        coverage.begin();
        assert!(coverage.covers(&id("a"), Seq(5)));
        coverage.end();
        assert!(!coverage.covers(&id("a"), Seq(5)));
    }

    #[test]
    fn the_oldest_page_says_where_a_session_is_followed_from() {
        let coverage = Coverage::default();
        coverage.begin();
        for at in [7, 5, 9] {
            assert!(coverage.covers(&id("a"), Seq(at)));
        }
        assert_eq!(coverage.due(&id("a")), Some(Seq(5)));
        assert_eq!(coverage.due(&id("b")), None);
        // A page came while the session was being read.
        assert_eq!(coverage.follow(&id("a"), Seq(8)), Err(Seq(5)));
        assert_eq!(coverage.follow(&id("a"), Seq(5)), Ok(()));
    }

    #[test]
    fn a_page_from_before_a_session_was_followed_is_not_covered() {
        let coverage = Coverage::default();
        coverage.begin();
        coverage.follow(&id("a"), Seq(6)).unwrap();
        assert!(coverage.covers(&id("a"), Seq(6)) && coverage.covers(&id("a"), Seq(60)));
        assert!(!coverage.covers(&id("a"), Seq(5)));
        coverage.pause(&id("a"), Seq(61));
        assert!(coverage.covers(&id("a"), Seq(60)));
        assert_eq!(coverage.due(&id("a")), Some(Seq(60)));
        coverage.forget(&id("a"));
        assert_eq!(coverage.due(&id("a")), None);
    }
}
