//! The events that lead from one state of a record to the next.

use std::collections::{HashMap, HashSet};

use turnkeep_log::json::{Json, JsonStr};

use super::{Change, Sent};
use crate::fold::render::{Writer, string};

/// A record as the followers have it.
#[derive(Clone, Copy)]
pub(super) enum Described<'a> {
    /// They do not have it.
    Absent,
    /// They have it in a state that nobody has noted, with no part that the new state lacks.
    Unknown,
    /// They have this.
    As(Json<'a>),
}

/// Says what makes a record what it is `now`.
///
/// `session` is the inside of the literal of the session's id, `time` when it happened. Parts that
/// were sent whole before may grow by deltas.
pub(super) fn between(
    session: &str,
    old: Described<'_>,
    now: Json<'_>,
    time: i64,
    sent: &mut Sent,
    out: &mut Vec<Change>,
) {
    let (is_new, old) = match old {
        Described::Absent => (true, None),
        Described::Unknown => (false, None),
        Described::As(record) => (false, Some(record)),
    };
    let telling = Telling { session, time };
    let info = now
        .get("info")
        .filter(|info| old.and_then(|old| old.get("info")).map(Json::text) != Some(info.text()));
    let message = |info: Json<'_>, out: &mut Vec<Change>| {
        telling.of("message.updated", |out| out.key("info").raw(info.text()), out);
    };
    if let Some(info) = info.filter(|_| is_new) {
        message(info, out);
    }
    let (old, now) = (old.map(parts).unwrap_or_default(), parts(now));
    let kept = kept(&old, &now);
    // Ids count parts as they came up. One that came up in front of another may be new to some
    // followers and not to others.
    sent.reordered |= !now.is_sorted_by_key(|part| part.id);
    let stays: HashSet<&str> = now.iter().map(|part| part.id).collect();
    for part in old.iter().filter(|part| !kept.contains_key(part.id)) {
        if stays.contains(part.id) {
            sent.reordered = true;
        } else {
            telling.removed(part, sent, out);
        }
    }
    for part in &now {
        match kept.get(part.id) {
            Some(old) if old.json.text() == part.json.text() => {}
            Some(old) if sent.whole.contains(part.id) => match grown(old.json, part.json) {
                Some(delta) => telling.delta(part, delta, out),
                None => telling.part(part, sent, out),
            },
            Some(_) => telling.part(part, sent, out),
            None => {
                if sent.reordered {
                    telling.removed(part, sent, out);
                }
                telling.part(part, sent, out);
            }
        }
    }
    // Last, since a message that has ended tells everyone that its parts have.
    if let Some(info) = info.filter(|_| !is_new) {
        message(info, out);
    }
}

/// A part, with the insides of the literals of its id and its message's.
struct Part<'a> {
    id: &'a str,
    message: &'a str,
    json: Json<'a>,
}

fn parts(record: Json<'_>) -> Vec<Part<'_>> {
    let parts = record.get("parts").and_then(Json::elements).into_iter().flatten();
    let part = |json| {
        let literal = |key| string(json, key).map(JsonStr::raw);
        Some(Part { id: literal("id")?, message: literal("messageID")?, json })
    };
    parts.filter_map(part).collect()
}

/// The parts that can stay where they are: those before the first one that is new, or not behind
/// the one that it is behind now.
fn kept<'old, 'a>(old: &'old [Part<'a>], now: &[Part<'a>]) -> HashMap<&'old str, &'old Part<'a>> {
    let places: HashMap<&str, usize> =
        old.iter().enumerate().map(|(at, part)| (part.id, at)).collect();
    let mut kept = HashMap::new();
    let mut next = 0;
    for part in now {
        match places.get(part.id) {
            Some(&at) if at >= next => {
                next = at + 1;
                if let Some(part) = old.get(at) {
                    kept.insert(part.id, part);
                }
            }
            _ => break,
        }
    }
    kept
}

/// What has been written at the end of a part's text, when that is all that happened to it and it
/// is still being written. The inside of a literal.
fn grown<'a>(old: Json<'_>, now: Json<'a>) -> Option<&'a str> {
    if !is_being_written(now) {
        return None;
    }
    let (before, text) = (string(old, "text")?.raw(), string(now, "text")?.raw());
    // The literals stand at the same place, and what is around them is the same.
    let (old_head, old_tail) = around(old.text(), before)?;
    if around(now.text(), text)? != (old_head, old_tail) {
        return None;
    }
    text.strip_prefix(before)
}

/// Whether the part is one that a model is writing.
pub(super) fn is_being_written(part: Json<'_>) -> bool {
    let is_text = string(part, "type").is_some_and(|kind| kind == "text" || kind == "reasoning");
    let time = part.get("time");
    is_text && time.is_some_and(|time| time.get("start").is_some() && time.get("end").is_none())
}

/// What is before and behind a piece that was cut from a text.
fn around<'a>(whole: &'a str, piece: &str) -> Option<(&'a str, &'a str)> {
    let at = (piece.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    Some((whole.get(..at)?, whole.get(at + piece.len()..)?))
}

/// What all events of one telling have in common.
struct Telling<'a> {
    session: &'a str,
    time: i64,
}

impl Telling<'_> {
    fn of(&self, kind: &'static str, rest: impl FnOnce(&mut Writer), out: &mut Vec<Change>) {
        let mut properties = Writer::with_capacity(128);
        properties.open();
        properties.key("sessionID").literal(self.session);
        rest(&mut properties);
        properties.close();
        out.push(Change { kind, properties: properties.finish() });
    }

    fn removed(&self, part: &Part<'_>, sent: &mut Sent, out: &mut Vec<Change>) {
        sent.whole.remove(part.id);
        let rest = |out: &mut Writer| {
            out.key("messageID").literal(part.message);
            out.key("partID").literal(part.id);
        };
        self.of("message.part.removed", rest, out);
    }

    fn part(&self, part: &Part<'_>, sent: &mut Sent, out: &mut Vec<Change>) {
        if is_being_written(part.json) {
            sent.whole.insert(part.id.to_owned());
        } else {
            sent.whole.remove(part.id);
        }
        let rest = |out: &mut Writer| {
            out.key("part").raw(part.json.text());
            out.key("time").integer(self.time);
        };
        self.of("message.part.updated", rest, out);
    }

    fn delta(&self, part: &Part<'_>, delta: &str, out: &mut Vec<Change>) {
        let rest = |out: &mut Writer| {
            out.key("messageID").literal(part.message);
            out.key("partID").literal(part.id);
            out.key("field").literal("text");
            out.key("delta").literal(delta);
        };
        self.of("message.part.delta", rest, out);
    }
}
