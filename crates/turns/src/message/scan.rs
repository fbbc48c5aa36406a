//! Looking for a message on the pages of its session.

use turnkeep_log::Text;

use crate::{
    error::MessageError,
    page::{Answer, PageRequest, SourceKind, SourceRow},
    query::DEFAULT_WIDTH,
    reader::{End, Limits, RowReader, Sink, Spot, Start},
};

/// No limit to rows: one of them is kept.
const LIMITS: Limits = Limits { pages: 50, rows: usize::MAX, narrow: 200 };

/// A scan for one message that its source cannot send by itself.
///
/// OpenCode encodes a message that is asked for alone, but sends a page that has a cursor as it is
/// stored. So a message that cannot be encoded can still be had from such a page, unless it is the
/// oldest of its session: then what is found is the stub that a turn page shows in its place. This
/// reads from the newest message on, which is slow; it is for when there is no other way.
///
/// Drive it with [`want`](Self::want) and [`feed`](Self::feed), then [`finish`](Self::finish) it.
#[derive(Debug)]
pub struct MessageScan {
    reader: RowReader,
    search: Search,
}

impl MessageScan {
    /// Starts to look in `session` for the message of this id.
    ///
    /// # Errors
    ///
    /// None that can come up at the start.
    pub fn new(session: &str, message: &str, kind: SourceKind) -> Result<Self, MessageError> {
        let is_placeholder = super::is_placeholder(session, message);
        let search = Search { message: message.to_owned(), is_placeholder, found: None };
        let start = Start::default();
        let reader = RowReader::new(session, kind, DEFAULT_WIDTH, LIMITS, start, &search)?;
        Ok(Self { reader, search })
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
    pub fn feed(&mut self, answer: Answer) -> Result<(), MessageError> {
        Ok(self.reader.feed(answer, &mut self.search)?)
    }

    /// The message as the page had it: the JSON text of `{info, parts}`.
    ///
    /// # Errors
    ///
    /// [`MessageError::Upstream`] when it is on none of the pages, although the source has it;
    /// [`MessageError::NotFound`] when it is the [placeholder](super::is_placeholder), and all of
    /// the session can be read; [`MessageError::Internal`] when something is still wanted or the
    /// scan has failed.
    pub fn finish(self) -> Result<Text, MessageError> {
        let end = self.reader.end().ok_or(MessageError::Internal)?;
        let Search { is_placeholder, found, .. } = self.search;
        found.ok_or(if is_placeholder && end == End::Exhausted {
            MessageError::NotFound
        } else {
            MessageError::Upstream
        })
    }
}

#[derive(Debug)]
struct Search {
    message: String,
    is_placeholder: bool,
    found: Option<Text>,
}

impl Sink for Search {
    fn add(&mut self, row: &SourceRow, _: Spot<'_>) {
        if self.found.is_none() && row.id == self.message {
            // A copy, since a slice would keep the whole page.
            self.found = Some(Text::from(row.json.text().to_string()));
        }
    }

    fn is_full(&self) -> bool {
        self.found.is_some()
    }

    fn is_settled(&self) -> bool {
        self.found.is_some()
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
