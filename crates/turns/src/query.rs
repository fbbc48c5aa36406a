//! The parameters of a request for a turn page.

use turnkeep_log::json::is_js_whitespace;

use crate::error::TurnPageError;

/// How many turns a page holds when the request does not say.
pub const DEFAULT_TURNS: usize = 3;
/// How many rows the source is asked for at a time when nothing says otherwise.
pub const DEFAULT_WIDTH: usize = 100;
/// How long an id from a client may be, in UTF-16 units.
pub const MAX_ID_UNITS: usize = 512;

/// A request for a turn page, its parameters read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnQuery {
    /// How many authored turns are wanted, 1 to 10 from a client.
    pub turns: usize,
    /// How many rows to ask the source for at a time, 10 to 200 from a client. It never changes
    /// what a page holds.
    pub width: usize,
    /// The cursor of the page before this one; `None` for the newest turns.
    pub before: Option<String>,
}

/// One query parameter as the client sent it, percent-decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param<'a> {
    /// Not there.
    Absent,
    /// There once.
    One(&'a str),
    /// There more than once, which is like one of the wrong kind.
    Repeated,
}

impl<'a> Param<'a> {
    /// The parameter that these values of one key make.
    pub fn from_values(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::One(value),
            (Some(_), Some(_)) => Self::Repeated,
        }
    }
}

/// Checks a session id as it stands in a path: not empty, at most [`MAX_ID_UNITS`] long.
///
/// # Errors
///
/// [`TurnPageError::BadSession`].
pub fn check_session(id: &str) -> Result<(), TurnPageError> {
    if (1..=MAX_ID_UNITS).contains(&id.encode_utf16().count()) {
        Ok(())
    } else {
        Err(TurnPageError::BadSession)
    }
}

/// Reads `turns`: an integer from 1 to 10, [`DEFAULT_TURNS`] when absent.
///
/// # Errors
///
/// [`TurnPageError::BadTurns`] for anything else, the empty string included.
pub fn parse_turns(param: Param<'_>) -> Result<usize, TurnPageError> {
    match param {
        Param::Absent => Ok(DEFAULT_TURNS),
        Param::One(text) => strict_integer(text, 1, 10).ok_or(TurnPageError::BadTurns),
        Param::Repeated => Err(TurnPageError::BadTurns),
    }
}

/// Reads `scanLimit`: an integer from 10 to 200, `default` when absent.
///
/// # Errors
///
/// [`TurnPageError::BadScanLimit`] for anything else, the empty string included.
pub fn parse_scan_limit(param: Param<'_>, default: usize) -> Result<usize, TurnPageError> {
    match param {
        Param::Absent => Ok(default),
        Param::One(text) => scan_limit(text).ok_or(TurnPageError::BadScanLimit),
        Param::Repeated => Err(TurnPageError::BadScanLimit),
    }
}

/// The scan limit that a setting of the host's gives: [`DEFAULT_WIDTH`] when there is none or when
/// it is not what a client could have sent; never clamped.
#[must_use]
pub fn configured_scan_limit(setting: Option<&str>) -> usize {
    setting.and_then(scan_limit).unwrap_or(DEFAULT_WIDTH)
}

/// Reads `before`: a non-empty string counts, anything else is as if it were absent.
///
/// How long it may be is checked by the scan, after the other parameters.
#[must_use]
pub fn parse_before(param: Param<'_>) -> Option<String> {
    match param {
        Param::One(text) if !text.is_empty() => Some(text.to_owned()),
        Param::One(_) | Param::Absent | Param::Repeated => None,
    }
}

fn scan_limit(text: &str) -> Option<usize> {
    strict_integer(text, 10, 200)
}

/// The value of `-?[0-9]+` with JavaScript's white space around it, within `least..=most`.
pub(crate) fn strict_integer(text: &str, least: usize, most: usize) -> Option<usize> {
    let white = |char: char| u16::try_from(u32::from(char)).is_ok_and(is_js_whitespace);
    let digits = text.trim_matches(white);
    // No range holds a negative value, so a minus sign is refused with everything that is no digit.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse().ok()?;
    (least..=most).contains(&value).then_some(value)
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
