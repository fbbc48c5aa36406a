//! One page of a listing, whatever is listed.

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use turnkeep_log::{HeaderError, SessionHeader, SessionId};

use crate::{
    error::{BadListCursor, Cancelled, ListError},
    seam::{Cancel, ListQuery, Revision, SessionEntry, SessionList, SessionStat, SessionState},
    segment::{decode_id, encode_id},
};

/// A session that is only in the memory of its store.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) header: Arc<SessionHeader>,
    pub(crate) revision: Revision,
}

impl Pending {
    pub(crate) fn stat(&self) -> SessionStat {
        SessionStat {
            header: (*self.header).clone(),
            revision: self.revision.clone(),
            event_count: None,
            size_bytes: None,
            modified_at: None,
            hints: None,
        }
    }
}

/// Something that is stored, and may become an entry.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) id: SessionId,
    /// When it last changed, in milliseconds since the epoch.
    pub(crate) modified_at: i64,
    /// What else the backend knows of it.
    pub(crate) what: T,
}

/// The entry of a stored session, by the line that is stored as its header.
pub(crate) fn entry(
    id: &SessionId,
    line: &str,
    stat: impl FnOnce(SessionHeader) -> SessionStat,
) -> SessionEntry {
    let (stat, state, reason) = match SessionHeader::parse(line, Some(id)) {
        Ok(header) => (Some(stat(header)), SessionState::Ok, None),
        Err(error @ HeaderError::Unsupported { newer: true, .. }) => {
            (None, SessionState::Newer, Some(error.to_string()))
        }
        Err(error @ HeaderError::Unsupported { newer: false, .. }) => {
            (None, SessionState::Foreign, Some(error.to_string()))
        }
        Err(error @ HeaderError::Corrupt { .. }) => {
            (None, SessionState::Damaged, Some(error.to_string()))
        }
    };
    SessionEntry { id: id.clone(), stat, state, reason }
}

enum What<T> {
    Pending(Box<SessionStat>),
    Stored(T),
}

/// Puts the sessions of a store into order and makes entries of those on one page.
///
/// What is stored counts, should another process have stored a session that is pending here.
/// `entry` is asked for nothing that is not needed, and answers nothing for what is gone.
pub(crate) fn page<T>(
    pending: Vec<Pending>,
    found: Vec<Found<T>>,
    query: &ListQuery,
    cancel: &Cancel,
    mut entry: impl FnMut(SessionId, T) -> Option<SessionEntry>,
) -> Result<SessionList, ListError> {
    let after = query.cursor.as_deref().map(Position::parse).transpose()?;
    let mut candidates = candidates(pending, found);
    candidates.sort_by(|(left, _), (right, _)| left.cmp(right));

    let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1));
    let mut page = SessionList::default();
    let mut last = None;
    for (position, what) in candidates {
        if after.as_ref().is_some_and(|after| position <= *after) {
            continue;
        }
        check(cancel)?;
        let id = position.id.clone();
        let made = match what {
            What::Pending(stat) => {
                Some(SessionEntry { id, stat: Some(*stat), state: SessionState::Ok, reason: None })
            }
            What::Stored(what) => entry(id, what),
        };
        let Some(made) = made.filter(|entry| matches(query, entry)) else { continue };
        if page.entries.len() >= limit {
            page.cursor = last.as_ref().map(Position::spell);
            break;
        }
        last = Some(position);
        page.entries.push(made);
    }
    Ok(page)
}

fn candidates<T>(pending: Vec<Pending>, found: Vec<Found<T>>) -> Vec<(Position, What<T>)> {
    let stored: HashSet<SessionId> = found.iter().map(|found| found.id.clone()).collect();
    let pending = pending.into_iter().filter(|pending| !stored.contains(&pending.header.id));
    let pending = pending.map(|pending| {
        let modified_at = i64::try_from(pending.header.created_at).unwrap_or(i64::MAX);
        let position =
            Position { modified_at: Reverse(modified_at), id: pending.header.id.clone() };
        (position, What::Pending(Box::new(pending.stat())))
    });
    let found = found.into_iter().map(|Found { id, modified_at, what }| {
        (Position { modified_at: Reverse(modified_at), id }, What::Stored(what))
    });
    pending.chain(found).collect()
}

/// Fails once a listing was called off.
pub(crate) fn check(cancel: &Cancel) -> Result<(), ListError> {
    if cancel.is_cancelled() { Err(Cancelled { operation: "list" }.into()) } else { Ok(()) }
}

fn matches(query: &ListQuery, entry: &SessionEntry) -> bool {
    // Of a session without a readable header the directory is not known. Where its place tells the
    // project, the backend has looked at that.
    let in_cwd = match (&query.cwd, &entry.stat) {
        (Some(wanted), Some(stat)) => stat.header.cwd.as_ref() == Some(wanted),
        _ => true,
    };
    in_cwd && (query.states.is_empty() || query.states.contains(&entry.state))
}

/// Where an entry stands in the order: newest first, ties by id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    modified_at: Reverse<i64>,
    id: SessionId,
}

impl Position {
    fn parse(cursor: &str) -> Result<Self, BadListCursor> {
        let (time, segment) = cursor.split_once('.').ok_or(BadListCursor)?;
        let modified_at = Reverse(time.parse().map_err(|_| BadListCursor)?);
        Ok(Self { modified_at, id: decode_id(segment).ok_or(BadListCursor)? })
    }

    fn spell(&self) -> String {
        format!("{}.{}", self.modified_at.0, encode_id(&self.id))
    }
}
