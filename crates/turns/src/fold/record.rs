//! One record of the transcript.

use std::fmt::{self, Display, Formatter};

use turnkeep_log::{Seq, Text, json::JsonText};

use super::{
    assistant::{Assistant, times},
    command::Command,
    compaction::{Marker, Summary},
    render::Writer,
    user::User,
};

/// One record: what every kind has, and what makes it its kind.
pub(super) struct Record {
    /// The event it began with: its place in the transcript, for good.
    pub(super) seq: Seq,
    /// The inside of the literal that spells its id.
    pub(super) id: Text,
    /// When it began, in milliseconds.
    pub(super) created: i64,
    /// Whether it is in the transcript.
    pub(super) shown: bool,
    /// Whether it may have changed since somebody asked what has.
    pub(super) touched: bool,
    pub(super) body: Body,
}

pub(super) enum Body {
    User(User),
    Command(Command),
    Assistant(Box<Assistant>),
    Marker(Marker),
    Summary(Summary),
}

/// What rendering a record needs besides the record.
pub(super) struct Around<'a> {
    /// The inside of the literal that spells the session's id.
    pub(super) session: &'a str,
}

impl Record {
    /// The record as the message list has it: `{info, parts}`.
    pub(super) fn render(&self, around: &Around<'_>) -> Option<JsonText> {
        let mut out = Writer::with_capacity(self.size());
        out.open();
        out.key("info").open();
        out.key("id").literal(&self.id);
        out.key("sessionID").literal(around.session);
        match &self.body {
            Body::User(_) | Body::Command(_) | Body::Marker(_) => {
                out.key("role").literal("user");
                times(self.created, None, &mut out);
            }
            Body::Assistant(answer) => answer.info(self, &mut out),
            Body::Summary(summary) => summary.info(self, &mut out),
        }
        out.close();
        match &self.body {
            Body::User(user) => user.parts(self, around, &mut out),
            Body::Command(command) => command.parts(self, around, &mut out),
            Body::Assistant(answer) => answer.parts(self, around, &mut out),
            Body::Marker(marker) => marker.parts(self, around, &mut out),
            Body::Summary(summary) => summary.parts(self, around, &mut out),
        }
        out.close();
        JsonText::parse(&Text::from(out.finish())).ok()
    }

    /// About how long the record's text is.
    fn size(&self) -> usize {
        512 + match &self.body {
            Body::User(user) => user.size(),
            Body::Command(command) => command.size(),
            Body::Assistant(answer) => answer.size(),
            Body::Marker(_) => 0,
            Body::Summary(summary) => summary.size(),
        }
    }

    /// Starts a part: what every part has. `number` is a [`PartNumber`], or two for a part of a part.
    pub(super) fn open_part(
        &self,
        around: &Around<'_>,
        number: impl Display,
        kind: &str,
        out: &mut Writer,
    ) {
        out.open();
        out.key("id").literals(&[&self.id, ".", &number.to_string()]);
        out.key("sessionID").literal(around.session);
        out.key("messageID").literal(&self.id);
        out.key("type").literal(kind);
    }
}

/// What tells the parts of a message apart in their ids.
///
/// Clients of OpenCode keep the parts of a message sorted by id, compared as text, so the text has
/// to sort as the numbers do: three digits, and before more than three a letter for each digit more.
pub(super) struct PartNumber(pub(super) usize);

impl Display for PartNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.checked_ilog10().map_or(1, |power| power + 1);
        for _ in 3..digits {
            f.write_str("z")?;
        }
        write!(f, "{:03}", self.0)
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
