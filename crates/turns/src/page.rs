//! Pages of a source's rows, and how one is asked for.

use turnkeep_log::{
    Text,
    id::Seq,
    json::{Json, JsonText, Kind, Walk},
};

use crate::{
    cursor::{Position, encode_seq},
    error::TurnPageError,
    row::Row,
};

/// The kinds of source that a session can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An OpenCode server, which orders rows by time and id.
    OpenCode,
    /// A log of our own, which orders records by the seq of their first event.
    Log,
}

/// What a source is asked for next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The source's own cursor: only rows older than it; `None` for the newest rows.
    pub before: Option<String>,
    /// At most this many rows.
    pub limit: usize,
    /// What the answer is for.
    pub purpose: Purpose,
}

/// What a page is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read on.
    Scan,
    /// To learn something on the side: whether a full page without a cursor really was the last
    /// one, or what the newest row is by now. A source that refuses does no harm.
    Probe,
    /// To read around a message that makes its whole page fail, or a page too large to take.
    Narrow,
    /// To learn which message cannot be read: OpenCode is to be asked for the session's event
    /// history (`POST /sync/history` with `{"<session>":0}`), whose body is fed as
    /// [`Answer::History`]. A source without one may feed any other answer in its place.
    Identify,
}

/// How a source answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// With a page.
    Page(SourcePage),
    /// With the events of the session, to [`Purpose::Identify`]: the body as it came.
    History(Text),
    /// It refused the cursor.
    BadCursor,
    /// It cannot encode one of the messages of the page: 400 with `"kind":"Body"`.
    Unencodable,
    /// With more bytes than whoever asked is willing to hold.
    Oversized,
    /// It knows no such session.
    NotFound,
    /// It is not there, restarting, or said 503.
    Unavailable,
    /// Not within the time that the whole request has.
    TimedOut,
    /// In any other way that is no page.
    Failed,
}

/// One page of a source.
#[derive(Clone, Debug)]
pub struct SourcePage {
    /// Old to new.
    pub(crate) rows: Vec<SourceRow>,
    pub(crate) next: Option<String>,
}

/// One row of a page.
#[derive(Clone, Debug)]
pub(crate) struct SourceRow {
    pub(crate) json: JsonText,
    pub(crate) id: String,
    pub(crate) place: Place,
    pub(crate) starts_turn: bool,
}

/// Where a row stands in its source's order, as far as the row tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// By the time of its making, with its id deciding between equals.
    Time(u64),
    /// By the first event it was made from.
    Seq(Seq),
    Unknown,
}

impl SourceRow {
    /// A record by itself. Without a seq, its place is the time of its making.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::MissingId`] when there is no non-empty string id.
    pub(crate) fn new(json: JsonText, seq: Option<Seq>) -> Result<Self, TurnPageError> {
        let facts = Row::read(&mut Walk::over(json.json()));
        let time = facts.created_ms().map_or(Place::Unknown, Place::Time);
        Ok(Self {
            id: facts.id_text().ok_or(TurnPageError::MissingId)?,
            place: seq.map_or(time, Place::Seq),
            starts_turn: facts.starts_turn(),
            json,
        })
    }

    /// The record that is next in a page, which is read as it is stepped over.
    fn next(walk: &mut Walk<'_>, page: &JsonText) -> Result<Self, TurnPageError> {
        let start = walk.offset();
        let facts = Row::read(walk);
        Ok(Self {
            id: facts.id_text().ok_or(TurnPageError::MissingId)?,
            place: facts.created_ms().map_or(Place::Unknown, Place::Time),
            starts_turn: facts.starts_turn(),
            json: page.cut(walk.since(start)),
        })
    }

    /// The cursor for what is strictly older than the row.
    pub(crate) fn cursor(&self) -> Option<String> {
        match self.place {
            Place::Time(_) => self.position().map(|position| position.encode()),
            Place::Seq(seq) => Some(encode_seq(seq)),
            Place::Unknown => None,
        }
    }

    pub(crate) fn position(&self) -> Option<Position> {
        match self.place {
            Place::Time(time) => Some(Position { time, id: self.id.clone() }),
            Place::Seq(_) | Place::Unknown => None,
        }
    }
}

impl SourcePage {
    /// Reads a page of OpenCode's message list: the body, a JSON array (or an object with the array
    /// as its `items`), and the `x-next-cursor` header if there was one. An empty header counts as
    /// none.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::Upstream`] for another kind of body, [`TurnPageError::MissingId`] for a row
    /// without a non-empty string id.
    pub fn from_opencode(body: &Text, next: Option<String>) -> Result<Self, TurnPageError> {
        let page = JsonText::parse(body).map_err(|_| TurnPageError::Upstream)?;
        let json = page.json();
        let list = if json.kind() == Kind::Array { Some(json) } else { json.get("items") };
        let list = list.filter(|list| list.kind() == Kind::Array);
        let mut walk = Walk::over(list.ok_or(TurnPageError::Upstream)?);
        let mut rows = Vec::new();
        walk.enter();
        while walk.next_element() {
            rows.push(SourceRow::next(&mut walk, &page)?);
        }
        Ok(Self { rows, next: non_empty(next) })
    }

    /// Makes a page of records folded from a log, old to new, each with the seq of its first event.
    /// `next` is the cursor for what is older, if anything is.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::MissingId`] for a record without a non-empty string id.
    pub fn from_log(
        rows: Vec<(Seq, JsonText)>,
        next: Option<String>,
    ) -> Result<Self, TurnPageError> {
        let rows = rows.into_iter().map(|(seq, json)| SourceRow::new(json, Some(seq)));
        Ok(Self { rows: rows.collect::<Result<_, _>>()?, next: non_empty(next) })
    }

    /// The records, old to new.
    #[must_use]
    pub fn records(&self) -> impl DoubleEndedIterator<Item = Json<'_>> + ExactSizeIterator {
        self.rows.iter().map(|row| row.json.json())
    }

    /// The cursor for what is older, if there is any.
    #[must_use]
    pub fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// Whether rows that OpenCode orders by time stand in that order here, strictly, so that a
    /// cursor can be made for each of them from what it says of itself.
    ///
    /// A message's own time and the time that OpenCode orders by can differ: a message whose id
    /// was used again by another session is one such. On the page itself that shows as disorder.
    /// At its ends it shows against the cursors, which hold the times that count: everything is
    /// older than `before`, and a cursor that names the oldest row has the row's own time.
    pub(crate) fn is_ordered(&self, before: Option<&str>) -> bool {
        let mut positions = self.rows.iter().map(SourceRow::position);
        let Some(Some(oldest)) = positions.next() else { return false };
        let next = self.next.as_deref().and_then(Position::decode);
        if next.is_some_and(|next| next.id == oldest.id && next.time != oldest.time) {
            return false;
        }
        let mut last = oldest;
        for position in positions {
            match position {
                Some(position) if position > last => last = position,
                _ => return false,
            }
        }
        before.and_then(Position::decode).is_none_or(|before| last < before)
    }
}

fn non_empty(next: Option<String>) -> Option<String> {
    next.filter(|next| !next.is_empty())
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
