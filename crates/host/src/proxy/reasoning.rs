//! Leaving reasoning out of what the upstream lists.
//!
//! Only the parts that are left out are cut from the text; every other byte stays as the upstream
//! sent it.

use std::ops::Range;

use turnkeep_log::json::{Json, Kind, Walk};

/// The body without reasoning parts; `None` when there is nothing to leave out, or when it is none
/// of the forms that hold messages: a list of them, `{records}`, `{record}`, or one by itself.
pub(crate) fn without_reasoning(body: &str) -> Option<String> {
    let json = Json::parse(body).ok()?;
    let mut walk = Walk::over(json);
    let mut cuts = Vec::new();
    match walk.kind() {
        Kind::Array => records(&mut walk, &mut cuts),
        Kind::Object => {
            walk.enter();
            while let Some(key) = walk.next_key() {
                if key == "records" && walk.kind() == Kind::Array {
                    records(&mut walk, &mut cuts);
                } else if key == "record" {
                    record(&mut walk, &mut cuts);
                } else if key == "parts" {
                    parts(&mut walk, &mut cuts);
                } else {
                    walk.value();
                }
            }
        }
        _ => return None,
    }
    if cuts.is_empty() {
        return None;
    }
    let text = json.text();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        kept.push_str(text.get(at..cut.start)?);
        at = cut.end;
    }
    kept.push_str(text.get(at..)?);
    Some(kept)
}

fn records(walk: &mut Walk<'_>, cuts: &mut Vec<Range<usize>>) {
    walk.enter();
    while walk.next_element() {
        record(walk, cuts);
    }
}

fn record(walk: &mut Walk<'_>, cuts: &mut Vec<Range<usize>>) {
    if walk.kind() != Kind::Object {
        walk.value();
        return;
    }
    walk.enter();
    while let Some(key) = walk.next_key() {
        if key == "parts" {
            parts(walk, cuts);
        } else {
            walk.value();
        }
    }
}

fn parts(walk: &mut Walk<'_>, cuts: &mut Vec<Range<usize>>) {
    if walk.kind() != Kind::Array {
        walk.value();
        return;
    }
    walk.enter();
    // Where the last part that stays ends; with it goes the comma before one that does not.
    let mut kept_until = None;
    // What is left out before any part stays, and the comma after it.
    let mut left_out: Option<Range<usize>> = None;
    while walk.next_element() {
        let start = walk.offset();
        let part = walk.value();
        let end = walk.offset();
        let kind = part.get("type").and_then(Json::as_str);
        if kind.is_some_and(|kind| kind == "reasoning") {
            match &mut kept_until {
                Some(kept_until) => cuts.push(std::mem::replace(kept_until, end)..end),
                None => left_out = Some(left_out.map_or(start, |cut| cut.start)..end),
            }
        } else {
            if let Some(cut) = left_out.take() {
                cuts.push(cut.start..start);
            }
            kept_until = Some(end);
        }
    }
    cuts.extend(left_out);
}

#[cfg(test)]
#[path = "reasoning_tests.rs"]
mod tests;
