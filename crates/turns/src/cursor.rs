//! The cursors of turn pages and of the sources below them.
//!
//! Three kinds of text travel under the name `before`:
//!
//! | text | who makes it | what it says |
//! |---|---|---|
//! | `oc1.` + base64url of `{"v":1,"before":…,"boundaryID":…}` | a turn page | the turn starting at this row was the oldest one shown; `before` is the source cursor to read on with, `null` for none |
//! | base64url of `{"id":…,"time":…}` | OpenCode, and this crate in the same spelling | rows strictly older than this one, by (time, id) |
//! | base64url of `{"seq":…}` | this crate, for logs | records whose first event comes before this one |
//!
//! All base64 is written without padding and read as leniently as JavaScript reads it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use turnkeep_log::{
    id::Seq,
    json::{Json, Kind, write_str},
};

use crate::lenient;

/// How long a cursor from a client may be, in UTF-16 units.
pub const MAX_CURSOR_UNITS: usize = 8192;

const PREFIX: &str = "oc1.";

/// What an `oc1.` cursor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The source cursor to read on with; `None` for the newest page.
    pub before: Option<String>,
    /// The id of the row that the client already has and that everything older than is wanted.
    pub boundary: String,
}

impl Token {
    /// Whether a client's cursor is one of these at all. Anything else goes to the source as it
    /// is.
    #[must_use]
    pub fn is_one(cursor: &str) -> bool {
        cursor.starts_with(PREFIX)
    }

    /// The text that a client is given.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut json = String::from(r#"{"v":1,"before":"#);
        match &self.before {
            Some(before) => write_str(&mut json, before),
            None => json.push_str("null"),
        }
        json.push_str(r#","boundaryID":"#);
        write_str(&mut json, &self.boundary);
        json.push('}');
        let mut text = String::from(PREFIX);
        URL_SAFE_NO_PAD.encode_string(json, &mut text);
        text
    }

    /// Reads the text back.
    ///
    /// Order, spelling and white space of the JSON inside are free and the last of a repeated key
    /// counts, since other hosts write and read these too; a key too many, one too few, or one of
    /// the wrong kind makes it no token. `None` as well for one of more than
    /// [`MAX_CURSOR_UNITS`].
    #[must_use]
    pub fn decode(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(PREFIX)?;
        if text.encode_utf16().count() > MAX_CURSOR_UNITS {
            return None;
        }
        let bytes = lenient::decode(encoded);
        let decoded = String::from_utf8_lossy(&bytes);
        let (mut version, mut before, mut boundary) = (None, None, None);
        for member in Json::parse(&decoded).ok()?.members()? {
            let slot = match member.key.decode()?.as_ref() {
                "v" => &mut version,
                "before" => &mut before,
                "boundaryID" => &mut boundary,
                _ => return None,
            };
            *slot = Some(member.value);
        }
        if version?.as_safe_integer() != Some(1) {
            return None;
        }
        let before = match before? {
            null if null.is_null() => None,
            value => Some(non_empty(value)?),
        };
        Some(Self { before, boundary: non_empty(boundary?)? })
    }
}

/// A row's place in the order in which OpenCode pages a session: by time, then by id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When the message was made, in milliseconds since the epoch.
    pub time: u64,
    /// The id of the message.
    pub id: String,
}

impl Position {
    /// The cursor that asks OpenCode for the rows strictly older than this place, spelled as
    /// OpenCode spells its own.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut json = String::from(r#"{"id":"#);
        write_str(&mut json, &self.id);
        json.push_str(r#","time":"#);
        json.push_str(&self.time.to_string());
        json.push('}');
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Reads a cursor of OpenCode's; `None` for anything else.
    #[must_use]
    pub fn decode(cursor: &str) -> Option<Self> {
        let bytes = lenient::decode(cursor);
        let json = Json::parse(std::str::from_utf8(&bytes).ok()?).ok()?;
        Some(Self { time: json.get("time")?.as_natural()?, id: non_empty(json.get("id")?)? })
    }
}

/// The cursor that asks a log for the records whose first event comes before `seq`.
#[must_use]
pub fn encode_seq(seq: Seq) -> String {
    URL_SAFE_NO_PAD.encode(format!(r#"{{"seq":{seq}}}"#))
}

/// Reads a cursor of a log; `None` for anything else.
#[must_use]
pub fn decode_seq(cursor: &str) -> Option<Seq> {
    let bytes = lenient::decode(cursor);
    let json = Json::parse(std::str::from_utf8(&bytes).ok()?).ok()?;
    json.get("seq")?.as_natural().map(Seq)
}

/// The text of a string with something in it.
pub(crate) fn non_empty(value: Json<'_>) -> Option<String> {
    if value.kind() != Kind::String {
        return None;
    }
    let text = value.as_str()?.decode_lossy();
    (!text.is_empty()).then(|| text.into_owned())
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
