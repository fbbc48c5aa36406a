//! What of a record a client is sent.
//!
//! A record is `{info, parts}` as JSON text, and it leaves as text: what is taken out or shortened
//! is cut out of the bytes the source sent, and all others stay as they are. Nothing is parsed
//! into a tree, and a record is gone over once.

use turnkeep_log::json::{Json, Kind, Walk};

use crate::{
    events::OpenParts,
    slim::{Part, PartKind},
    splice::{RepeatedKey, Splice, rewritten, set_once},
    summary,
};

/// How much of a record's parts a client is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// All of them, whole.
    Full,
    /// Tool output, reasoning text and file bodies left out: `slim-v1`.
    Slim,
}

/// What of a record a client is sent. Diffs in a message's summary are reduced in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// How much of the parts.
    pub parts: Parts,
    /// Whether reasoning parts are sent at all.
    pub reasoning: bool,
}

impl Projection {
    /// Appends the record as the client is to see it. A record that nothing is taken from is
    /// appended byte for byte.
    ///
    /// In one that something is taken from, all else stays byte for byte too: the other members of
    /// the record, of `info` and of its summary, and the other parts. Only a record in which
    /// `info`, `parts`, `summary`, `diffs`, `diffCount` or `hasDiffs` stands twice is first brought
    /// into the form `JSON.stringify` would give it, so that what was taken out of one does not
    /// leave with the other. A slim part has exactly the text `JSON.stringify` would make of it:
    /// what it copies is printed anew, not passed on.
    ///
    /// What is no record, or holds other things than expected under these names, is left alone as
    /// far as it is not understood.
    pub fn write(self, record: Json<'_>, out: &mut String) {
        self.write_with(record, None, out);
    }

    /// As [`write`](Self::write), of a record some parts of which are being written. These have no
    /// slim form: what comes next is told by events that add to the text.
    pub(crate) fn write_open(self, record: Json<'_>, open: &OpenParts, out: &mut String) {
        self.write_with(record, Some(open), out);
    }

    fn write_with(self, record: Json<'_>, open: Option<&OpenParts>, out: &mut String) {
        if !rewritten(record, out, |record, splice| self.project(record, open, splice)) {
            out.push_str(record.text());
        }
    }

    fn project(
        self,
        record: Json<'_>,
        open: Option<&OpenParts>,
        splice: &mut Splice<'_, '_>,
    ) -> Result<(), RepeatedKey> {
        let mut walk = Walk::over(record);
        if walk.kind() != Kind::Object {
            return Ok(());
        }
        let mut author = None;
        let mut parts = None;
        walk.enter();
        while let Some(key) = walk.next_key() {
            if key == "info" {
                set_once(&mut author, project_info(&mut walk, splice)?)?;
            } else if key == "parts" {
                set_once(&mut parts, ())?;
                // Who wrote a record usually stands before its parts.
                let author =
                    author.unwrap_or_else(|| record.get("info").map_or(Author::Other, Author::of));
                self.project_parts(author, open, &mut walk, splice);
            } else {
                walk.value();
            }
        }
        Ok(())
    }

    fn project_parts(
        self,
        author: Author,
        open: Option<&OpenParts>,
        walk: &mut Walk<'_>,
        splice: &mut Splice<'_, '_>,
    ) {
        let takes_nothing = self.parts == Parts::Full && self.reasoning;
        if takes_nothing || walk.kind() != Kind::Array {
            walk.value();
            return;
        }
        // Up to where the array is settled: the end of the last part dealt with, once one is kept.
        let mut settled = None;
        // The first of the parts left out before any is kept.
        let mut left_out = None;
        walk.enter();
        let mut end = walk.offset();
        while walk.next_element() {
            let start = walk.offset();
            let part = Part::read(walk);
            end = walk.offset();
            let fate = self.fate(author, &part);
            if matches!(fate, Fate::LeaveOut) {
                match &mut settled {
                    Some(settled) => {
                        splice.replace(std::mem::replace(settled, end), end);
                    }
                    None => {
                        left_out.get_or_insert(start);
                    }
                }
                continue;
            }
            if let Some(from) = left_out.take() {
                splice.replace(from, start);
            }
            if let Fate::Slim(kind) = fate
                && !open.is_some_and(|open| part.is_in(open))
            {
                part.write(kind, splice.replace(start, end));
            }
            settled = Some(end);
        }
        if let Some(from) = left_out {
            splice.replace(from, end);
        }
    }

    fn fate(self, author: Author, part: &Part<'_>) -> Fate {
        let Some(kind) = part.kind() else { return Fate::Keep };
        if kind == PartKind::Reasoning && !self.reasoning {
            return Fate::LeaveOut;
        }
        // A person's own words and calls are shown whole; what they attached is not.
        let has_slim_form = kind == PartKind::File || author == Author::Other;
        match self.parts {
            Parts::Slim if has_slim_form => Fate::Slim(kind),
            Parts::Slim | Parts::Full => Fate::Keep,
        }
    }
}

/// What becomes of a part.
enum Fate {
    Keep,
    LeaveOut,
    Slim(PartKind),
}

/// Who wrote a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    User,
    Other,
}

impl Author {
    fn of(info: Json<'_>) -> Self {
        Self::from_roles(info.get("clientRole"), info.get("role"))
    }

    /// A client's own word on the role counts before the server's, if it is a string at all.
    fn from_roles(client_role: Option<Json<'_>>, role: Option<Json<'_>>) -> Self {
        let role = client_role.and_then(Json::as_str).or_else(|| role?.as_str());
        if role.is_some_and(|role| role == "user") { Self::User } else { Self::Other }
    }
}

/// Walks over the value of `info`: reduces its summary and says who wrote the record.
fn project_info(walk: &mut Walk<'_>, splice: &mut Splice<'_, '_>) -> Result<Author, RepeatedKey> {
    if walk.kind() != Kind::Object {
        walk.value();
        return Ok(Author::Other);
    }
    let (mut client_role, mut role, mut summary) = (None, None, None);
    walk.enter();
    while let Some(key) = walk.next_key() {
        if key == "summary" {
            set_once(&mut summary, ())?;
            summary::reduce_summary(walk, splice)?;
            continue;
        }
        let value = walk.value();
        if key == "role" {
            role = Some(value);
        } else if key == "clientRole" {
            client_role = Some(value);
        }
    }
    Ok(Author::from_roles(client_role, role))
}

#[cfg(test)]
#[path = "projection_tests.rs"]
mod tests;
