//! The rows that a turn page will hold.

use crate::{
    cursor::Token,
    error::TurnPageError,
    events::LiveText,
    page::SourceRow,
    projection::Projection,
    reader::{Sink, Spot},
    turn_page::TurnPage,
};

/// The newest rows of what is scanned, up to and including the row that starts the last turn
/// wanted. Rows come in from new to old and are projected at once, so that no page has to be kept.
#[derive(Debug)]
pub(super) struct Window {
    turns: usize,
    projection: Projection,
    /// What is put over the rows before they are projected.
    pub(super) live: LiveText,
    /// New to old.
    records: Vec<String>,
    /// How many of the records start a turn.
    started: usize,
    /// How many records there were with the last one that starts a turn.
    up_to_start: usize,
    /// Where the next page goes on: at the oldest row that starts a turn, else at the oldest row.
    resume: Option<Token>,
    trimmed: bool,
}

impl Window {
    pub(super) fn new(turns: usize, projection: Projection) -> Self {
        Self {
            turns,
            projection,
            live: LiveText::default(),
            records: Vec::new(),
            started: 0,
            up_to_start: 0,
            resume: None,
            trimmed: false,
        }
    }

    /// Makes the page. `complete` says that nothing is older than what came in.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::Upstream`] when the page would be empty and still not complete: a client
    /// could not go on from it.
    pub(super) fn into_page(mut self, complete: bool) -> Result<TurnPage, TurnPageError> {
        let mut cursor = None;
        if !complete {
            cursor = Some(self.resume.ok_or(TurnPageError::Upstream)?.encode());
            // The next page goes on at the oldest start of a turn. What was read of an older turn
            // would be sent again with it.
            if self.started > 0 {
                self.records.truncate(self.up_to_start);
            }
        }
        self.records.reverse();
        Ok(TurnPage { records: self.records, turn_count: self.started, cursor, complete })
    }
}

impl Sink for Window {
    fn add(&mut self, row: &SourceRow, spot: Spot<'_>) {
        if self.started >= self.turns {
            self.trimmed = true;
            return;
        }
        let mut record = String::new();
        self.live.project(&row.id, row.json.json(), self.projection, &mut record);
        self.records.push(record);
        if row.starts_turn {
            self.started += 1;
            self.up_to_start = self.records.len();
        }
        if row.starts_turn || self.started == 0 {
            let before = spot.made_cursor(row).or_else(|| spot.before.map(str::to_owned));
            self.resume = Some(Token { before, boundary: row.id.clone() });
        }
    }

    /// Whether all turns wanted are there.
    fn is_full(&self) -> bool {
        self.started >= self.turns
    }

    /// Whether a row older than the window has been seen.
    fn is_settled(&self) -> bool {
        self.trimmed
    }
}
