//! What a message changed: the list of files, and the diff of one of them.
//!
//! A user message's `summary.diffs` holds every file that its turn changed, each with its patch.
//! Clients are sent the list with the message and ask for it here when they have no message, and
//! for a patch when a person opens it.

use turnkeep_log::json::{Json, Kind};

use crate::{
    error::{ChangesError, MessageError},
    normalize,
    object::ObjectWriter,
    query::Param,
};

/// How long the path of a changed file may be, in UTF-16 units.
pub const MAX_FILE_UNITS: usize = 4096;

/// Reads `file`: the path of a file whose diff is wanted; absent or empty, all files are.
///
/// # Errors
///
/// [`ChangesError::BadFile`] when it is longer than [`MAX_FILE_UNITS`], holds control characters
/// or stands there twice.
pub fn parse_file(param: Param<'_>) -> Result<Option<&str>, ChangesError> {
    match param {
        Param::Absent | Param::One("") => Ok(None),
        Param::One(file) if is_path(file) => Ok(Some(file)),
        Param::One(_) | Param::Repeated => Err(ChangesError::BadFile),
    }
}

fn is_path(text: &str) -> bool {
    text.encode_utf16().count() <= MAX_FILE_UNITS
        && !text.bytes().any(|byte| byte.is_ascii_control())
}

/// The body of the answer for all files, made of the message: `{"files":[…]}`, each entry
/// `{file, status?, additions, deletions}`.
///
/// The message is `{info, parts}`, or what would be its `info` alone. Entries without a path are
/// left out and so is a status that is no string; a count that is no number is 0. A message without
/// diffs changed no file.
#[must_use]
pub fn files(message: Json<'_>) -> String {
    let info = message.get("info").filter(|info| info.kind() == Kind::Object);
    let diffs = info.unwrap_or(message).path(&["summary", "diffs"]);
    let mut body = String::from(r#"{"files":["#);
    let mut is_first = true;
    for diff in diffs.and_then(Json::elements).into_iter().flatten() {
        let Some(file) = diff.get("file").filter(|file| is_non_empty_string(*file)) else {
            continue;
        };
        if !is_first {
            body.push(',');
        }
        is_first = false;
        let mut entry = ObjectWriter::open(&mut body);
        entry.copy("file", Some(file));
        entry.copy("status", diff.get("status").filter(|status| status.kind() == Kind::String));
        for key in ["additions", "deletions"] {
            match diff.get(key).filter(|count| count.as_f64().is_some_and(f64::is_finite)) {
                Some(count) => normalize::write(count, entry.key(key)),
                None => entry.text(key, "0"),
            }
        }
        entry.close();
    }
    body.push_str("]}");
    body
}

fn is_non_empty_string(value: Json<'_>) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// The body of the answer for one file, made of the list of diffs that the source has for the
/// message: `{"diff":…}` with the first entry of exactly this path, byte for byte.
///
/// # Errors
///
/// [`MessageError::Upstream`] when `diffs` is no array, [`ChangesError::FileNotFound`] when the
/// file is not among them.
pub fn diff(diffs: Json<'_>, file: &str) -> Result<String, ChangesError> {
    let mut diffs = diffs.elements().ok_or(MessageError::Upstream)?;
    let is_file = |name: Json<'_>| name.as_str().is_some_and(|name| name == *file);
    let diff = diffs
        .find(|diff| diff.get("file").is_some_and(is_file))
        .ok_or(ChangesError::FileNotFound)?;
    Ok(format!(r#"{{"diff":{}}}"#, diff.text()))
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
