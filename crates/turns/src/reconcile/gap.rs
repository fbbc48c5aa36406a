//! The rows of a gap that one page will hold.

use super::budgets::Budgets;
use crate::{
    cursor::Position,
    events::LiveText,
    page::SourceRow,
    projection::Projection,
    reader::{End, Sink, Spot},
};

/// A number of rows and their bytes as they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl Tally {
    fn count(&mut self, row: &SourceRow) {
        self.records += 1;
        self.bytes += row.json.text().len() as u64;
    }

    fn plus(self, other: Self) -> Self {
        Self {
            records: self.records.saturating_add(other.records),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// Where the next page goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Resume {
    pub(super) scan_before: Option<String>,
    pub(super) returned_through: Option<String>,
}

impl Resume {
    /// Exactly below `row` if there is a cursor for that: the source's own, or one made from what
    /// the row says of itself. Else at the page that the row was found on.
    fn below(row: &SourceRow, spot: Spot<'_>) -> Self {
        let made = spot.made_cursor(row);
        let id = Some(row.id.clone());
        match spot.next {
            Some(next) => {
                let names_row = made.as_deref() == Some(next)
                    || Position::decode(next).is_some_and(|named| named.id == row.id);
                let returned_through = id.filter(|_| names_row);
                Self { scan_before: Some(next.to_owned()), returned_through }
            }
            None => Self {
                scan_before: made.or_else(|| spot.before.map(str::to_owned)),
                returned_through: id,
            },
        }
    }
}

/// What becomes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is the last one: the anchor is on it.
    Complete,
    /// Another one comes after it.
    GoesOn,
    /// It is not sent: the client has to start over. The anchor is not there, or too far away.
    Reset,
}

/// A page of a round being filled, from its newest row to the anchor or to where the page is full.
#[derive(Debug)]
pub(super) struct Gap {
    anchor: String,
    budgets: Budgets,
    projection: Projection,
    /// What is put over the rows before they are projected.
    pub(super) live: LiveText,
    /// What the pages before this one went through.
    earlier: Tally,
    /// Whether the anchor had been seen by then. All rows down to it have been counted then.
    promised: bool,
    /// The rows read for this page, and those of them that are on it.
    read: Tally,
    taken: Tally,
    /// New to old.
    records: Vec<String>,
    bytes: usize,
    newest: Option<String>,
    resume: Option<Resume>,
    /// Whether a row of the gap was read that is for the next page.
    overflows: bool,
    met: bool,
}

impl Gap {
    pub(super) fn new(
        anchor: String,
        earlier: Tally,
        promised: bool,
        budgets: Budgets,
        projection: Projection,
    ) -> Self {
        Self {
            anchor,
            budgets,
            projection,
            live: LiveText::default(),
            earlier,
            promised,
            read: Tally::default(),
            taken: Tally::default(),
            records: Vec::new(),
            bytes: 0,
            newest: None,
            resume: None,
            overflows: false,
            met: false,
        }
    }

    pub(super) fn anchor(&self) -> &str {
        &self.anchor
    }

    /// Whether the anchor has been seen, now or for an earlier page.
    pub(super) fn knows_anchor(&self) -> bool {
        self.met || self.promised
    }

    /// The newest row that was read.
    pub(super) fn newest(&self) -> Option<&str> {
        self.newest.as_deref()
    }

    /// What becomes of this page, which is the round's `pages`th.
    pub(super) fn outcome(&self, end: End, pages: u64) -> Outcome {
        if self.met {
            return if self.overflows { Outcome::GoesOn } else { Outcome::Complete };
        }
        let is_spent = pages >= self.budgets.pages as u64 || self.has_spent(self.taken);
        if end == End::Exhausted || (is_spent && !self.promised) {
            Outcome::Reset
        } else {
            Outcome::GoesOn
        }
    }

    fn has_spent(&self, here: Tally) -> bool {
        self.earlier.plus(here).bytes >= self.budgets.total_bytes as u64
    }

    /// What the round has gone through with this page. Rows that will be read once more for the
    /// next page are counted with that, unless they are known to be the last ones.
    pub(super) fn scanned(&self, outcome: Outcome) -> Tally {
        let will_be_counted = outcome == Outcome::GoesOn && !self.met;
        self.earlier.plus(if will_be_counted { self.taken } else { self.read })
    }

    /// The records, old to new, and where the page after them goes on.
    pub(super) fn into_records(mut self) -> (Vec<String>, Option<Resume>) {
        self.records.reverse();
        (self.records, self.resume)
    }

    /// Puts a row on the page, if there is room. A single one always fits.
    fn take(&mut self, row: &SourceRow, spot: Spot<'_>) -> bool {
        if self.overflows || self.records.len() >= self.budgets.records {
            return false;
        }
        let mut record = String::new();
        self.live.project(&row.id, row.json.json(), self.projection, &mut record);
        let bytes = self.bytes + record.len();
        if bytes > self.budgets.page_bytes && !self.records.is_empty() {
            return false;
        }
        self.bytes = bytes;
        self.records.push(record);
        self.resume = Some(Resume::below(row, spot));
        true
    }
}

impl Sink for Gap {
    fn add(&mut self, row: &SourceRow, spot: Spot<'_>) {
        if !self.promised {
            self.read.count(row);
        }
        if self.met {
            return;
        }
        if self.newest.is_none() {
            self.newest = Some(row.id.clone());
        }
        self.met = row.id == self.anchor;
        if !self.take(row, spot) {
            self.overflows = true;
        } else if !self.promised {
            self.taken.count(row);
        }
    }

    fn is_full(&self) -> bool {
        self.overflows
            || self.records.len() >= self.budgets.records
            || self.bytes >= self.budgets.page_bytes
            || (!self.promised && self.has_spent(self.read))
    }

    /// Whether the anchor has been met: nothing older is part of the gap.
    fn is_settled(&self) -> bool {
        self.met
    }

    /// Asks for many rows as long as the anchor has to be found. Then for as many as are likely to
    /// fit the page, going by the rows before, since the others would have to be read again; and
    /// at least for as many as there are, so that a wrong guess does not make for many requests.
    fn page_size(&self, width: usize) -> usize {
        if !self.promised {
            return width;
        }
        let row_bytes = self.earlier.bytes / self.earlier.records.max(1);
        let row_bytes = usize::try_from(row_bytes).unwrap_or(usize::MAX).max(1);
        let room = self.budgets.page_bytes.saturating_sub(self.bytes).div_ceil(row_bytes);
        let places = self.budgets.records.saturating_sub(self.records.len());
        room.min(places).max(self.records.len()).clamp(1, width)
    }
}
