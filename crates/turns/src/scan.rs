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

mod window;

#[cfg(test)]
mod tests;

use self::window::Window;
use crate::{
    error::TurnPageError,
    events::LiveText,
    page::{Answer, PageRequest, SourceKind},
    projection::Projection,
    query::TurnQuery,
    reader::{End, Limits, RowReader, Start},
    turn_page::TurnPage,
};

const LIMITS: Limits = Limits { pages: 50, rows: 5000, narrow: 200 };

/// A scan for one turn page. Drive it with [`want`](Self::want) and [`feed`](Self::feed), then
/// [`finish`](Self::finish) it.
#[derive(Debug)]
pub struct TurnScan {
    reader: RowReader,
    window: Window,
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
        let window = Window::new(query.turns.max(1), projection);
        let reader = RowReader::new(session, kind, query.width, limits, start, &window)?;
        Ok(Self { reader, window })
    }

    /// Gives the page the text of parts that were open at `live`, which has to have been taken before
    /// anything was asked of the source. By default there are none.
    #[must_use]
    pub fn with_live(mut self, live: LiveText) -> Self {
        self.window.live = live;
        self
    }

    /// What to ask the source for next; `None` when the scan is done.
    #[must_use]
    pub fn want(&self) -> Option<&PageRequest> {
        self.reader.want()
    }

    /// Takes the answer to what was wanted.
    ///
    /// # Errors
    ///
    /// The scan has failed and is of no further use.
    pub fn feed(&mut self, answer: Answer) -> Result<(), TurnPageError> {
        self.reader.feed(answer, &mut self.window)
    }

    /// Makes the page.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::Upstream`] when nothing can be shown although there may be more, and
    /// [`TurnPageError::Internal`] when something is still wanted or the scan has failed.
    pub fn finish(self) -> Result<TurnPage, TurnPageError> {
        let end = self.reader.end().ok_or(TurnPageError::Internal)?;
        self.window.into_page(end == End::Exhausted)
    }
}
