//! How an index is spelled: two lines of JSON, each ended by a member that is its checksum.
//!
//! The first line is all that a listing reads. Anything that is not spelled as this module spells it
//! is no index.

use std::fmt::Write as _;

use turnkeep_log::{
    Seq, SessionId,
    json::{Json, write_str},
};
use xxhash_rust::xxh64::xxh64;

use super::{Head, Index, MAX_SAFE, TailSeal};
use crate::{
    jsonl::{
        reader::{Mark, Marks},
        tail::TailKind,
    },
    outline::{Call, Calls, Outline, Turn},
    seam::SessionHints,
};

/// The version of the form, and of what it means.
const VERSION: u64 = 1;

/// The longest first line, its line feed included.
pub(super) const MAX_HEAD_BYTES: u64 = 64 << 10;

/// The longest index. One of the largest log has a few hundred kilobytes.
pub(super) const MAX_BYTES: u64 = 4 << 20;

/// What the end of a line looks like: the checksum between these.
const BEFORE_CHECK: &str = ",\"check\":\"";
const AFTER_CHECK: &str = "\"}";
const CHECK_DIGITS: usize = 16;

/// Spells an index; `None` for one that would be too long.
pub(super) fn spell(index: &Index) -> Option<String> {
    let mut text = spell_head(index);
    let check = seal(&mut text, 0, 0);
    let body = text.len();
    if body as u64 > MAX_HEAD_BYTES {
        return None;
    }
    spell_body(&mut text, index);
    seal(&mut text, body, check);
    (text.len() as u64 <= MAX_BYTES).then_some(text)
}

fn spell_head(index: &Index) -> String {
    let Index { head, outline, .. } = index;
    let hints = &head.hints;
    let mut text = format!("{{\"turnkeepIndex\":{VERSION},\"session\":");
    write_str(&mut text, head.session.as_str());
    member(&mut text, "rules", Some(hex(head.rules)));
    member(&mut text, "maxFrameBytes", Some(head.max_frame_bytes));
    member(&mut text, "size", Some(head.size));
    member(&mut text, "end", Some(head.end));
    member(&mut text, "last", Some(hex(head.last)));
    member(&mut text, "tail", head.tail.map(|tail| format!("\"{}\"", tail.kind.as_str())));
    member(&mut text, "tailLast", head.tail.map(|tail| hex(tail.last)));
    member(&mut text, "eventCount", Some(hints.event_count));
    member(&mut text, "title", outline.title.as_deref());
    member(&mut text, "blank", Some(hints.blank));
    member(&mut text, "lastPromptAt", hints.last_prompt_at);
    member(&mut text, "lastEventAt", hints.last_event_at);
    member(&mut text, "turns", Some(hints.turns));
    member(&mut text, "openTurn", hints.open_turn);
    member(&mut text, "openCalls", hints.open_calls);
    text
}

fn spell_body(text: &mut String, index: &Index) {
    let Index { marks, outline, .. } = index;
    text.push_str("{\"marks\":");
    list(text, marks.thinned().flat_map(|mark| [Some(mark.offset), Some(mark.seq.0)]));
    text.push_str(",\"turns\":");
    let ends = |turn: &Turn| [Some(turn.start.0), turn.end.map(|end| end.0)];
    list(text, outline.turns.iter().flat_map(ends));
    text.push_str(",\"calls\":");
    match &outline.calls {
        Calls::Open(calls) => {
            list(text, calls.iter().map(|call| Some(format!("{},{}", call.id, call.start))));
        }
        Calls::Uncounted => text.push_str("null"),
    }
}

fn member<T: std::fmt::Display>(text: &mut String, key: &str, value: Option<T>) {
    let _ = match value {
        Some(value) => write!(text, ",\"{key}\":{value}"),
        None => write!(text, ",\"{key}\":null"),
    };
}

fn list<T: std::fmt::Display>(text: &mut String, values: impl Iterator<Item = Option<T>>) {
    text.push('[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            text.push(',');
        }
        let _ = match value {
            Some(value) => write!(text, "{value}"),
            None => write!(text, "null"),
        };
    }
    text.push(']');
}

fn hex(hash: u64) -> String {
    format!("\"{hash:016x}\"")
}

/// Ends the line that begins at `start` with its checksum, which depends on the one before.
fn seal(text: &mut String, start: usize, before: u64) -> u64 {
    let check = xxh64(text.get(start..).unwrap_or_default().as_bytes(), before);
    let _ = writeln!(text, "{BEFORE_CHECK}{check:016x}{AFTER_CHECK}");
    check
}

/// Checks a line, without its line feed; its checksum.
fn unseal(line: &str, before: u64) -> Option<(Json<'_>, u64)> {
    let digits_end = line.strip_suffix(AFTER_CHECK)?.len();
    let digits_start = digits_end.checked_sub(CHECK_DIGITS)?;
    let rest = line.get(..digits_start)?.strip_suffix(BEFORE_CHECK)?;
    let check = xxh64(rest.as_bytes(), before);
    let same = line.get(digits_start..digits_end)? == format!("{check:016x}");
    same.then(|| Json::parse(line).ok()).flatten().map(|json| (json, check))
}

/// Reads the first line of an index, without its line feed.
pub(super) fn head(line: &str) -> Option<Head> {
    Some(read_head(unseal(line, 0)?.0)?.0)
}

/// Reads an index.
pub(super) fn parse(text: &str) -> Option<Index> {
    let (first, rest) = text.split_once('\n')?;
    let second = rest.strip_suffix('\n')?;
    let (json, check) = unseal(first, 0)?;
    let (head, title) = read_head(json)?;
    let (body, _) = unseal(second, check)?;
    let marks = marks(body.get("marks")?, &head)?;
    let turns: Vec<Turn> = turns(body.get("turns")?, head.hints.event_count)?;
    let outline = Outline {
        next: Seq(head.hints.event_count),
        title,
        last_prompt_at: head.hints.last_prompt_at,
        last_event_at: head.hints.last_event_at,
        older_turns: head.hints.turns.checked_sub(turns.len() as u64)?,
        turns: turns.into(),
        calls: calls(body.get("calls")?)?,
    };
    (outline.hints() == head.hints).then_some(Index { head, marks, outline })
}

/// What the first line says, and the title as it spells it.
fn read_head(json: Json<'_>) -> Option<(Head, Option<Box<str>>)> {
    // Once, not for each of them: a listing does this a session.
    let members: Vec<_> = json.members()?.collect();
    let get = |key: &str| {
        let found = members.iter().find(|member| member.key == *key);
        found.map(|member| member.value)
    };
    let natural = |key| get(key).and_then(Json::as_natural);
    if natural("turnkeepIndex")? != VERSION {
        return None;
    }
    let title = optional(get("title")?, |title| Some((title.as_str()?, title.text())))?;
    let tail = optional(get("tail")?, |kind| kind.as_str()?.plain().and_then(TailKind::named))?;
    let tail_last = optional(get("tailLast")?, hash)?;
    let head = Head {
        session: SessionId::new(&get("session")?.as_str()?.decode()?)?,
        rules: hash(get("rules")?)?,
        max_frame_bytes: natural("maxFrameBytes")?,
        size: natural("size")?,
        end: natural("end")?,
        last: hash(get("last")?)?,
        tail: tail.zip(tail_last).map(|(kind, last)| TailSeal { kind, last }),
        hints: SessionHints {
            event_count: natural("eventCount")?,
            title: title.map(|(title, _)| title.decode_lossy().into_owned()),
            blank: get("blank")?.as_bool()?,
            last_prompt_at: optional(get("lastPromptAt")?, Json::as_safe_integer)?,
            last_event_at: optional(get("lastEventAt")?, Json::as_safe_integer)?,
            turns: natural("turns")?,
            open_turn: optional(get("openTurn")?, Json::as_natural)?.map(Seq),
            open_calls: optional(get("openCalls")?, Json::as_natural)?,
        },
    };
    let in_order = head.end <= head.size && tail.is_some() == tail_last.is_some();
    in_order.then(|| (head, title.map(|(_, literal)| literal.into())))
}

/// A value or `null`; `None` when it is neither.
#[expect(clippy::option_option, reason = "the outer one is for `?`, as everywhere in here")]
fn optional<'a, T>(value: Json<'a>, read: impl FnOnce(Json<'a>) -> Option<T>) -> Option<Option<T>> {
    if value.is_null() { Some(None) } else { read(value).map(Some) }
}

fn hash(value: Json<'_>) -> Option<u64> {
    let digits = value.as_str()?.plain().filter(|digits| digits.len() == CHECK_DIGITS)?;
    u64::from_str_radix(digits, 16).ok()
}

/// The numbers of a list, `null`s included, two by two.
fn pairs(list: Json<'_>) -> Option<Vec<(u64, Option<u64>)>> {
    let mut pairs = Vec::new();
    let mut numbers = list.elements()?;
    while let Some(first) = numbers.next() {
        pairs.push((first.as_natural()?, optional(numbers.next()?, Json::as_natural)?));
    }
    Some(pairs)
}

/// Marks, which must be in order and in the log.
fn marks(list: Json<'_>, head: &Head) -> Option<Marks> {
    let mut marks: Vec<Mark> = Vec::new();
    for (offset, seq) in pairs(list)? {
        let mark = Mark { offset, seq: Seq(seq?) };
        let in_log = offset > 0 && offset < head.end && mark.seq.0 < head.hints.event_count;
        let in_order = marks.last().is_none_or(|last| last.offset < offset && last.seq < mark.seq);
        if !in_log || !in_order {
            return None;
        }
        marks.push(mark);
    }
    Some(marks.into_iter().collect())
}

/// Turns, which must be in order and in the log.
fn turns(list: Json<'_>, events: u64) -> Option<Vec<Turn>> {
    let mut turns = Vec::new();
    let mut from = 0;
    for (start, end) in pairs(list)? {
        let until = end.unwrap_or(start);
        if start < from || until < start || until >= events {
            return None;
        }
        from = until.checked_add(1).filter(|from| *from <= MAX_SAFE)?;
        turns.push(Turn { start: Seq(start), end: end.map(Seq) });
    }
    Some(turns)
}

fn calls(list: Json<'_>) -> Option<Calls> {
    if list.is_null() {
        return Some(Calls::Uncounted);
    }
    let mut calls = Vec::new();
    let mut rest = list.elements()?;
    while let Some(id) = rest.next() {
        id.as_str()?;
        let start = Seq(rest.next()?.as_natural()?);
        calls.push(Call { id: id.text().into(), start });
    }
    Some(Calls::Open(calls))
}
