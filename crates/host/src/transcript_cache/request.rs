//! What clients ask of the cache, checked.

use turnkeep_log::json::{Json, Kind};

use super::entry::Entry;

/// How long an id may be, in UTF-16 units, as on every route.
const MAX_ID_UNITS: usize = 512;

/// How long the path of a directory may be, in UTF-16 units. It is kept with each message.
const MAX_DIRECTORY_UNITS: usize = 4096;

/// What of a request is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// A scope lacks a member, or has a wrong one.
    Scope,
    /// The same of a generation.
    Generation,
    /// There is no message id.
    MessageId,
    /// Anything else.
    Payload,
}

impl Invalid {
    /// The stable word for it, as in [`kinds`](crate::kinds).
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Scope => "invalid_cache_scope",
            Self::Generation => "invalid_cache_generation",
            Self::MessageId => "invalid_cache_message",
            Self::Payload => "invalid_cache_payload",
        }
    }
}

/// A session as one runtime of a client sees it. All four parts tell rows apart: the same session
/// seen over another transport, or after the runtime was changed, is another scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    /// How the client reaches its runtime.
    pub(crate) transport: String,
    /// Which runtime it is: goes up with each change of it.
    pub(crate) generation: i64,
    /// The project.
    pub(crate) directory: String,
    /// The session.
    pub(crate) session: String,
}

/// Every scope of one runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generation {
    /// How the client reaches it.
    pub(crate) transport: String,
    /// Which one it is.
    pub(crate) generation: i64,
}

/// How much may stay.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Budget {
    /// In bytes as rows count theirs.
    pub(crate) max_bytes: f64,
    /// Scopes that stay in any case.
    pub(crate) protect: Vec<Scope>,
}

impl Scope {
    /// The scope that is spread over the keys of a query. `value` is that of a key that stands once
    /// and is not empty.
    pub(crate) fn of_query<'q>(value: impl Fn(&str) -> Option<&'q str>) -> Result<Self, Invalid> {
        let text = |key, most| value(key).and_then(|text| short(text.to_owned(), most));
        Self::of_parts(
            text("transport", MAX_ID_UNITS),
            value("generation").and_then(digits),
            text("directory", MAX_DIRECTORY_UNITS),
            text("sessionID", MAX_ID_UNITS),
        )
    }

    fn of_json(scope: Json<'_>) -> Result<Self, Invalid> {
        Self::of_parts(
            text(scope.get("transport"), MAX_ID_UNITS),
            integer(scope.get("generation")),
            text(scope.get("directory"), MAX_DIRECTORY_UNITS),
            text(scope.get("sessionID"), MAX_ID_UNITS),
        )
    }

    /// The scope of a body: its member `scope`, or the body itself.
    pub(crate) fn of_body(body: Json<'_>) -> Result<Self, Invalid> {
        Self::of_json(body.get("scope").filter(|scope| !scope.is_null()).unwrap_or(body))
    }

    fn of_parts(
        transport: Option<String>,
        generation: Option<i64>,
        directory: Option<String>,
        session: Option<String>,
    ) -> Result<Self, Invalid> {
        let scope = (|| {
            Some(Self {
                transport: transport?,
                generation: generation?,
                directory: directory?,
                session: session?,
            })
        })();
        scope.ok_or(Invalid::Scope)
    }
}

impl Generation {
    /// What a body names.
    pub(crate) fn of_body(body: Json<'_>) -> Result<Self, Invalid> {
        let transport = text(body.get("transport"), MAX_ID_UNITS);
        let generation = integer(body.get("generation"));
        let both = transport.zip(generation);
        let (transport, generation) = both.ok_or(Invalid::Generation)?;
        Ok(Self { transport, generation })
    }
}

impl Budget {
    /// What a body names.
    pub(crate) fn of_body(body: Json<'_>) -> Result<Self, Invalid> {
        let max_bytes = body.get("maxBytes").and_then(Json::as_f64);
        let max_bytes = max_bytes.filter(|bytes| bytes.is_finite()).ok_or(Invalid::Payload)?;
        let protect = match body.get("protect") {
            None => Vec::new(),
            Some(scopes) => {
                let scopes = scopes.elements().ok_or(Invalid::Payload)?;
                scopes.map(Scope::of_json).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { max_bytes, protect })
    }
}

/// The message that a query names.
pub(crate) fn message_of_query(id: Option<&str>) -> Result<String, Invalid> {
    id.and_then(|id| short(id.to_owned(), MAX_ID_UNITS)).ok_or(Invalid::MessageId)
}

/// The message that a value names: `messageID` of a body, `id` of a message's `info`.
pub(crate) fn message_of_json(id: Option<Json<'_>>) -> Result<String, Invalid> {
    text(id, MAX_ID_UNITS).ok_or(Invalid::MessageId)
}

/// What to keep: a body with `info` and `parts` beside a scope.
pub(crate) fn put_of_body(body: Json<'_>) -> Result<(Scope, Entry), Invalid> {
    if body.kind() != Kind::Object {
        return Err(Invalid::Payload);
    }
    let scope = Scope::of_body(body)?;
    let info = body.get("info").filter(|info| info.kind() == Kind::Object);
    let parts = body.get("parts").filter(|parts| parts.kind() == Kind::Array);
    let (info, parts) = info.zip(parts).ok_or(Invalid::Payload)?;
    let message = message_of_json(info.get("id"))?;
    let entry = Entry::new(message, info, parts).ok_or(Invalid::Payload)?;
    Ok((scope, entry))
}

/// A string that is not empty. One with half of a surrogate pair is no text, and is not taken: a
/// database would make the same text of different ones.
fn text(value: Option<Json<'_>>, most_units: usize) -> Option<String> {
    let string = value?.as_str()?;
    // An escape is longer than what it stands for.
    let may_fit = string.raw().len() <= most_units * r"\u0000".len();
    let text = may_fit.then(|| string.decode()).flatten()?;
    short(text.into_owned(), most_units)
}

fn short(text: String, most_units: usize) -> Option<String> {
    let fits = !text.is_empty() && text.encode_utf16().count() <= most_units;
    fits.then_some(text)
}

/// A number without a fraction, or digits.
fn integer(value: Option<Json<'_>>) -> Option<i64> {
    let value = value?;
    match value.as_str() {
        Some(string) => digits(string.plain()?),
        None => value.as_safe_integer(),
    }
}

/// Digits, a minus in front allowed, that make a number every client holds exactly.
fn digits(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let are_digits = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    let number = are_digits.then(|| text.parse::<i64>().ok()).flatten()?;
    let is_safe = number.unsigned_abs() <= turnkeep_log::json::MAX_SAFE_INTEGER;
    is_safe.then_some(number)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
