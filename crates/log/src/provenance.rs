//! `sourceEventSeqs`: the earlier events that a model-visible event came from.
//!
//! Writers differ in how they spell the list. Older ones, and we, write every seq; newer ones
//! write a run of three or more as `[first, last]`. Both are read; an [`Event`](crate::Event) always
//! shows the long form.

use std::fmt::Write as _;

use crate::{
    id::Seq,
    json::{Json, Kind},
};

/// A checked list.
#[derive(Clone, Copy)]
pub(crate) struct Provenance<'a> {
    pub(crate) list: Json<'a>,
    /// How many seqs the list stands for.
    count: u64,
    /// Whether any of them are spelled as a range.
    pub(crate) has_ranges: bool,
}

/// Checks the list that the event at `seq` carries.
///
/// A list without ranges may be in any order; the two forms could not be told apart by their
/// length otherwise, so one with ranges must increase strictly.
pub(crate) fn check(list: Json<'_>, seq: Seq) -> Result<Provenance<'_>, &'static str> {
    let mut found = Provenance { list, count: 0, has_ranges: false };
    let mut increasing = true;
    let mut before = None;
    for element in list.elements().ok_or("is not an array")? {
        let (first, end) = span(element).ok_or("holds something else than seqs and ranges")?;
        found.has_ranges |= element.kind() == Kind::Array;
        increasing &= before.is_none_or(|before| before < first);
        before = Some(end);
        found.count = found.count.saturating_add(end - first + 1);
        if found.count > seq.0 {
            return Err("names more events than come before its own");
        }
    }
    if found.has_ranges && !increasing {
        return Err("holds ranges and does not increase");
    }
    Ok(found)
}

/// The first and the last seq that an element stands for.
fn span(element: Json<'_>) -> Option<(u64, u64)> {
    let Some(mut ends) = element.elements() else {
        let seq = element.as_natural()?;
        return Some((seq, seq));
    };
    let (first, last) = (ends.next()?.as_natural()?, ends.next()?.as_natural()?);
    (ends.next().is_none() && first <= last).then_some((first, last))
}

impl Provenance<'_> {
    /// How long the expanded list can get, in bytes.
    pub(crate) fn expanded_len(&self) -> usize {
        const LONGEST: usize = "9007199254740991,".len();
        usize::try_from(self.count).unwrap_or(usize::MAX).saturating_mul(LONGEST)
    }

    /// Appends the list with every seq of it.
    pub(crate) fn expand(&self, out: &mut String) {
        out.push('[');
        let spans = self.list.elements().into_iter().flatten().filter_map(span);
        for (at, seq) in spans.flat_map(|(first, last)| first..=last).enumerate() {
            if at > 0 {
                out.push(',');
            }
            let _ = write!(out, "{seq}");
        }
        out.push(']');
    }
}
