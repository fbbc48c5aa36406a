//! Reading the rows of a session from the newest to the oldest, page by page.
//!
//! Whatever a client is sent is made of rows that were read in this way. What is made of them is
//! the business of a [`Sink`]; how they are come by is done here, once: which page to ask for
//! next, which answers make sense, where history ends, and how to get around what cannot be read.
//! The reader does no I/O: [`RowReader::want`] says what to ask the source for next, and
//! [`RowReader::feed`] takes the answer.
//!
//! # When history ends
//!
//! A page shorter than was asked for and without a cursor is the last one. A full page without a
//! cursor may be the last one too, or one that lost its cursor on the way, so the source is asked
//! for a single row older than it. When that cannot be asked, the end stays open rather than that
//! history is called complete.
//!
//! # Messages that cannot be read
//!
//! OpenCode writes a page that has a cursor straight from its database and encodes the last page
//! only, and one message that cannot be encoded makes all of that page fail. So the reader comes
//! nearer in ever smaller steps until all but the session's oldest row have been on a page with a
//! cursor. If that one is the culprit a stub takes its place.

mod start;
mod unreadable;

use std::collections::HashSet;

use turnkeep_log::json::{Json, Walk};

use self::unreadable::Neighbour;
pub(crate) use self::{start::Start, unreadable::placeholder};
use crate::{
    error::TurnPageError,
    page::{Answer, PageRequest, Purpose, SourceKind, SourcePage, SourceRow},
    row::Row,
};

/// How much may be read for one request of a client's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Pages of an OpenCode server; probes and narrowed pages do not count.
    pub(crate) pages: usize,
    /// Rows. More than these from a server is an error, at these the reading of a log stops.
    pub(crate) rows: usize,
    /// Narrowed pages.
    pub(crate) narrow: usize,
}

/// How the reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The source has nothing older.
    Exhausted,
    /// There is more, or there may be.
    Open,
}

/// What is made of the rows.
pub(crate) trait Sink {
    /// Takes in the next older row that is wanted and had not been read before.
    fn add(&mut self, row: &SourceRow, spot: Spot<'_>);

    /// Whether older rows would be for another request.
    fn is_full(&self) -> bool;

    /// Whether it makes no difference any more what is older.
    fn is_settled(&self) -> bool;

    /// How many rows to ask for next: from 1 to `width`, which is what the configuration says.
    fn page_size(&self, width: usize) -> usize {
        width
    }
}

/// Where a row was found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spot<'a> {
    /// The source cursor that the page of the row was asked for with.
    pub(crate) before: Option<&'a str>,
    /// The source's own cursor for what is older than the row, which it gives for the oldest row
    /// of a page.
    pub(crate) next: Option<&'a str>,
    /// Whether a cursor may be made from what the row says of itself.
    ordered: bool,
}

impl Spot<'_> {
    /// The cursor for what is older than `row`, made from what it says of itself.
    pub(crate) fn made_cursor(&self, row: &SourceRow) -> Option<String> {
        row.cursor().filter(|_| self.ordered)
    }
}

/// What comes after an answer.
enum Step {
    Ask(PageRequest),
    End(End),
}

/// Reads a session backwards. Drive it with [`want`](Self::want) and [`feed`](Self::feed) until
/// there is an [`end`](Self::end).
#[derive(Debug)]
pub(crate) struct RowReader {
    session: String,
    kind: SourceKind,
    width: usize,
    limits: Limits,
    want: Option<PageRequest>,
    end: Option<End>,
    /// The source cursor that the client's token was or held.
    client_before: Option<String>,
    /// The row that the client has already; nothing newer than it is wanted.
    boundary: Option<String>,
    /// Whether that row has still to be found.
    seeking: bool,
    /// Source cursors that were asked with: none of them may come back.
    requested: HashSet<String>,
    /// Ids of all rows read, wanted or not.
    seen: HashSet<String>,
    neighbour: Neighbour,
    pages: usize,
    rows: usize,
    narrowed: usize,
    /// While reading in small steps: at most how many rows lie between here and the end of the page
    /// that failed.
    left: Option<usize>,
}

impl RowReader {
    /// Starts to read `session`, at most `width` rows at a time, for `sink`.
    pub(crate) fn new(
        session: &str,
        kind: SourceKind,
        width: usize,
        limits: Limits,
        start: Start,
        sink: &impl Sink,
    ) -> Result<Self, TurnPageError> {
        let mut reader = Self {
            session: session.to_owned(),
            kind,
            width: width.max(1),
            limits,
            want: None,
            end: None,
            client_before: start.before.clone(),
            boundary: start.boundary,
            seeking: start.seeking,
            requested: start.token.into_iter().collect(),
            seen: HashSet::new(),
            neighbour: Neighbour::at(start.before.as_deref()),
            pages: 0,
            rows: 0,
            narrowed: 0,
            left: None,
        };
        let first = reader.ask(start.before, sink)?;
        reader.take_step(first);
        Ok(reader)
    }

    /// What to ask the source for next; `None` at the end and after an error.
    pub(crate) fn want(&self) -> Option<&PageRequest> {
        self.want.as_ref()
    }

    /// How the reading ended; `None` while something is wanted and after an error.
    pub(crate) fn end(&self) -> Option<End> {
        self.end
    }

    /// Takes the answer to what was wanted and hands its rows on.
    pub(crate) fn feed(
        &mut self,
        answer: Answer,
        sink: &mut impl Sink,
    ) -> Result<(), TurnPageError> {
        let request = self.want.take().ok_or(TurnPageError::Internal)?;
        let step = match request.purpose {
            Purpose::Scan | Purpose::Narrow => self.take_answer(&request, answer, sink),
            Purpose::Probe => self.take_probe(request.before, answer, sink),
            Purpose::Identify => self.take_identity(answer, sink),
        }?;
        self.take_step(step);
        Ok(())
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Ask(request) => self.want = Some(request),
            Step::End(end) => self.end = Some(end),
        }
    }

    fn take_answer(
        &mut self,
        request: &PageRequest,
        answer: Answer,
        sink: &mut impl Sink,
    ) -> Result<Step, TurnPageError> {
        match answer {
            Answer::Page(page) => self.take_page(request, &page, sink),
            Answer::Unencodable if self.kind == SourceKind::OpenCode => {
                if request.limit > 1 {
                    self.narrow(request, sink)
                } else {
                    self.skip_unreadable(sink)
                }
            }
            Answer::Oversized if request.limit > 1 => self.narrow(request, sink),
            Answer::BadCursor if self.is_clients(request) => Err(TurnPageError::InvalidCursor),
            Answer::NotFound => Err(TurnPageError::SessionNotFound),
            Answer::Unavailable => Err(TurnPageError::Unavailable),
            Answer::TimedOut => Err(TurnPageError::TimedOut),
            Answer::Failed
            | Answer::History(_)
            | Answer::BadCursor
            | Answer::Unencodable
            | Answer::Oversized => Err(TurnPageError::Upstream),
        }
    }

    fn is_clients(&self, request: &PageRequest) -> bool {
        request.before.is_some() && request.before == self.client_before
    }

    fn take_page(
        &mut self,
        request: &PageRequest,
        page: &SourcePage,
        sink: &mut impl Sink,
    ) -> Result<Step, TurnPageError> {
        let next = page.next.as_ref();
        if page.rows.is_empty() {
            if next.is_some() {
                return Err(TurnPageError::EmptyPageWithCursor);
            }
            return self.end_of_history();
        }
        if next.is_some_and(|next| {
            self.requested.contains(next) || Some(next) == request.before.as_ref()
        }) {
            return Err(TurnPageError::DuplicateCursor);
        }
        let any_new = self.add_rows(request, page, sink);
        if next.is_some() && !any_new {
            return Err(TurnPageError::DuplicateCursor);
        }
        self.rows += page.rows.len();
        if self.kind == SourceKind::OpenCode && self.rows > self.limits.rows {
            return Err(self.over_limit(TurnPageError::MaxScanMessages));
        }
        self.step_down(page.rows.len());
        match next {
            _ if sink.is_settled() => Ok(Step::End(End::Open)),
            Some(_) if sink.is_full() => Ok(Step::End(End::Open)),
            Some(_) if self.kind == SourceKind::Log && self.rows >= self.limits.rows => {
                self.give_up()
            }
            Some(next) => self.ask(Some(next.clone()), sink),
            None if self.kind == SourceKind::Log || page.rows.len() < request.limit => {
                self.end_of_history()
            }
            None => self.doubt(request, page),
        }
    }

    /// Hands on the rows that are wanted; whether there was any that had not been read before.
    fn add_rows(&mut self, request: &PageRequest, page: &SourcePage, sink: &mut impl Sink) -> bool {
        // In the order of the page: of two copies on one page the older one counts.
        let new: Vec<bool> = page.rows.iter().map(|row| self.seen.insert(row.id.clone())).collect();
        let found = page.rows.iter().position(|row| self.boundary.as_ref() == Some(&row.id));
        self.seeking &= found.is_none();
        let all = if self.seeking { 0 } else { page.rows.len() };
        let before = request.before.as_deref();
        let ordered = self.kind == SourceKind::Log || page.is_ordered(before);
        let rows = page.rows.iter().zip(&new).enumerate().take(found.unwrap_or(all));
        for (index, (row, &new)) in rows.rev() {
            if new {
                let next = page.next.as_deref().filter(|_| index == 0);
                sink.add(row, Spot { before, next, ordered });
            }
        }
        if let Some(oldest) = page.rows.first() {
            let facts = Row::read(&mut Walk::over(oldest.json.json()));
            self.neighbour = Neighbour {
                position: oldest.position(),
                created: facts.created_ms(),
                parent: facts.parent.and_then(Json::as_str).map(|id| id.decode_lossy().into()),
            };
        }
        new.contains(&true)
    }

    /// A full page came without a cursor.
    fn doubt(&self, request: &PageRequest, page: &SourcePage) -> Result<Step, TurnPageError> {
        let ordered = page.is_ordered(request.before.as_deref());
        match page.rows.first().filter(|_| ordered).and_then(SourceRow::cursor) {
            None => self.give_up(),
            before => Ok(Step::Ask(PageRequest { before, limit: 1, purpose: Purpose::Probe })),
        }
    }

    fn take_probe(
        &mut self,
        before: Option<String>,
        answer: Answer,
        sink: &impl Sink,
    ) -> Result<Step, TurnPageError> {
        match answer {
            Answer::Page(page) if page.rows.is_empty() && page.next.is_none() => {
                self.end_of_history()
            }
            Answer::Page(page) if page.rows.iter().any(|row| !self.seen.contains(&row.id)) => {
                self.go_on_below(before, sink)
            }
            Answer::Oversized => self.go_on_below(before, sink),
            Answer::Unencodable => self.skip_unreadable(sink),
            Answer::TimedOut => Err(TurnPageError::TimedOut),
            Answer::Page(_)
            | Answer::History(_)
            | Answer::BadCursor
            | Answer::NotFound
            | Answer::Unavailable
            | Answer::Failed => self.give_up(),
        }
    }

    fn go_on_below(
        &mut self,
        before: Option<String>,
        sink: &impl Sink,
    ) -> Result<Step, TurnPageError> {
        if sink.is_full() { Ok(Step::End(End::Open)) } else { self.ask(before, sink) }
    }

    /// A page failed because of what is on it: ask for half of it.
    fn narrow(&mut self, request: &PageRequest, sink: &impl Sink) -> Result<Step, TurnPageError> {
        self.left = Some(request.limit);
        self.ask(request.before.clone(), sink)
    }

    /// Counts rows read in small steps, until the page that failed lies behind.
    fn step_down(&mut self, read: usize) {
        self.left = self.left.map(|left| left.saturating_sub(read)).filter(|&left| left > 0);
    }

    /// The session's oldest row cannot be read.
    fn skip_unreadable(&mut self, sink: &impl Sink) -> Result<Step, TurnPageError> {
        if self.seeking {
            return Err(TurnPageError::InvalidCursor);
        }
        if sink.is_full() {
            return Ok(Step::End(End::Open));
        }
        Ok(Step::Ask(PageRequest { before: None, limit: 1, purpose: Purpose::Identify }))
    }

    fn take_identity(
        &mut self,
        answer: Answer,
        sink: &mut impl Sink,
    ) -> Result<Step, TurnPageError> {
        let found = match answer {
            Answer::TimedOut => return Err(TurnPageError::TimedOut),
            Answer::History(history) => {
                let is_known = |id: &str| self.is_known(id);
                unreadable::find(&history, &self.session, &self.neighbour, is_known)
            }
            _ => None,
        };
        if self.neighbour.parent.as_deref().is_some_and(|parent| self.is_known(parent)) {
            self.neighbour.parent = None;
        }
        let stub = unreadable::stub(&self.session, found, &self.neighbour)?;
        sink.add(&stub, Spot::default());
        self.end_of_history()
    }

    fn is_known(&self, id: &str) -> bool {
        self.seen.contains(id) || self.boundary.as_deref() == Some(id)
    }

    fn ask(&mut self, before: Option<String>, sink: &impl Sink) -> Result<Step, TurnPageError> {
        let (limit, purpose) = match self.left {
            Some(left) => (self.narrow_limit(left)?, Purpose::Narrow),
            None => (self.scan_limit(sink)?, Purpose::Scan),
        };
        self.requested.extend(before.clone());
        Ok(Step::Ask(PageRequest { before, limit, purpose }))
    }

    fn narrow_limit(&mut self, left: usize) -> Result<usize, TurnPageError> {
        if self.narrowed >= self.limits.narrow {
            return Err(TurnPageError::Upstream);
        }
        self.narrowed += 1;
        Ok((left / 2).max(1))
    }

    fn scan_limit(&mut self, sink: &impl Sink) -> Result<usize, TurnPageError> {
        // While the row to go on below is looked for, nothing is made of the rows.
        let size = if self.seeking { self.width } else { sink.page_size(self.width) };
        if self.kind == SourceKind::Log {
            return Ok(size.min(self.limits.rows.saturating_sub(self.rows)));
        }
        if self.pages >= self.limits.pages {
            return Err(self.over_limit(TurnPageError::MaxScanPages));
        }
        self.pages += 1;
        Ok(size)
    }

    /// What a limit reached means: a row that was not found within it counts as gone.
    fn over_limit(&self, error: TurnPageError) -> TurnPageError {
        if self.seeking { TurnPageError::InvalidCursor } else { error }
    }

    fn end_of_history(&self) -> Result<Step, TurnPageError> {
        if self.seeking {
            return Err(TurnPageError::InvalidCursor);
        }
        Ok(Step::End(End::Exhausted))
    }

    /// Ends although more is wanted and there may be more.
    fn give_up(&self) -> Result<Step, TurnPageError> {
        if self.seeking {
            return Err(match self.kind {
                SourceKind::OpenCode => TurnPageError::Upstream,
                SourceKind::Log => TurnPageError::InvalidCursor,
            });
        }
        Ok(Step::End(End::Open))
    }
}
