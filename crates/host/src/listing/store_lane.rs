//! The store's sessions, one after the other.

use std::collections::VecDeque;

use turnkeep_store::{Cancel, ListQuery, SessionEntry, error::ListError};

use super::{ListRequest, cursor::Position, summary::SessionSummary};
use crate::source::{Glimpse, LogSource};

/// The store's sessions in the store's order, read in batches.
#[derive(Debug)]
pub(super) struct StoreLane<'a> {
    log: Option<&'a LogSource>,
    query: ListQuery,
    batch: VecDeque<(SessionEntry, Option<Glimpse>)>,
    /// How many sessions of the batch were handed out.
    taken: usize,
    /// Where the batch after this one starts; the end when there is none.
    after: Position<String>,
}

impl<'a> StoreLane<'a> {
    pub(super) fn new(log: Option<&'a LogSource>, request: &ListRequest) -> Self {
        let after = match log {
            Some(_) => request.cursor.store.clone(),
            None => Position::End,
        };
        let query = ListQuery {
            cursor: None,
            limit: Some(request.limit),
            cwd: request.cwd.clone(),
            states: request.states.clone(),
        };
        Self { log, query, batch: VecDeque::new(), taken: 0, after }
    }

    /// The next session, which stays.
    pub(super) async fn peek(&mut self) -> Result<Option<&SessionEntry>, ListError> {
        while self.batch.is_empty() {
            let Some(log) = self.log else { return Ok(None) };
            self.query.cursor = match &self.after {
                Position::Start => None,
                Position::After(cursor) => Some(cursor.clone()),
                Position::End => return Ok(None),
            };
            let list = log.store().list(&self.query, &Cancel::never()).await?;
            let glimpses = log.glimpses(&list.entries).await;
            self.batch = list.entries.into_iter().zip(glimpses).collect();
            self.taken = 0;
            self.after = list.cursor.map_or(Position::End, Position::After);
        }
        Ok(self.batch.front().map(|(entry, _)| entry))
    }

    /// Hands out the session that [`peek`](Self::peek) has shown.
    pub(super) fn next(&mut self) -> Option<SessionSummary> {
        let (entry, glimpse) = self.batch.pop_front()?;
        self.taken += 1;
        Some(SessionSummary::of_entry(&entry, glimpse))
    }

    /// How far the lane was read. The store only says where a whole batch ends, so for one that
    /// was left in the middle it is asked for just the part that was taken.
    pub(super) async fn position(self) -> Result<Position<String>, ListError> {
        if self.batch.is_empty() {
            return Ok(self.after);
        }
        let start = || self.query.cursor.clone().map_or(Position::Start, Position::After);
        let Some(log) = self.log.filter(|_| self.taken > 0) else { return Ok(start()) };
        let part = ListQuery { limit: Some(self.taken), ..self.query.clone() };
        let list = log.store().list(&part, &Cancel::never()).await?;
        Ok(list.cursor.map_or(Position::End, Position::After))
    }
}

/// When a session last changed, in milliseconds since the epoch.
pub(super) fn time(entry: &SessionEntry) -> Option<i64> {
    let stat = entry.stat.as_ref()?;
    stat.modified_at.or_else(|| i64::try_from(stat.header.created_at).ok())
}
