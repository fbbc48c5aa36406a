//! The text that a client is given to go on with a round.
//!
//! `ocr2.` + P + `.` + base64url of HMAC-SHA256(key, P), where P is the base64url of a JSON object
//! whose members are, in this order:
//!
//! | member | what it says |
//! |---|---|
//! | `v` | 2 |
//! | `runtime`, `directory`, `sessionID` | what the round is about: a continuation is good for nothing else; `directory` may be `null` |
//! | `anchor` | the row that the gap ends with |
//! | `capturedHead` | the newest row when the round began |
//! | `scanBefore` | the source cursor to go on with; `null` for the newest page |
//! | `returnedThroughID` | the oldest row sent so far; where the cursor does not stand for it, it is looked for. `null` when the cursor does, in a way that only its source understands |
//! | `scannedRecords`, `scannedBytes` | the rows that the round has gone through |
//! | `pagesEmitted` | the pages that it has sent |
//! | `iat`, `exp` | when it was made and when it expires, in seconds since the epoch |
//! | `anchorFound` | only there as `true`: the anchor has been seen |
//! | `includeReasoning` | only there as `false`: the round is sent without reasoning |
//!
//! It is signed so that nobody can ask for a scan without bounds, not to keep anything secret.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use turnkeep_log::json::{Json, Member, write_str};

use super::{
    gap::{Resume, Tally},
    keys::KeyRing,
};
use crate::{
    cursor::{MAX_CURSOR_UNITS, non_empty},
    lenient,
    object::ObjectWriter,
};

const PREFIX: &str = "ocr2.";

/// How long a continuation is good for.
pub(super) const TTL_MS: u64 = 900_000;

/// What a round is about and how it is shown: all that its requests have to agree in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) runtime: String,
    pub(super) directory: Option<String>,
    pub(super) session: String,
    pub(super) reasoning: bool,
}

/// How far a round has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) anchor: String,
    pub(super) anchor_found: bool,
    pub(super) captured_head: String,
    pub(super) resume: Resume,
    pub(super) scanned: Tally,
    pub(super) pages: u64,
}

/// The text for this progress, made at `now_ms` and good for `ttl_ms`.
pub(super) fn seal(
    scope: &Scope,
    progress: &Progress,
    keys: &KeyRing,
    now_ms: u64,
    ttl_ms: u64,
) -> String {
    let mut json = String::new();
    let mut object = ObjectWriter::open(&mut json);
    object.text("v", "2");
    for (key, value) in [
        ("runtime", Some(&scope.runtime)),
        ("directory", scope.directory.as_ref()),
        ("sessionID", Some(&scope.session)),
        ("anchor", Some(&progress.anchor)),
        ("capturedHead", Some(&progress.captured_head)),
        ("scanBefore", progress.resume.scan_before.as_ref()),
        ("returnedThroughID", progress.resume.returned_through.as_ref()),
    ] {
        match value {
            Some(value) => write_str(object.key(key), value),
            None => object.text(key, "null"),
        }
    }
    for (key, value) in [
        ("scannedRecords", progress.scanned.records),
        ("scannedBytes", progress.scanned.bytes),
        ("pagesEmitted", progress.pages),
        ("iat", now_ms / 1000),
        ("exp", now_ms.saturating_add(ttl_ms) / 1000),
    ] {
        object.text(key, &value.to_string());
    }
    if progress.anchor_found {
        object.text("anchorFound", "true");
    }
    if !scope.reasoning {
        object.text("includeReasoning", "false");
    }
    object.close();
    let payload = URL_SAFE_NO_PAD.encode(json);
    let mac = URL_SAFE_NO_PAD.encode(keys.sign(&payload));
    format!("{PREFIX}{payload}.{mac}")
}

/// Reads such a text back, at `now_ms`, for a request about `scope`.
///
/// `None` for anything that one of the keys did not sign, that is not the object described above
/// whatever the order of its members, that has expired, or that is about something else. The
/// signature is checked before the text is looked into.
pub(super) fn open(text: &str, scope: &Scope, keys: &KeyRing, now_ms: u64) -> Option<Progress> {
    if text.encode_utf16().count() > MAX_CURSOR_UNITS {
        return None;
    }
    let (payload, mac) = text.strip_prefix(PREFIX)?.rsplit_once('.')?;
    if !keys.has_signed(payload, &lenient::decode(mac)) {
        return None;
    }
    let bytes = lenient::decode(payload);
    let payload = Payload::read(Json::parse(&String::from_utf8_lossy(&bytes)).ok()?)?;
    let is_current = payload.issued <= payload.expires && now_ms / 1000 <= payload.expires;
    (is_current && payload.scope == *scope).then_some(payload.progress)
}

struct Payload {
    scope: Scope,
    progress: Progress,
    issued: u64,
    expires: u64,
}

impl Payload {
    fn read(json: Json<'_>) -> Option<Self> {
        const KEYS: [&str; 15] = [
            "v",
            "runtime",
            "directory",
            "sessionID",
            "anchor",
            "capturedHead",
            "scanBefore",
            "returnedThroughID",
            "scannedRecords",
            "scannedBytes",
            "pagesEmitted",
            "iat",
            "exp",
            "anchorFound",
            "includeReasoning",
        ];
        let mut values = [None; KEYS.len()];
        for Member { key, value } in json.members()? {
            let mut slots = KEYS.iter().zip(&mut values);
            // The last of a repeated key counts.
            *slots.find(|(name, _)| key == ***name)?.1 = Some(value);
        }
        let [
            version,
            runtime,
            directory,
            session,
            anchor,
            head,
            scan_before,
            returned_through,
            records,
            bytes,
            pages,
            issued,
            expires,
            anchor_found,
            reasoning,
        ] = values;
        if version?.as_safe_integer() != Some(2) {
            return None;
        }
        Some(Self {
            scope: Scope {
                runtime: non_empty(runtime?)?,
                directory: nullable(directory?)?,
                session: non_empty(session?)?,
                reasoning: !stands_out(reasoning, false)?,
            },
            progress: Progress {
                anchor: non_empty(anchor?)?,
                anchor_found: stands_out(anchor_found, true)?,
                captured_head: non_empty(head?)?,
                resume: Resume {
                    scan_before: nullable(scan_before?)?,
                    returned_through: nullable(returned_through?)?,
                },
                scanned: Tally { records: records?.as_natural()?, bytes: bytes?.as_natural()? },
                pages: pages?.as_natural()?,
            },
            issued: issued?.as_natural()?,
            expires: expires?.as_natural()?,
        })
    }
}

/// `null`, or a string with something in it.
#[expect(clippy::option_option, reason = "neither of the two is a third case")]
fn nullable(value: Json<'_>) -> Option<Option<String>> {
    if value.is_null() { Some(None) } else { non_empty(value).map(Some) }
}

/// Whether a member is there that is only written where it is not as usual.
fn stands_out(value: Option<Json<'_>>, unusual: bool) -> Option<bool> {
    match value {
        None => Some(false),
        Some(value) => (value.as_bool()? == unusual).then_some(true),
    }
}

#[cfg(test)]
#[path = "continuation_tests.rs"]
mod tests;
