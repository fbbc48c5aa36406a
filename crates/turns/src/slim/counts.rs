//! How many lines a change adds and deletes.

use memchr::memchr;
use turnkeep_log::json::{Json, JsonStr, is_js_whitespace, write_number};

use crate::object::ObjectWriter;

/// What says how many lines a change adds and deletes, as an object holds it.
#[derive(Clone, Copy, Default)]
pub(super) struct CountFields<'a> {
    additions: Option<Json<'a>>,
    deletions: Option<Json<'a>>,
    patch: Option<Json<'a>>,
    diff: Option<Json<'a>>,
}

/// How many lines a change adds and deletes, as far as that is known: integers from 0 up.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    additions: Option<f64>,
    deletions: Option<f64>,
}

impl<'a> CountFields<'a> {
    /// Where the value of a key that says something about counts belongs.
    pub(super) fn slot(&mut self, key: &str) -> Option<&mut Option<Json<'a>>> {
        Some(match key {
            "additions" => &mut self.additions,
            "deletions" => &mut self.deletions,
            "patch" => &mut self.patch,
            "diff" => &mut self.diff,
            _ => return None,
        })
    }

    /// The stored counts, and where one is missing or says nothing, the one of the patch.
    pub(super) fn counts(self) -> Counts {
        let stored =
            Counts { additions: stored(self.additions), deletions: stored(self.deletions) };
        if stored.is_complete() {
            return stored;
        }
        stored.or(self.patch_text().map_or(Counts::default(), of_patch))
    }

    fn patch_text(self) -> Option<JsonStr<'a>> {
        self.patch.and_then(Json::as_str).or_else(|| self.diff?.as_str())
    }
}

impl Counts {
    fn is_complete(self) -> bool {
        self.additions.is_some() && self.deletions.is_some()
    }

    pub(super) fn is_unknown(self) -> bool {
        self.additions.is_none() && self.deletions.is_none()
    }

    /// Fills in what is unknown.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            additions: self.additions.or(other.additions),
            deletions: self.deletions.or(other.deletions),
        }
    }

    /// Adds counts to a sum. Counts of which nothing is known leave it as it is; else what is
    /// missing counts as 0.
    pub(super) fn add(&mut self, other: Self) {
        if other.is_unknown() {
            return;
        }
        let sum = |left: Option<f64>, right: Option<f64>| {
            Some(left.unwrap_or_default() + right.unwrap_or_default())
        };
        self.additions = sum(self.additions, other.additions);
        self.deletions = sum(self.deletions, other.deletions);
    }

    /// Writes `additions` and `deletions`, each if it is known.
    pub(super) fn write(self, object: &mut ObjectWriter<'_>) {
        for (key, count) in [("additions", self.additions), ("deletions", self.deletions)] {
            if let Some(count) = count {
                write_number(object.key(key), count);
            }
        }
    }
}

/// A finite number, or the integer a string starts with; fractions cut off, at least 0.
fn stored(value: Option<Json<'_>>) -> Option<f64> {
    let value = value?;
    let number = match value.as_str() {
        Some(string) => leading_integer(string)?,
        None => value.as_f64()?,
    };
    number.is_finite().then(|| number.trunc().max(0.0))
}

/// JavaScript's `parseInt(string, 10)`, `None` for what is no number.
fn leading_integer(string: JsonStr<'_>) -> Option<f64> {
    let mut units = string.units().skip_while(|&unit| is_js_whitespace(unit)).peekable();
    let sign = units.next_if(|&unit| unit == u16::from(b'-') || unit == u16::from(b'+'));
    let digits: String =
        units.map_while(|unit| char::from_u32(unit.into()).filter(char::is_ascii_digit)).collect();
    let magnitude: f64 = digits.parse().ok()?;
    Some(if sign == Some(u16::from(b'-')) { -magnitude } else { magnitude })
}

/// The added and deleted lines of a patch; unknown when there is neither.
fn of_patch(patch: JsonStr<'_>) -> Counts {
    let tally = tally_escaped(patch.raw()).unwrap_or_else(|| tally_units(patch));
    if tally.added == 0 && tally.deleted == 0 {
        return Counts::default();
    }
    #[expect(clippy::cast_precision_loss, reason = "no text has 2^53 lines")]
    let count = |lines: u64| Some(lines as f64);
    Counts { additions: count(tally.added), deletions: count(tally.deleted) }
}

#[derive(Clone, Copy, Default)]
struct Tally {
    added: u64,
    deleted: u64,
}

impl Tally {
    /// Counts a line by its first three characters: a file header (`+++`, `---`) is no change.
    fn line(&mut self, start: &[u8]) {
        match start {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => {}
            [b'+', ..] => self.added += 1,
            [b'-', ..] => self.deleted += 1,
            _ => {}
        }
    }
}

/// Counts lines in the escaped text itself. `None` when it has `\u` escapes, which may spell
/// anything.
fn tally_escaped(raw: &str) -> Option<Tally> {
    let bytes = raw.as_bytes();
    let mut tally = Tally::default();
    tally.line(bytes);
    let mut at = 0;
    while let Some(found) = memchr(b'\\', bytes.get(at..)?) {
        let escape = at + found + 1;
        at = escape + 1;
        match bytes.get(escape) {
            Some(b'n') => tally.line(bytes.get(at..)?),
            Some(b'u') | None => return None,
            Some(_) => {}
        }
    }
    Some(tally)
}

fn tally_units(patch: JsonStr<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut units = patch.units();
    loop {
        let mut start = [0; 3];
        for (byte, unit) in start.iter_mut().zip(units.clone()) {
            // What is no ASCII is neither sign.
            *byte = u8::try_from(unit).unwrap_or(0);
        }
        tally.line(&start);
        if !units.any(|unit| unit == u16::from(b'\n')) {
            return tally;
        }
    }
}
