//! Where one page of the list ended.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// How far both lanes were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListCursor {
    /// The store's own cursor.
    pub(crate) store: Position<String>,
    pub(crate) upstream: Position<Served>,
}

/// How far one lane was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Position<T> {
    #[default]
    Start,
    After(T),
    End,
}

/// The last session that the upstream's lane handed out.
///
/// Sessions may share a time, and the upstream pages by time alone; so the sessions of that very
/// time are named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    pub(crate) updated: i64,
    pub(crate) ids: Vec<String>,
}

impl ListCursor {
    /// The text that a client is given.
    pub(crate) fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the text back.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

impl<T> Position<T> {
    /// Whether nothing is left in the lane.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::End)
    }
}

impl Served {
    /// The session's place, given the one handed out before it.
    pub(crate) fn next(before: Position<Self>, updated: i64, id: &str) -> Self {
        match before {
            Position::After(mut before) if before.updated == updated => {
                before.ids.push(id.to_owned());
                before
            }
            _ => Self { updated, ids: vec![id.to_owned()] },
        }
    }

    /// Whether a session was handed out already, or before one that was.
    pub(crate) fn covers(&self, updated: i64, id: &str) -> bool {
        updated > self.updated
            || (updated == self.updated && self.ids.iter().any(|known| known == id))
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
