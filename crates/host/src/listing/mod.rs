//! All sessions in one list: the store's and the upstream's, newest first.
//!
//! Each of the two is a *lane* that hands out its sessions in its own order; the list takes from
//! whichever lane's next session is newer. A cursor says how far each lane was read. One lane that
//! is down never hides the other: the list says so and goes on.

mod cursor;
mod store_lane;
mod summary;
mod upstream_lane;

use serde::Serialize;
use turnkeep_log::SessionId;
use turnkeep_store::{SessionState, error::ListError};

pub(crate) use cursor::ListCursor;
use store_lane::StoreLane;
pub(crate) use summary::SessionSummary;
use upstream_lane::UpstreamLane;

use crate::{driver::Sources, failure::Failure};

/// How many sessions one request looks at, however few of them match.
const MAX_LOOKED_AT: usize = 2000;

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListRequest {
    pub(crate) cursor: ListCursor,
    pub(crate) limit: usize,
    /// Only sessions with this in their id, title or directory, whatever the case.
    pub(crate) text: Option<String>,
    pub(crate) cwd: Option<String>,
    /// Only sessions in one of these states; in any when empty.
    pub(crate) states: Vec<SessionState>,
}

/// One page of the list.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    sessions: Vec<SessionSummary>,
    /// Where the next page starts.
    cursor: Option<String>,
    /// How the upstream answered; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'static str>,
}

impl ListRequest {
    fn takes(&self, summary: &SessionSummary) -> bool {
        let in_directory = self.cwd.as_ref().is_none_or(|cwd| summary.cwd.as_ref() == Some(cwd));
        let in_state = self.states.is_empty()
            || self.states.iter().any(|state| state.as_str() == summary.state);
        in_directory && in_state && self.text.as_ref().is_none_or(|text| summary.mentions(text))
    }
}

/// Reads one page of the list.
pub(crate) async fn list(sources: &Sources, request: &ListRequest) -> Result<Listing, Failure> {
    let mut store = StoreLane::new(sources.log.as_deref(), request);
    let mut upstream = UpstreamLane::new(sources.upstream(), &request.cursor, request.limit);
    let mut sessions = Vec::new();
    for _ in 0..MAX_LOOKED_AT {
        if sessions.len() == request.limit {
            break;
        }
        let stored = store.peek().await.map_err(|error| failure(&error))?.map(store_lane::time);
        let served = upstream.peek().await.map(|session| session.updated_at);
        let summary = match (stored, served) {
            (None, None) => break,
            (Some(_), None) => store.next(),
            // A stored session without a time stays where the store put it.
            (Some(stored), Some(served)) if stored.is_none_or(|stored| stored >= served) => {
                store.next()
            }
            (_, Some(_)) => match upstream.next().await {
                Some(summary) if is_stored(sources, &summary.id).await => None,
                summary => summary,
            },
        };
        sessions.extend(summary.filter(|summary| request.takes(summary)));
    }
    let cursor = ListCursor {
        store: store.position().await.map_err(|error| failure(&error))?,
        upstream: upstream.position(),
    };
    let unread = !cursor.store.is_end() || !(cursor.upstream.is_end() || upstream.is_down());
    Ok(Listing {
        sessions,
        cursor: unread.then(|| cursor.encode()),
        upstream: sources.upstream().map(|_| upstream.status()),
    })
}

/// Whether the store holds a session of this id, whatever its state. A part of the store that
/// cannot be read hides nothing of the upstream's.
async fn is_stored(sources: &Sources, id: &str) -> bool {
    match (&sources.log, SessionId::new(id)) {
        (Some(log), Some(id)) => match log.stat(&id).await {
            Ok(stat) => stat.is_some(),
            Err(error) => error.kind() != "io",
        },
        _ => false,
    }
}

fn failure(error: &ListError) -> Failure {
    tracing::warn!(kind = error.kind(), "store list");
    match error {
        ListError::BadListCursor(_) => Failure::bad_request("invalid cursor"),
        ListError::Cancelled(_) | ListError::IoFailure(_) => Failure::of_kind(error.kind()),
    }
}
