use turnkeep_log::json::write_str;

use crate::pieces;

/// A page of a round: a piece of what happened since the anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcilePage {
    /// The records, old to new, each as JSON text and projected. All of them are older than those
    /// of the page before. None when the client has to start over.
    pub records: Vec<String>,
    /// Whether the anchor has been seen so far.
    pub anchor_found: bool,
    /// The newest row when the round began; `None` in an empty session.
    pub captured_head: Option<String>,
    /// The newest row now, as far as it is known. When it is not the captured one, something has
    /// been added that is for another round, with the captured one as its anchor.
    pub latest_head: Option<String>,
    /// What to ask for the next page with; `None` when this is the last one.
    pub continuation: Option<String>,
    /// Whether the client has to drop what it has and read the newest turns.
    pub reset_required: bool,
    /// How many rows the round has gone through, each counted once.
    pub scanned_records: u64,
}

impl ReconcilePage {
    /// Whether this is the last page of its round.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.continuation.is_none()
    }

    /// The bytes of the records, brackets and commas around them not counted.
    #[must_use]
    pub fn response_bytes(&self) -> usize {
        self.records.iter().map(String::len).sum()
    }

    /// The body of the answer: an object of `records`, `anchorFound`, `capturedHeadMessageID`,
    /// `latestHeadMessageID`, `continuation`, `complete`, `resetRequired`, `scannedRecords` and
    /// `responseBytes`, in the order that clients know.
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
        let mut json = String::from(r#"],"anchorFound":"#);
        json.push_str(spelled(self.anchor_found));
        for (key, value) in [
            ("capturedHeadMessageID", &self.captured_head),
            ("latestHeadMessageID", &self.latest_head),
            ("continuation", &self.continuation),
        ] {
            json.push_str(",\"");
            json.push_str(key);
            json.push_str("\":");
            match value {
                Some(value) => write_str(&mut json, value),
                None => json.push_str("null"),
            }
        }
        json.push_str(r#","complete":"#);
        json.push_str(spelled(self.complete()));
        json.push_str(r#","resetRequired":"#);
        json.push_str(spelled(self.reset_required));
        json.push_str(r#","scannedRecords":"#);
        json.push_str(&self.scanned_records.to_string());
        json.push_str(r#","responseBytes":"#);
        json.push_str(&self.response_bytes().to_string());
        json.push('}');
        json
    }
}

fn spelled(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
