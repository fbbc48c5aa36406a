//! A record with its open parts as they were at a moment.

use std::ops::Range;

use turnkeep_log::json::{Json, Kind, Walk};

use super::{
    envelope::id,
    live::{OpenPart, OpenParts},
};
use crate::splice::{RepeatedKey, Splice, rewritten, set_once};

/// Appends `record` with its open parts, every other byte as it was; nothing, and the answer
/// `false`, when they are in it as they are.
pub(super) fn record(record: Json<'_>, open: &OpenParts, out: &mut String) -> bool {
    rewritten(record, out, |record, splice| {
        let mut walk = Walk::over(record);
        if walk.kind() != Kind::Object {
            return Ok(());
        }
        let mut parts = None;
        walk.enter();
        while let Some(key) = walk.next_key() {
            if key == "parts" {
                set_once(&mut parts, ())?;
                overlay_parts(&mut walk, open, splice);
            } else {
                walk.value();
            }
        }
        Ok(())
    })
}

/// Walks over the array of parts.
fn overlay_parts(walk: &mut Walk<'_>, open: &OpenParts, splice: &mut Splice<'_, '_>) {
    if walk.kind() != Kind::Array {
        walk.value();
        return;
    }
    let listed: Vec<_> = {
        let mut ahead = walk.clone();
        ahead
            .value()
            .elements()
            .into_iter()
            .flatten()
            .filter_map(|part| id(part.get("id")))
            .collect()
    };
    let mut absent =
        open.iter().filter(|(part, _)| !listed.iter().any(|listed| **listed == ***part)).peekable();
    walk.enter();
    let mut end = walk.offset();
    let mut is_first = true;
    while walk.next_element() {
        let start = walk.offset();
        let part = walk.value();
        end = walk.offset();
        is_first = false;
        let Some(id) = id(part.get("id")) else { continue };
        while let Some((_, part)) = absent.next_if(|(absent, _)| ***absent < *id) {
            let out = splice.replace(start, start);
            write_part(part, out);
            out.push(',');
        }
        if let Some(open) = open.get(&*id) {
            let mut text = String::new();
            if set_text(part, &open.text, &mut text) {
                splice.replace(start, end).push_str(&text);
            }
        }
    }
    for (_, part) in absent {
        let out = splice.replace(end, end);
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        write_part(part, out);
    }
}

fn write_part(part: &OpenPart, out: &mut String) {
    if let Ok(announced) = Json::parse(&part.announced)
        && !set_text(announced, &part.text, out)
    {
        out.push_str(announced.text());
    }
}

/// Appends a part with this text, the inside of a string literal, and without an end, every other
/// byte as it was; nothing, and the answer `false`, when it is so already.
pub(super) fn set_text(part: Json<'_>, text: &str, out: &mut String) -> bool {
    let literal = format!("\"{text}\"");
    let wanted = Json::parse(&literal).ok().and_then(Json::as_str);
    rewritten(part, out, |part, splice| {
        let mut walk = Walk::over(part);
        if walk.kind() != Kind::Object {
            return Ok(());
        }
        let (mut stated, mut time) = (None, None);
        walk.enter();
        let mut end = walk.offset();
        let mut is_empty = true;
        while let Some(key) = walk.next_key() {
            let start = walk.offset();
            let value = walk.value();
            end = walk.offset();
            is_empty = false;
            if key == "text" {
                set_once(&mut stated, ())?;
                if value.as_str() != wanted {
                    splice.replace(start, end).push_str(&literal);
                }
            } else if key == "time" {
                set_once(&mut time, ())?;
                if let Some(cut) = end_of(value)? {
                    splice.replace(start + cut.start, start + cut.end);
                }
            }
        }
        if stated.is_none() && !text.is_empty() {
            let out = splice.replace(end, end);
            out.push_str(if is_empty { "\"text\":" } else { ",\"text\":" });
            out.push_str(&literal);
        }
        Ok(())
    })
}

/// What to cut out of a `time` so that it has no `end`. An `end` of `null` is none.
fn end_of(time: Json<'_>) -> Result<Option<Range<usize>>, RepeatedKey> {
    let mut walk = Walk::over(time);
    if walk.kind() != Kind::Object {
        return Ok(None);
    }
    let mut cut = None;
    walk.enter();
    let first = walk.offset();
    let mut before = first;
    while let Some(key) = walk.next_key() {
        let value = walk.value();
        if key == "end" {
            set_once(&mut cut, (before..walk.offset(), value.is_null()))?;
        }
        before = walk.offset();
    }
    Ok(cut.filter(|(_, is_null)| !is_null).map(|(cut, _)| {
        if cut.start > first {
            return cut;
        }
        // The first member goes with the comma after it.
        let rest = time.text().get(cut.end..).unwrap_or_default();
        let comma = rest.find(|char: char| !char.is_ascii_whitespace());
        match comma.filter(|&at| rest.get(at..).is_some_and(|rest| rest.starts_with(','))) {
            Some(comma) => cut.start..cut.end + comma + 1,
            None => cut,
        }
    }))
}
