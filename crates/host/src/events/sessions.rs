//! When something last happened in each session.

use std::collections::HashMap;

/// How many sessions are told apart.
const MAX_SESSIONS: usize = 4096;

/// The number of the newest event of each session.
#[derive(Debug, Default)]
pub(super) struct LastEvents {
    by_session: HashMap<String, u64>,
    /// No session that is not listed had an event after this one.
    floor: u64,
}

impl LastEvents {
    /// Notes the event of this number.
    pub(super) fn note(&mut self, session: String, number: u64) {
        if self.by_session.len() >= MAX_SESSIONS && !self.by_session.contains_key(&session) {
            self.note_unknown(number);
        }
        self.by_session.insert(session, number);
    }

    /// Notes an event that may be of any session.
    pub(super) fn note_unknown(&mut self, number: u64) {
        self.by_session.clear();
        self.floor = number;
    }

    /// The newest event that may have been the session's. As long as this stays the same, nothing
    /// happened in it.
    pub(super) fn of(&self, session: &str) -> u64 {
        self.by_session.get(session).copied().unwrap_or(self.floor)
    }
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
