//! Any string as one path segment.
//!
//! Both spellings work on UTF-16 code units, which is what the ids of existing writers are made
//! of: a character beyond U+FFFF becomes two escapes, and a lone surrogate, which such an id may
//! hold, has one too.

use std::fmt::Write as _;

use turnkeep_log::SessionId;

/// The longest project key, so that with its four dashes it fits a file name.
const LONGEST_KEY: usize = 251;

/// The directory name of a session: injective, so that no two ids share one.
pub(crate) fn encode_id(id: &SessionId) -> String {
    encode_units(id.as_str().encode_utf16())
}

/// [`encode_id`] for an id given as code units.
pub(crate) fn encode_units(units: impl IntoIterator<Item = u16>) -> String {
    let mut segment = String::new();
    for unit in units {
        push_unit(&mut segment, unit);
    }
    match segment.as_str() {
        "." => "~002E".to_owned(),
        ".." => "~002E~002E".to_owned(),
        _ => segment,
    }
}

/// The id that a directory name stands for; `None` for a name that [`encode_id`] does not give, or
/// whose id UTF-8 cannot spell.
pub(crate) fn decode_id(segment: &str) -> Option<SessionId> {
    let units = decode_units(segment)?;
    SessionId::new(&String::from_utf16(&units).ok()?)
}

pub(crate) fn decode_units(segment: &str) -> Option<Vec<u16>> {
    let mut units = Vec::with_capacity(segment.len());
    let mut rest = segment;
    while let Some(char) = rest.chars().next() {
        rest = rest.get(char.len_utf8()..)?;
        if char == '~' {
            let (digits, after) = rest.split_at_checked(4)?;
            units.push(u16::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            units.push(u16::try_from(u32::from(char)).ok()?);
        }
    }
    // Only the one spelling counts: not `~0041` for `A`, not `~00e9` for `~00E9`.
    (encode_units(units.iter().copied()) == segment).then_some(units)
}

/// The directory name of a project: readable, short, and not unique.
pub(crate) fn project_key(cwd: Option<&str>) -> String {
    let Some(cwd) = cwd else {
        return "_no-cwd".to_owned();
    };
    let mut key = String::new();
    let mut in_separators = false;
    for unit in cwd.encode_utf16() {
        let separator = [b'/', b'\\', b':'].map(u16::from).contains(&unit);
        if !separator {
            push_unit(&mut key, unit);
        } else if !in_separators {
            key.push('-');
        }
        in_separators = separator;
    }
    let key = match key.trim_start_matches('-') {
        "" => "root",
        key => key.get(..LONGEST_KEY).unwrap_or(key),
    };
    format!("--{key}--")
}

fn push_unit(out: &mut String, unit: u16) {
    match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() || b"._-".contains(&byte) => {
            out.push(char::from(byte));
        }
        _ => {
            let _ = write!(out, "~{unit:04X}");
        }
    }
}
