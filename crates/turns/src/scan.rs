//! Collecting the last few turns of a session, page by page.
//!
//! A source pages by rows, a client wants turns, and one turn may be one row or a thousand. The
//! scan reads pages from the newest on until it holds as many starts of turns as are wanted, and
//! cuts there. It does no I/O: [`TurnScan::want`] says what to ask the source for next,
//! [`TurnScan::feed`] takes the answer, and once nothing is wanted [`TurnScan::finish`] makes the
//! page.
//!
//! What a page holds depends on the session and on the number of turns alone, never on how many
//! rows are asked for at a time.
//!
//! # Where a page goes on
//!
//! The cursor names the row that starts the oldest turn of the page. Where the rows around it
//! stand in the order of their times, the source's own cursor for that row is made from what the
//! row says of itself: the next page starts exactly below it, whatever has been added or removed
//! since. Elsewhere the cursor holds the source cursor of the page that the row was found on, and
//! the next scan looks for the row there and then in older pages.
//!
//! # When history ends
//!
//! A page shorter than was asked for and without a cursor is the last one. A full page without a
//! cursor may be the last one too, or one that lost its cursor on the way, so the source is asked
//! for a single row older than it. When that cannot be asked, the page made of it is left open
//! rather than called complete.
//!
//! # Messages that cannot be read
//!
//! OpenCode writes a page that has a cursor straight from its database and encodes the last page
//! only, and one message that cannot be encoded makes all of that page fail. So the scan comes
//! nearer in ever smaller steps until all but the session's oldest row have been on a page with a
//! cursor. If that one is the culprit a stub takes its place.

mod start;
mod unreadable;
mod window;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use turnkeep_log::json::{Json, Walk};

use self::{start::Start, unreadable::Neighbour, window::Window};
use crate::{
    error::TurnPageError,
    page::{Answer, PageRequest, Purpose, SourcePage, SourceRow},
    projection::Projection,
    query::TurnQuery,
    row::Row,
    turn_page::TurnPage,
};

/// The kinds of source that a session can come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// An OpenCode server, which orders rows by time and id.
    OpenCode,
    /// A log of our own, which orders records by the seq of their first event.
    Log,
}

/// How much one scan may read.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Pages of an OpenCode server; probes and narrowed pages do not count.
    pages: usize,
    /// Rows. More than these from a server is an error, at these a log's page is left open.
    rows: usize,
    /// Narrowed pages.
    narrow: usize,
}

const LIMITS: Limits = Limits { pages: 50, rows: 5000, narrow: 200 };

/// How the reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The source has nothing older.
    Exhausted,
    /// There is more, or there may be.
    Open,
}

/// What comes after an answer.
enum Step {
    Ask(PageRequest),
    End(End),
}

/// A scan for one turn page. Drive it with [`want`](Self::want) and [`feed`](Self::feed), then
/// [`finish`](Self::finish) it.
#[derive(Debug)]
pub struct TurnScan {
    session: String,
    kind: SourceKind,
    width: usize,
    limits: Limits,
    want: Option<PageRequest>,
    end: Option<End>,
    window: Window,
    /// The source cursor that the client's cursor was or held.
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

impl TurnScan {
    /// Starts a scan of `session`.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::InvalidCursor`] when `before` is too long, no sound `oc1.` cursor despite
    /// its prefix, or, for a log, no cursor of a log. OpenCode's own cursors are opaque and go there
    /// as they are.
    pub fn new(
        session: &str,
        query: &TurnQuery,
        kind: SourceKind,
        projection: Projection,
    ) -> Result<Self, TurnPageError> {
        Self::limited(session, query, kind, projection, LIMITS)
    }

    fn limited(
        session: &str,
        query: &TurnQuery,
        kind: SourceKind,
        projection: Projection,
        limits: Limits,
    ) -> Result<Self, TurnPageError> {
        let start = match query.before.as_deref().unwrap_or_default() {
            "" => Start::default(),
            cursor => Start::at(cursor, kind)?,
        };
        let mut scan = Self {
            session: session.to_owned(),
            kind,
            width: query.width.max(1),
            limits,
            want: None,
            end: None,
            window: Window::new(query.turns.max(1), projection),
            client_before: start.before.clone(),
            boundary: start.boundary,
            seeking: start.seeking,
            requested: query.before.iter().cloned().collect(),
            seen: HashSet::new(),
            neighbour: Neighbour::at(start.before.as_deref()),
            pages: 0,
            rows: 0,
            narrowed: 0,
            left: None,
        };
        let first = scan.ask(start.before)?;
        scan.take_step(first);
        Ok(scan)
    }

    /// What to ask the source for next; `None` when the scan is done.
    #[must_use]
    pub fn want(&self) -> Option<&PageRequest> {
        self.want.as_ref()
    }

    /// Takes the answer to what was wanted.
    ///
    /// # Errors
    ///
    /// The scan has failed and is of no further use.
    pub fn feed(&mut self, answer: Answer) -> Result<(), TurnPageError> {
        let request = self.want.take().ok_or(TurnPageError::Internal)?;
        let step = match request.purpose {
            Purpose::Scan | Purpose::Narrow => self.take_answer(&request, answer),
            Purpose::Probe => self.take_probe(request.before, answer),
            Purpose::Identify => self.take_identity(answer),
        }?;
        self.take_step(step);
        Ok(())
    }

    /// Makes the page.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::Upstream`] when nothing can be shown although there may be more, and
    /// [`TurnPageError::Internal`] when something is still wanted or the scan has failed.
    pub fn finish(self) -> Result<TurnPage, TurnPageError> {
        let end = self.end.ok_or(TurnPageError::Internal)?;
        self.window.into_page(end == End::Exhausted)
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
    ) -> Result<Step, TurnPageError> {
        match answer {
            Answer::Page(page) => self.take_page(request, &page),
            Answer::Unencodable if self.kind == SourceKind::OpenCode => {
                if request.limit > 1 {
                    self.narrow(request)
                } else {
                    self.skip_unreadable()
                }
            }
            Answer::Oversized if request.limit > 1 => self.narrow(request),
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
        let any_new = self.add_rows(request, page);
        if next.is_some() && !any_new {
            return Err(TurnPageError::DuplicateCursor);
        }
        self.rows += page.rows.len();
        if self.kind == SourceKind::OpenCode && self.rows > self.limits.rows {
            return Err(self.over_limit(TurnPageError::MaxScanMessages));
        }
        self.step_down(page.rows.len());
        match next {
            _ if self.window.is_trimmed() => Ok(Step::End(End::Open)),
            Some(_) if self.window.is_full() => Ok(Step::End(End::Open)),
            Some(_) if self.kind == SourceKind::Log && self.rows >= self.limits.rows => {
                self.give_up()
            }
            Some(next) => self.ask(Some(next.clone())),
            None if self.kind == SourceKind::Log || page.rows.len() < request.limit => {
                self.end_of_history()
            }
            None => self.doubt(request, page),
        }
    }

    /// Adds the rows that are wanted; whether there was any that had not been read before.
    fn add_rows(&mut self, request: &PageRequest, page: &SourcePage) -> bool {
        // In the order of the page: of two copies on one page the older one counts.
        let new: Vec<bool> = page.rows.iter().map(|row| self.seen.insert(row.id.clone())).collect();
        let found = page.rows.iter().position(|row| self.boundary.as_ref() == Some(&row.id));
        self.seeking &= found.is_none();
        let all = if self.seeking { 0 } else { page.rows.len() };
        let ordered = self.kind == SourceKind::Log || page.is_ordered(request.before.as_deref());
        for (row, &new) in page.rows.iter().zip(&new).take(found.unwrap_or(all)).rev() {
            if new {
                self.window.add(row, || {
                    row.cursor().filter(|_| ordered).or_else(|| request.before.clone())
                });
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
    ) -> Result<Step, TurnPageError> {
        match answer {
            Answer::Page(page) if page.rows.is_empty() && page.next.is_none() => {
                self.end_of_history()
            }
            Answer::Page(page) if page.rows.iter().any(|row| !self.seen.contains(&row.id)) => {
                self.go_on_below(before)
            }
            Answer::Oversized => self.go_on_below(before),
            Answer::Unencodable => self.skip_unreadable(),
            Answer::TimedOut => Err(TurnPageError::TimedOut),
            Answer::Page(_)
            | Answer::History(_)
            | Answer::BadCursor
            | Answer::NotFound
            | Answer::Unavailable
            | Answer::Failed => self.give_up(),
        }
    }

    fn go_on_below(&mut self, before: Option<String>) -> Result<Step, TurnPageError> {
        if self.window.is_full() { Ok(Step::End(End::Open)) } else { self.ask(before) }
    }

    /// A page failed because of what is on it: ask for half of it.
    fn narrow(&mut self, request: &PageRequest) -> Result<Step, TurnPageError> {
        self.left = Some(request.limit);
        self.ask(request.before.clone())
    }

    /// Counts rows read in small steps, until the page that failed lies behind.
    fn step_down(&mut self, read: usize) {
        self.left = self.left.map(|left| left.saturating_sub(read)).filter(|&left| left > 0);
    }

    /// The session's oldest row cannot be read.
    fn skip_unreadable(&mut self) -> Result<Step, TurnPageError> {
        if self.seeking {
            return Err(TurnPageError::InvalidCursor);
        }
        if self.window.is_full() {
            return Ok(Step::End(End::Open));
        }
        Ok(Step::Ask(PageRequest { before: None, limit: 1, purpose: Purpose::Identify }))
    }

    fn take_identity(&mut self, answer: Answer) -> Result<Step, TurnPageError> {
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
        self.window.add(&stub, || None);
        self.end_of_history()
    }

    fn is_known(&self, id: &str) -> bool {
        self.seen.contains(id) || self.boundary.as_deref() == Some(id)
    }

    fn ask(&mut self, before: Option<String>) -> Result<Step, TurnPageError> {
        let (limit, purpose) = match self.left {
            Some(left) => {
                if self.narrowed >= self.limits.narrow {
                    return Err(TurnPageError::Upstream);
                }
                self.narrowed += 1;
                ((left / 2).max(1), Purpose::Narrow)
            }
            None if self.kind == SourceKind::Log => {
                (self.width.min(self.limits.rows.saturating_sub(self.rows)), Purpose::Scan)
            }
            None => {
                if self.pages >= self.limits.pages {
                    return Err(self.over_limit(TurnPageError::MaxScanPages));
                }
                self.pages += 1;
                (self.width, Purpose::Scan)
            }
        };
        self.requested.extend(before.clone());
        Ok(Step::Ask(PageRequest { before, limit, purpose }))
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

    /// Ends although fewer turns were found than wanted and there may be more.
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
