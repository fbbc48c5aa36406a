//! Catching up with a session after a lost connection.
//!
//! A client that was away names the newest message it is sure of, its *anchor*, and is sent all
//! records from there to the newest: the *gap*, the anchor itself included, since the turn that it
//! starts may have gone on. That is a *round*. It runs from the newest record to the anchor, page
//! by page, each page old to new, and each with a *continuation* to ask for the next one with,
//! until the page that holds the anchor.
//!
//! Like [a turn page](crate::scan), a page of a round is scanned for without I/O:
//! [`ReconcileScan::want`] says what to ask the source for next, [`ReconcileScan::feed`] takes the
//! answer, and [`ReconcileScan::finish`] makes the page. The host keeps nothing between pages: all
//! that a round has come to is in its continuation.
//!
//! # No row twice
//!
//! The next page starts exactly below the oldest record sent, at the source's own cursor for it or
//! at one made from what the record says of itself. So rows that are added or removed meanwhile
//! disturb nothing, and nothing is read again but rows that were read and had no room. Where
//! neither kind of cursor is to be had, the page that the record was on is read again, and older
//! ones if need be, down to that record.
//!
//! # When a client has to start over
//!
//! A *reset* tells a client to drop what it has, which hurts, so there are two reasons only: the
//! session has been read to its oldest row and the anchor was not there; or the anchor has not
//! been found within the budgets of a round. Once it has been found these count no more: what is
//! left to send is known to end. Nothing is sent with a reset.
//!
//! # What is added meanwhile
//!
//! The round is about what was there when it began. With the last page the newest row is asked for
//! once more; if it is another one, the client starts the next round with the old newest row as
//! its anchor.
//!
//! ```
//! use turnkeep_log::Text;
//! use turnkeep_turns::{
//!     Answer, PageRequest, ReconcileError, ReconcileScan, SourceKind, SourcePage,
//!     reconcile::{Budgets, KeyRing, ReconcileConfig, ReconcileRequest, ReconcileStart},
//! };
//!
//! /// Stands in for a request to a server: a session of one page.
//! fn ask(_: &PageRequest) -> Result<Answer, ReconcileError> {
//!     let body = Text::from(
//!         r#"[{"info":{"id":"msg_1","role":"user","time":{"created":1}},"parts":[]},
//!             {"info":{"id":"msg_2","role":"user","time":{"created":2}},"parts":[]},
//!             {"info":{"id":"msg_3","role":"assistant","time":{"created":3}},"parts":[]}]"#,
//!     );
//!     Ok(SourcePage::from_opencode(&body, None).map(Answer::Page)?)
//! }
//!
//! # let random = [7; 32];
//! let config = ReconcileConfig {
//!     runtime: "web".to_owned(),
//!     width: 100,
//!     budgets: Budgets::default(),
//!     keys: KeyRing::new(&random).expect("32 bytes are enough"),
//! };
//! let request = ReconcileRequest {
//!     session: "ses_1".to_owned(),
//!     directory: None,
//!     reasoning: true,
//!     start: ReconcileStart::Anchor("msg_2".to_owned()),
//! };
//! # let now_ms = 0;
//! let mut scan = ReconcileScan::new(&config, request, SourceKind::OpenCode, now_ms)?;
//! while let Some(request) = scan.want() {
//!     let answer = ask(request)?;
//!     scan.feed(answer)?;
//! }
//! let page = scan.finish(now_ms)?;
//! assert_eq!((page.records.len(), page.complete(), page.reset_required), (2, true, false));
//! # Ok::<(), ReconcileError>(())
//! ```

mod budgets;
mod continuation;
mod gap;
mod keys;
mod page;
mod request;

#[cfg(test)]
mod tests;

pub use self::{
    budgets::Budgets,
    keys::{KeyRing, KeyRingError, MIN_KEY_BYTES},
    page::ReconcilePage,
    request::{ReconcileRequest, ReconcileStart},
};
use self::{
    continuation::{Progress, Scope, TTL_MS},
    gap::{Gap, Outcome, Tally},
};
use crate::{
    error::{ReconcileError, TurnPageError},
    events::LiveText,
    page::{Answer, PageRequest, Purpose, SourceKind},
    projection::{Parts, Projection},
    reader::{Limits, RowReader, Start},
};

/// No limit to rows: a page of a round ends long before.
const LIMITS: Limits = Limits { pages: 50, rows: usize::MAX, narrow: 200 };

/// How a host reconciles.
#[derive(Clone, Debug)]
pub struct ReconcileConfig {
    /// The name of the runtime. A continuation is good for hosts of the same name only.
    pub runtime: String,
    /// How many rows to ask a source for at a time.
    pub width: usize,
    /// How much a page may hold and a round may take.
    pub budgets: Budgets,
    /// The keys that continuations are signed with.
    pub keys: KeyRing,
}

/// A scan for one page of a round. Drive it with [`want`](Self::want) and [`feed`](Self::feed),
/// then [`finish`](Self::finish) it.
#[derive(Debug)]
pub struct ReconcileScan {
    keys: KeyRing,
    scope: Scope,
    reader: RowReader,
    gap: Gap,
    /// The newest row when the round began, once known from an earlier page.
    captured_head: Option<String>,
    /// The pages of the round, this one included.
    pages: u64,
    /// The question for the newest row, while it is wanted.
    head_probe: Option<PageRequest>,
    /// The answer to it.
    latest_head: Option<String>,
}

impl ReconcileScan {
    /// Starts a scan. `now_ms` is the time, in milliseconds since the epoch.
    ///
    /// # Errors
    ///
    /// [`ReconcileError::InvalidContinuation`] when there is a continuation and it is malformed,
    /// expired, not signed by one of the keys, or made for another runtime, session, directory or
    /// choice of parts.
    pub fn new(
        config: &ReconcileConfig,
        request: ReconcileRequest,
        kind: SourceKind,
        now_ms: u64,
    ) -> Result<Self, ReconcileError> {
        let ReconcileRequest { session, directory, reasoning, start } = request;
        let scope = Scope { runtime: config.runtime.clone(), directory, session, reasoning };
        let projection = Projection { parts: Parts::Full, reasoning };
        let budgets = config.budgets;
        let (gap, start, captured_head, pages) = match start {
            ReconcileStart::Anchor(anchor) => {
                let gap = Gap::new(anchor, Tally::default(), false, budgets, projection);
                (gap, Start::default(), None, 0)
            }
            ReconcileStart::Continuation(text) => {
                let progress = continuation::open(&text, &scope, &config.keys, now_ms)
                    .ok_or(ReconcileError::InvalidContinuation)?;
                let Progress { anchor, anchor_found, captured_head, resume, scanned, pages } =
                    progress;
                let start = Start::below(resume.scan_before, resume.returned_through, kind)?;
                let gap = Gap::new(anchor, scanned, anchor_found, budgets, projection);
                (gap, start, Some(captured_head), pages)
            }
        };
        Ok(Self {
            reader: RowReader::new(&scope.session, kind, config.width, LIMITS, start, &gap)?,
            keys: config.keys.clone(),
            scope,
            gap,
            captured_head,
            pages: pages.saturating_add(1),
            head_probe: None,
            latest_head: None,
        })
    }

    /// Gives the page the text of parts that were open at `live`, which has to have been taken before
    /// anything was asked of the source. By default there are none.
    ///
    /// What the text adds counts against what a page may hold. What a round may read is counted in
    /// bytes of the source.
    #[must_use]
    pub fn with_live(mut self, live: LiveText) -> Self {
        self.gap.live = live;
        self
    }

    /// What to ask the source for next; `None` when the scan is done.
    #[must_use]
    pub fn want(&self) -> Option<&PageRequest> {
        self.reader.want().or(self.head_probe.as_ref())
    }

    /// Takes the answer to what was wanted.
    ///
    /// # Errors
    ///
    /// The scan has failed and is of no further use.
    pub fn feed(&mut self, answer: Answer) -> Result<(), ReconcileError> {
        if self.head_probe.take().is_some() {
            if let Answer::Page(page) = answer {
                self.latest_head = page.rows.last().map(|row| row.id.clone());
            }
            return Ok(());
        }
        self.reader.feed(answer, &mut self.gap)?;
        if self.outcome() == Some(Outcome::Complete) {
            self.head_probe = Some(PageRequest { before: None, limit: 1, purpose: Purpose::Probe });
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.reader.end().map(|end| self.gap.outcome(end, self.pages))
    }

    /// Makes the page. `now_ms` is the time, in milliseconds since the epoch.
    ///
    /// # Errors
    ///
    /// [`TurnPageError::Upstream`] when nothing can be sent although there may be more, and
    /// [`TurnPageError::Internal`] when something is still wanted or the scan has failed.
    pub fn finish(self, now_ms: u64) -> Result<ReconcilePage, ReconcileError> {
        let internal = ReconcileError::Rows(TurnPageError::Internal);
        let outcome = self.outcome().filter(|_| self.head_probe.is_none()).ok_or(internal)?;
        let anchor = self.gap.anchor().to_owned();
        let knows_anchor = self.gap.knows_anchor();
        let scanned = self.gap.scanned(outcome);
        let captured_head = self.captured_head.or_else(|| self.gap.newest().map(str::to_owned));
        let (records, resume) = self.gap.into_records();
        let mut page = ReconcilePage {
            records,
            anchor_found: knows_anchor,
            latest_head: self.latest_head.or_else(|| captured_head.clone()),
            captured_head,
            continuation: None,
            reset_required: outcome == Outcome::Reset,
            scanned_records: scanned.records,
        };
        match outcome {
            Outcome::Complete => {}
            Outcome::Reset => {
                page.anchor_found = false;
                page.records.clear();
            }
            Outcome::GoesOn => {
                let nothing_sent = ReconcileError::Rows(TurnPageError::Upstream);
                let progress = Progress {
                    anchor,
                    anchor_found: knows_anchor,
                    captured_head: page.captured_head.clone().ok_or(nothing_sent)?,
                    resume: resume.ok_or(nothing_sent)?,
                    scanned,
                    pages: self.pages,
                };
                let text = continuation::seal(&self.scope, &progress, &self.keys, now_ms, TTL_MS);
                page.continuation = Some(text);
            }
        }
        Ok(page)
    }
}
