//! The upstream's sessions, one after the other.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use super::{
    cursor::{ListCursor, Position, Served},
    summary::SessionSummary,
};
use crate::upstream::{Trouble, Upstream, UpstreamSession};

/// How long the list waits for the upstream, each time it asks.
const DEADLINE: Duration = Duration::from_secs(5);

/// How long one page of the list waits, in all, for what its sessions' own entries do not say. A
/// server that was just started takes seconds for the first answer.
const DETAILS_DEADLINE: Duration = Duration::from_secs(1);

/// How many sessions are asked for at once at most.
const MAX_BATCH: usize = 10_000;

/// The upstream's sessions, newest first, read in batches.
#[derive(Debug)]
pub(super) struct UpstreamLane<'a> {
    upstream: Option<&'a Upstream>,
    batch: VecDeque<UpstreamSession>,
    batch_size: usize,
    position: Position<Served>,
    /// Whether the upstream has handed out its last session.
    drained: bool,
    trouble: Option<Trouble>,
    told_by: Option<Instant>,
}

impl<'a> UpstreamLane<'a> {
    pub(super) fn new(
        upstream: Option<&'a Upstream>,
        cursor: &ListCursor,
        batch_size: usize,
    ) -> Self {
        let position = match upstream {
            Some(_) => cursor.upstream.clone(),
            None => Position::End,
        };
        let drained = position.is_end();
        Self {
            upstream,
            batch: VecDeque::new(),
            batch_size,
            position,
            drained,
            trouble: None,
            told_by: None,
        }
    }

    /// The next session, which stays. Trouble ends the lane.
    pub(super) async fn peek(&mut self) -> Option<&UpstreamSession> {
        if self.batch.is_empty() && !self.drained && self.trouble.is_none() {
            self.fill().await;
        }
        self.batch.front()
    }

    async fn fill(&mut self) {
        let Some(upstream) = self.upstream else { return };
        let last = match &self.position {
            Position::After(last) => Some(last),
            Position::Start | Position::End => None,
        };
        let older_than = last.map(|last| last.updated.saturating_add(1));
        // The sessions of the last one's own time come again and are dropped here.
        let mut wanted = self.batch_size + last.map_or(0, |last| last.ids.len());
        while self.batch.is_empty() && !self.drained {
            let asked = tokio::time::timeout(DEADLINE, upstream.sessions(wanted, older_than)).await;
            match asked.unwrap_or(Err(Trouble::Unavailable)) {
                Ok(page) => {
                    let unseen = page.sessions.into_iter().filter(|session| {
                        !last.is_some_and(|last| last.covers(session.updated_at, &session.id))
                    });
                    self.batch = unseen.collect();
                    self.drained = !page.more || wanted >= MAX_BATCH;
                }
                Err(trouble) => {
                    tracing::warn!(trouble = trouble.label(), "upstream list");
                    self.trouble = Some(trouble);
                    return;
                }
            }
            // Nothing but sessions that were seen or cannot be made out: look further at once.
            wanted = wanted.saturating_mul(4).min(MAX_BATCH);
        }
    }

    /// Hands out the session that [`peek`](Self::peek) has shown.
    pub(super) async fn next(&mut self) -> Option<SessionSummary> {
        let mut session = self.batch.pop_front()?;
        let before = std::mem::take(&mut self.position);
        self.position = Position::After(Served::next(before, session.updated_at, &session.id));
        if let Some(upstream) = self.upstream {
            // Without an answer it is listed as an ordinary session; asking for it tells.
            let telling = upstream.tell(&mut session);
            let _ = tokio::time::timeout_at(self.told_by(), telling).await;
        }
        Some(SessionSummary::of_upstream(session))
    }

    /// Until when the list waits for details, from the first one asked for.
    fn told_by(&mut self) -> Instant {
        *self.told_by.get_or_insert_with(|| Instant::now() + DETAILS_DEADLINE)
    }

    /// How far the lane was read.
    pub(super) fn position(&self) -> Position<Served> {
        if self.drained && self.batch.is_empty() { Position::End } else { self.position.clone() }
    }

    /// Whether the lane ended before its time.
    pub(super) fn is_down(&self) -> bool {
        self.trouble.is_some()
    }

    /// How the upstream answered, by a fixed name.
    pub(super) fn status(&self) -> &'static str {
        match self.trouble {
            None => "ok",
            Some(Trouble::Unavailable) => "unavailable",
            Some(Trouble::LoginRefused) => "login_refused",
            Some(_) => "failed",
        }
    }
}
