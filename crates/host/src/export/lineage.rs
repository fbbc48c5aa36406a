//! The sessions that stem from a session.

use std::collections::{HashMap, HashSet};

use turnkeep_log::SessionId;
use turnkeep_store::{Cancel, ListQuery, SessionStore, error::ListError};

/// How many sessions are looked at a time.
const PAGE: usize = 512;

/// The sessions whose header names this one as the session they were forked from, those that name
/// one of them, and so on: each before what stems from it, brothers by the time they were made and
/// then by id, and every session once, in whatever circle headers may name each other.
///
/// Of the store's sessions only those that stem from some session are kept in mind meanwhile, by
/// their ids. One whose header cannot be read stems from nowhere.
pub(super) async fn descendants(
    store: &dyn SessionStore,
    root: &SessionId,
    cancel: &Cancel,
) -> Result<Vec<SessionId>, ListError> {
    let mut children = children(store, cancel).await?;
    let mut seen = HashSet::from([root.clone()]);
    let mut found = Vec::new();
    // The next one last.
    let mut left = children.remove(root.as_str()).unwrap_or_default();
    while let Some((_, session)) = left.pop() {
        if seen.insert(session.clone()) {
            left.extend(children.remove(session.as_str()).unwrap_or_default());
            found.push(session);
        }
    }
    Ok(found)
}

/// When a session was made, and its id.
type Child = (u64, SessionId);

/// Every session that stems from another one, by that one's id, the oldest last.
async fn children(
    store: &dyn SessionStore,
    cancel: &Cancel,
) -> Result<HashMap<String, Vec<Child>>, ListError> {
    let mut children: HashMap<String, Vec<Child>> = HashMap::new();
    let mut query = ListQuery { limit: Some(PAGE), ..ListQuery::default() };
    loop {
        let page = store.list(&query, cancel).await?;
        for header in page.entries.into_iter().filter_map(|entry| Some(entry.stat?.header)) {
            if let Some(parent) = header.parent_session {
                children.entry(parent).or_default().push((header.created_at, header.id));
            }
        }
        query.cursor = page.cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    for brothers in children.values_mut() {
        brothers.sort_unstable_by(|(at, id), (other_at, other_id)| {
            (other_at, other_id.as_str()).cmp(&(at, id.as_str()))
        });
    }
    Ok(children)
}
