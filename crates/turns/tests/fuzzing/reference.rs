//! What a page is, over values: which rows there are, which start a turn, and which of them are the
//! last few turns. And what is left of an event once its diffs are reduced.

use std::collections::HashSet;

use crate::oracle::{Js, slim, utf16};

/// Why there are no rows.
#[derive(Debug)]
pub enum Refusal {
    NoList,
    NoId,
}

/// The rows of a page that would be shown.
pub struct Shown {
    pub rows: Vec<Js>,
    pub starts: usize,
    pub is_all: bool,
}

/// The rows of a body, each with its id.
pub fn rows(body: &Js) -> Result<Vec<(Vec<u16>, Js)>, Refusal> {
    let list = match body {
        Js::Array(list) => list,
        body => match body.get("items") {
            Some(Js::Array(list)) => list,
            _ => return Err(Refusal::NoList),
        },
    };
    let id = |row: &Js| {
        let own = |value: &Js| value.get("id").filter(|id| **id != Js::Null).cloned();
        match row.get("info").and_then(own).or_else(|| own(row)) {
            Some(Js::String(id)) if !id.is_empty() => Ok((id, row.clone())),
            _ => Err(Refusal::NoId),
        }
    };
    list.iter().map(id).collect()
}

/// The rows of the last so many turns. Of two rows with the same id the older one counts.
pub fn last_turns(rows: Vec<(Vec<u16>, Js)>, turns: usize) -> Shown {
    let mut seen = HashSet::new();
    let rows: Vec<_> = rows.into_iter().filter(|(id, _)| seen.insert(id.clone())).collect();
    let mut shown = Vec::new();
    let mut starts = 0;
    for (_, row) in rows.iter().rev() {
        if starts == turns {
            break;
        }
        starts += usize::from(starts_turn(row));
        shown.push(row.clone());
    }
    shown.reverse();
    Shown { is_all: shown.len() == rows.len(), rows: shown, starts }
}

/// Whether a person wrote it.
pub fn starts_turn(row: &Js) -> bool {
    let info = row.get("info").filter(|info| **info != Js::Null);
    let own = |value: &Js| value.get("id").filter(|id| **id != Js::Null).cloned();
    if let Some(Js::String(id)) = info.and_then(own).or_else(|| own(row))
        && id.starts_with(&utf16("oc_asst_session_divider:"))
    {
        return false;
    }
    if let (Some(Js::String(kind)), None) = (row.get("type"), info) {
        return *kind == utf16("user");
    }
    let role = match info.and_then(|info| info.get("clientRole")) {
        Some(Js::String(role)) => Some(role.clone()),
        _ => match info.and_then(|info| info.get("role")) {
            Some(Js::String(role)) => Some(role.clone()),
            _ => None,
        },
    };
    if role != Some(utf16("user")) {
        return false;
    }
    let Some(Js::Array(parts)) = row.get("parts") else { return true };
    let is = |part: &Js, kind: &str| part.get("type").is_some_and(|value| value.is(kind));
    if parts.iter().any(|part| is(part, "subtask") || is(part, "compaction")) {
        return false;
    }
    parts.is_empty() || !parts.iter().all(|part| part.get("synthetic").is_some_and(is_truthy))
}

fn is_truthy(value: &Js) -> bool {
    match value {
        Js::Null | Js::Bool(false) => false,
        Js::Number(number) => *number != 0.0 && !number.is_nan(),
        Js::String(text) => !text.is_empty(),
        Js::Bool(true) | Js::Array(_) | Js::Object(_) => true,
    }
}

/// An event with its diffs reduced.
pub fn reduced_event(event: &Js) -> Js {
    let is_event = |event: &Js| matches!(event.get("type"), Some(Js::String(_)));
    let mut reduced = event.clone();
    match event.get("syncEvent") {
        Some(inner) if event.get("type").is_some_and(|kind| kind.is("sync")) && is_event(inner) => {
            reduced.set(&utf16("syncEvent"), reduced_body(inner));
            reduced
        }
        _ => reduced_body(event),
    }
}

fn reduced_body(event: &Js) -> Js {
    let Some(Js::String(kind)) = event.get("type") else { return event.clone() };
    let kind = String::from_utf16_lossy(kind);
    let is_version =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let base = kind.rsplit_once('.').filter(|(_, version)| is_version(version));
    let base = base.map_or(&*kind, |(base, _)| base);
    let mut event = event.clone();
    for name in ["properties", "data"] {
        let Some(body @ Js::Object(_)) = event.get(name) else { continue };
        let mut reduced = body.clone();
        match base {
            "session.diff" => {
                let Some(diff @ Js::Array(_)) = body.get("diff") else { continue };
                let summary = Js::Object(vec![(utf16("diffs"), diff.clone())]);
                let owner = slim::reduce(&Js::Object(vec![(utf16("summary"), summary)]));
                let diffs = owner.get("summary").and_then(|summary| summary.get("diffs"));
                reduced.set(&utf16("diff"), diffs.unwrap().clone());
            }
            "message.updated" | "message.created" | "session.updated" | "session.created" => {
                let info = body.get("info").map(|info| (info, slim::reduce(info)));
                match info {
                    Some((info, less)) if info.stringify() != less.stringify() => {
                        reduced.set(&utf16("info"), less);
                    }
                    _ => reduced = slim::reduce(body),
                }
            }
            _ => {}
        }
        event.set(&utf16(name), reduced);
    }
    event
}
