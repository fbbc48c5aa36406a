//! Summaries without patches.
//!
//! A message's `summary.diffs` names every file a turn changed, each with its whole patch, and it
//! is sent with every list, page and event that holds the message. What a client shows of it is
//! the list: `file`, `status`, `additions`, `deletions`. So that is what every entry is reduced
//! to, and `diffCount` and `hasDiffs` stand beside the list. A patch is asked for by file.
//!
//! Values that are kept stay the text they were. What is no object is no diff and is left out;
//! what is no list is an empty one. A summary that is no object, as assistants have it, and one
//! without `diffs` are left alone.

use std::ops::Range;

use turnkeep_log::json::{Json, Kind, Walk};

use crate::{
    object::ObjectWriter,
    splice::{RepeatedKey, Splice, rewritten, set_once},
};

/// What is kept of a diff, in the order it is written.
const KEYS: [&str; 4] = ["file", "status", "additions", "deletions"];

/// Appends `owner` with the diffs of its `summary` reduced, every other byte as it was.
///
/// `owner` is whatever carries a summary: a message's `info`, a session, the body of an event.
/// When there is nothing to reduce, because the summary is reduced already or there is none,
/// nothing is appended and the answer is `false`: the caller goes on with the text it has.
///
/// ```
/// use turnkeep_log::json::Json;
/// use turnkeep_turns::summary;
///
/// let info = r#"{"id":"m","summary":{"diffs":[{"file":"a","patch":"+x","additions":1}]}}"#;
/// let mut out = String::new();
/// assert!(summary::reduce(Json::parse(info)?, &mut out));
/// assert_eq!(
///     out,
///     r#"{"id":"m","summary":{"diffs":[{"file":"a","additions":1}],"diffCount":1,"hasDiffs":true}}"#
/// );
/// # Ok::<(), turnkeep_log::json::JsonError>(())
/// ```
pub fn reduce(owner: Json<'_>, out: &mut String) -> bool {
    rewritten(owner, out, |owner, splice| {
        let mut walk = Walk::over(owner);
        if walk.kind() != Kind::Object {
            return Ok(());
        }
        let mut summary = None;
        walk.enter();
        while let Some(key) = walk.next_key() {
            if key == "summary" {
                set_once(&mut summary, ())?;
                reduce_summary(&mut walk, splice)?;
            } else {
                walk.value();
            }
        }
        Ok(())
    })
}

/// Appends a list of diffs reduced, as `session.diff` events carry one.
///
/// As [`reduce`], appends nothing and answers `false` when there is nothing to reduce. What is no
/// array is left alone.
pub fn reduce_list(diffs: Json<'_>, out: &mut String) -> bool {
    if diffs.kind() != Kind::Array {
        return false;
    }
    let list = List::read(&mut Walk::over(diffs));
    if list.is_changed {
        out.push_str(&list.text);
    }
    list.is_changed
}

/// Walks over the value of `summary`, which is a piece of the text that is spliced.
pub(crate) fn reduce_summary(
    walk: &mut Walk<'_>,
    splice: &mut Splice<'_, '_>,
) -> Result<(), RepeatedKey> {
    if walk.kind() != Kind::Object {
        walk.value();
        return Ok(());
    }
    let (mut diffs, mut count, mut flag) = (None, None, None);
    let mut end = walk.offset();
    walk.enter();
    while let Some(key) = walk.next_key() {
        let start = walk.offset();
        if key == "diffs" {
            let list = List::read(walk);
            set_once(&mut diffs, (start..walk.offset(), list))?;
        } else {
            let value = walk.value();
            let member = (start..walk.offset(), value);
            if key == "diffCount" {
                set_once(&mut count, member)?;
            } else if key == "hasDiffs" {
                set_once(&mut flag, member)?;
            }
        }
        end = walk.offset();
    }
    let Some((at, list)) = diffs else { return Ok(()) };

    let has_diffs = list.count > 0;
    let mut pieces: Vec<(Range<usize>, String)> = Vec::new();
    if list.is_changed {
        pieces.push((at, list.text));
    }
    match count {
        Some((_, stated)) if is_count(stated, list.count) => {}
        Some((at, _)) => pieces.push((at, list.count.to_string())),
        None => pieces.push((end..end, format!(",\"diffCount\":{}", list.count))),
    }
    match flag {
        Some((_, stated)) if stated.as_bool() == Some(has_diffs) => {}
        Some((at, _)) => pieces.push((at, has_diffs.to_string())),
        None => pieces.push((end..end, format!(",\"hasDiffs\":{has_diffs}"))),
    }
    // A stable sort: what is added at the end keeps its order.
    pieces.sort_by_key(|(at, _)| at.start);
    for (at, text) in pieces {
        splice.replace(at.start, at.end).push_str(&text);
    }
    Ok(())
}

fn is_count(stated: Json<'_>, count: usize) -> bool {
    stated.as_safe_integer().is_some_and(|stated| usize::try_from(stated) == Ok(count))
}

/// A list of diffs, reduced.
struct List {
    text: String,
    count: usize,
    is_changed: bool,
}

impl List {
    /// Walks over the value of `diffs`.
    fn read(walk: &mut Walk<'_>) -> Self {
        let mut list = Self { text: String::from("["), count: 0, is_changed: false };
        if walk.kind() == Kind::Array {
            walk.enter();
            while walk.next_element() {
                list.read_entry(walk);
            }
        } else {
            walk.value();
            list.is_changed = true;
        }
        list.text.push(']');
        list
    }

    fn read_entry(&mut self, walk: &mut Walk<'_>) {
        if walk.kind() != Kind::Object {
            walk.value();
            self.is_changed = true;
            return;
        }
        if self.count > 0 {
            self.text.push(',');
        }
        self.count += 1;

        let mut kept = [None; KEYS.len()];
        // Where in the order the next new key may stand at the earliest.
        let mut due = 0;
        walk.enter();
        while let Some(key) = walk.next_key() {
            let value = walk.value();
            let mut slots = KEYS.iter().zip(&mut kept).enumerate();
            let Some((place, (_, slot))) = slots.find(|(_, (kept, _))| key == ***kept) else {
                self.is_changed = true;
                continue;
            };
            if slot.replace(value).is_none() {
                self.is_changed |= place < due;
                due = place + 1;
            }
        }

        let mut entry = ObjectWriter::open(&mut self.text);
        for (key, value) in KEYS.iter().zip(kept) {
            if let Some(value) = value {
                entry.text(key, value.text());
            }
        }
        entry.close();
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
