//! A message to be kept, and one that was kept.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use turnkeep_log::json::{Json, Kind, write_number, write_str};
use turnkeep_turns::canonical;

use super::request::Scope;

/// How many JSON values a message may have. A real one has some thousands, and while a message is
/// hashed each value takes a few dozen bytes, however short it is.
const MAX_VALUES: usize = 2 << 20;

/// How much of a message its text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// Some of its parts are slim.
    Slim,
    /// All of it.
    Full,
}

impl Completeness {
    /// What a part says of itself.
    fn of_part(part: Json<'_>) -> Self {
        let is_slim = part.get("slim").and_then(Json::as_bool) == Some(true);
        if is_slim { Self::Slim } else { Self::Full }
    }

    /// A message is no more complete than its parts.
    pub(crate) fn of_parts(parts: Json<'_>) -> Self {
        let mut parts = parts.elements().into_iter().flatten().map(Self::of_part);
        if parts.any(|part| part == Self::Slim) { Self::Slim } else { Self::Full }
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Slim => "slim",
            Self::Full => "full",
        }
    }
}

/// A message to be kept.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) message: String,
    /// As it was sent.
    pub(crate) info: String,
    /// As they were sent.
    pub(crate) parts: String,
    /// Whether it will not change any more by itself.
    pub(crate) is_settled: bool,
    pub(crate) completeness: Completeness,
    /// When it was created, by its own word; 0 without one.
    pub(crate) created: f64,
    /// SHA-256 of its canonical text, in hex.
    pub(crate) hash: String,
    /// How long that text is.
    pub(crate) bytes: i64,
}

impl Entry {
    /// `info` is an object, `parts` an array. `None` when they have too many values.
    pub(super) fn new(message: String, info: Json<'_>, parts: Json<'_>) -> Option<Self> {
        let mut text = String::from(r#"{"info":"#);
        let mut is_written = canonical::write(info, MAX_VALUES, &mut text);
        text.push_str(r#","parts":"#);
        is_written &= canonical::write(parts, MAX_VALUES, &mut text);
        text.push('}');
        let created = info.path(&["time", "created"]).and_then(Json::as_f64);
        is_written.then(|| Self {
            message,
            is_settled: is_settled(info),
            completeness: Completeness::of_parts(parts),
            created: created.filter(|created| created.is_finite()).unwrap_or(0.0),
            hash: hex(&Sha256::digest(&text)),
            bytes: i64::try_from(text.len()).unwrap_or(i64::MAX),
            info: info.text().to_owned(),
            parts: parts.text().to_owned(),
        })
    }

    /// The completeness of each of its parts, as the clients' other host keeps it beside them.
    pub(super) fn part_completeness(&self) -> String {
        let mut words = String::new();
        write_words(&parts_of(&self.parts), &mut words);
        words
    }

    /// What is told of it once it is kept.
    pub(super) fn into_record(self, accessed: i64) -> Record {
        Record {
            message: self.message,
            info: self.info,
            parts: self.parts,
            created: self.created,
            hash: self.hash,
            bytes: self.bytes,
            accessed,
        }
    }
}

/// Of an assistant's messages only those that it has finished are settled; any other is from the
/// start.
fn is_settled(info: Json<'_>) -> bool {
    let client_role = info.get("clientRole").filter(|role| !role.is_null());
    let role = client_role.or_else(|| info.get("role")).and_then(Json::as_str);
    if role.is_none_or(|role| role != "assistant") {
        return true;
    }
    let is_completed =
        info.path(&["time", "completed"]).is_some_and(|at| at.kind() == Kind::Number);
    is_completed || info.get("finish").and_then(Json::as_str).is_some_and(|it| !it.is_empty())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A message that was kept. Its `info` is an object and its `parts` are an array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) message: String,
    pub(crate) info: String,
    pub(crate) parts: String,
    pub(crate) created: f64,
    pub(crate) hash: String,
    pub(crate) bytes: i64,
    /// When it was last asked for or written, in milliseconds since 1970, or a little later.
    pub(crate) accessed: i64,
}

/// Whether parts with an agent's reasoning are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reasoning {
    /// They are.
    Include,
    /// They are left out.
    LeaveOut,
}

impl Record {
    pub(crate) fn completeness(&self) -> Completeness {
        Json::parse(&self.parts).map_or(Completeness::Full, Completeness::of_parts)
    }

    /// Appends the record as clients are told of it.
    ///
    /// `partCompleteness` has a word for each part that is told, reasoning left out or not; the
    /// completeness, hash and size are those of what is kept.
    pub(crate) fn write(&self, scope: &Scope, reasoning: Reasoning, out: &mut String) {
        out.push_str(r#"{"scope":"#);
        write_scope(scope, out);
        out.push_str(r#","messageID":"#);
        write_str(out, &self.message);
        out.push_str(r#","info":"#);
        out.push_str(&self.info);
        out.push_str(r#","parts":"#);
        let told = self.write_parts(reasoning, out);
        out.push_str(r#","partCompleteness":"#);
        write_words(&told, out);
        let (whole, bytes, accessed) = (self.completeness().word(), self.bytes, self.accessed);
        let _ = write!(out, r#","completeness":"{whole}","contentHash":"#);
        write_str(out, &self.hash);
        let _ = write!(out, r#","byteSize":{bytes},"lastAccessedAt":{accessed}"#);
        out.push_str(r#","sortKey":{"created":"#);
        write_number(out, self.created);
        out.push_str(r#","messageID":"#);
        write_str(out, &self.message);
        out.push_str("}}");
    }

    /// Writes the parts that are told, and returns them.
    fn write_parts(&self, reasoning: Reasoning, out: &mut String) -> Vec<Json<'_>> {
        let mut parts = parts_of(&self.parts);
        let kept = parts.len();
        if reasoning == Reasoning::LeaveOut {
            parts.retain(|part| !is_reasoning(*part));
        }
        if parts.len() == kept {
            out.push_str(&self.parts);
            return parts;
        }
        out.push('[');
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(part.text());
        }
        out.push(']');
        parts
    }
}

fn parts_of(text: &str) -> Vec<Json<'_>> {
    Json::parse(text).ok().and_then(Json::elements).into_iter().flatten().collect()
}

/// Appends the completeness of each of these parts.
fn write_words(parts: &[Json<'_>], out: &mut String) {
    out.push('[');
    for (index, part) in parts.iter().enumerate() {
        out.push_str(if index == 0 { "\"" } else { ",\"" });
        out.push_str(Completeness::of_part(*part).word());
        out.push('"');
    }
    out.push(']');
}

fn is_reasoning(part: Json<'_>) -> bool {
    part.get("type").and_then(Json::as_str).is_some_and(|kind| kind == "reasoning")
}

/// Appends a scope as clients are told of it.
pub(crate) fn write_scope(scope: &Scope, out: &mut String) {
    out.push_str(r#"{"transport":"#);
    write_str(out, &scope.transport);
    let _ = write!(out, r#","generation":{},"directory":"#, scope.generation);
    write_str(out, &scope.directory);
    out.push_str(r#","sessionID":"#);
    write_str(out, &scope.session);
    out.push('}');
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
