//! What the list says of one session.

use serde::Serialize;
use turnkeep_store::{SessionEntry, SessionStat, SessionState};

use crate::{kinds, source::Glimpse, upstream::UpstreamSession};

/// What the list says of one session. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionSummary {
    pub(crate) id: String,
    /// `store` or `upstream`.
    pub(crate) source: &'static str,
    /// `null` when there is none or it is not known yet: asking for the session tells.
    pub(crate) title: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) created_at: Option<i64>,
    pub(crate) updated_at: Option<i64>,
    /// Present when `updatedAt` is the time of the file rather than of an event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) updated_at_estimated: bool,
    /// When a person last wrote; `null` when not known.
    pub(crate) last_prompt_at: Option<i64>,
    /// Whether nothing was said yet; `false` when not known.
    pub(crate) blank: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size_bytes: Option<u64>,
    pub(crate) revision: Option<String>,
    /// `ok`, `damaged`, `newer` or `foreign`.
    pub(crate) state: &'static str,
    /// Why it is not `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(rename = "parentID", skip_serializing_if = "Option::is_none")]
    pub(crate) parent_id: Option<String>,
}

impl SessionSummary {
    /// A session of the store, as its listing has it.
    pub(crate) fn of_entry(entry: &SessionEntry, glimpse: Option<Glimpse>) -> Self {
        let mut summary = match &entry.stat {
            Some(stat) => Self::of_stat(stat, glimpse),
            None => Self::unknown(entry.id.as_str(), "store"),
        };
        summary.state = entry.state.as_str();
        summary.reason.clone_from(&entry.reason);
        summary
    }

    /// A session of the store that can be read. When its last event was counts for more than when
    /// its file was touched, which copying a store does.
    pub(crate) fn of_stat(stat: &SessionStat, glimpse: Option<Glimpse>) -> Self {
        let hints = stat.hints.as_ref();
        let glimpse = glimpse.or_else(|| hints.map(Glimpse::of_hints)).unwrap_or_default();
        let created_at = i64::try_from(stat.header.created_at).ok();
        let last_event_at = hints.and_then(|hints| hints.last_event_at);
        Self {
            title: glimpse.title,
            cwd: stat.header.cwd.clone(),
            created_at,
            updated_at: last_event_at.or(stat.modified_at).or(created_at),
            updated_at_estimated: last_event_at.is_none() && stat.modified_at.is_some(),
            last_prompt_at: glimpse.last_prompt_at,
            blank: glimpse.blank,
            event_count: stat.event_count.or(hints.map(|hints| hints.event_count)),
            size_bytes: stat.size_bytes,
            revision: Some(stat.revision.as_str().to_owned()),
            parent_id: stat.header.parent_session.clone(),
            ..Self::unknown(stat.header.id.as_str(), "store")
        }
    }

    /// A session of the store whose events cannot be read, for a reason of this kind.
    pub(crate) fn of_unreadable(stat: &SessionStat, kind: &'static str) -> Self {
        Self {
            state: kinds::state_of_unreadable(kind).unwrap_or(SessionState::Ok).as_str(),
            reason: Some(kinds::of(kind).text.to_owned()),
            ..Self::of_stat(stat, None)
        }
    }

    /// A session of the upstream.
    pub(crate) fn of_upstream(session: UpstreamSession) -> Self {
        Self {
            title: session.title,
            cwd: session.directory,
            created_at: session.created_at,
            updated_at: Some(session.updated_at),
            blank: session.blank,
            revision: Some(session.updated_at.to_string()),
            state: if session.foreign { SessionState::Foreign } else { SessionState::Ok }.as_str(),
            reason: session.foreign.then(|| FOREIGN_REASON.to_owned()),
            parent_id: session.parent_id,
            ..Self::unknown(&session.id, "upstream")
        }
    }

    /// Whether the text, in lower case, is in the session's id, title or directory.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        let fields = [Some(&self.id), self.title.as_ref(), self.cwd.as_ref()];
        fields.into_iter().flatten().any(|field| field.to_lowercase().contains(text))
    }

    fn unknown(id: &str, source: &'static str) -> Self {
        Self {
            id: id.to_owned(),
            source,
            title: None,
            cwd: None,
            created_at: None,
            updated_at: None,
            updated_at_estimated: false,
            last_prompt_at: None,
            blank: false,
            event_count: None,
            size_bytes: None,
            revision: None,
            state: SessionState::Ok.as_str(),
            reason: None,
            parent_id: None,
        }
    }
}

/// OpenCode keeps the messages of its two generations of routes apart.
const FOREIGN_REASON: &str = "its messages are kept in OpenCode's newer form, which is not served";
