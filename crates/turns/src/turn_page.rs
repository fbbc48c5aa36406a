//! What a client is sent.

use turnkeep_log::json::write_str;

use crate::pieces;

/// How the parts in a turn page are reduced, as the page names it.
const PARTS_PROJECTION: &str = "slim-v1";

/// The last few turns of a session, or the few before a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPage {
    /// The records, old to new, each as JSON text and projected.
    pub records: Vec<String>,
    /// How many of the records start a turn.
    pub turn_count: usize,
    /// The cursor for what is older. There is one exactly when the page is not complete.
    pub cursor: Option<String>,
    /// Whether nothing is older than the page.
    pub complete: bool,
}

impl TurnPage {
    /// The body of the answer, in the key order that clients know:
    /// `{"records":[…],"turnCount":…,"cursor":…,"complete":…,"partsProjection":"slim-v1"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        pieces::body(&self.records, &self.tail())
    }

    /// The same body in pieces, for which a large record is not copied.
    #[must_use]
    pub fn into_pieces(self) -> Vec<String> {
        let tail = self.tail();
        pieces::of_body(self.records, &tail)
    }

    fn tail(&self) -> String {
        let mut json = String::from(r#"],"turnCount":"#);
        json.push_str(&self.turn_count.to_string());
        json.push_str(r#","cursor":"#);
        match &self.cursor {
            Some(cursor) => write_str(&mut json, cursor),
            None => json.push_str("null"),
        }
        json.push_str(r#","complete":"#);
        json.push_str(if self.complete { "true" } else { "false" });
        json.push_str(r#","partsProjection":"#);
        write_str(&mut json, PARTS_PROJECTION);
        json.push('}');
        json
    }
}

#[cfg(test)]
#[path = "turn_page_tests.rs"]
mod tests;
