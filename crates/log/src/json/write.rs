//! Writing JSON the way `JSON.stringify` writes it.

use std::fmt::Write as _;

use super::{Json, scan};

/// Appends `text` as a string literal.
///
/// Only `"`, `\` and control characters are escaped, with the short forms where there are any.
pub fn write_str(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        write_char(out, char);
    }
    out.push('"');
}

/// Appends UTF-16 code units as a string literal; a lone surrogate becomes a `\udXXX` escape.
pub fn write_units(out: &mut String, units: impl IntoIterator<Item = u16>) {
    out.push('"');
    for char in char::decode_utf16(units) {
        match char {
            Ok(char) => write_char(out, char),
            Err(lone) => {
                let _ = write!(out, "\\u{:04x}", lone.unpaired_surrogate());
            }
        }
    }
    out.push('"');
}

fn write_char(out: &mut String, char: char) {
    match char {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        control if control < ' ' => {
            let _ = write!(out, "\\u{:04x}", u32::from(control));
        }
        other => out.push(other),
    }
}

/// Appends a number as JavaScript prints it: the shortest digits that read back as the same
/// double, in exponent form from 1e21 up and below 1e-6; `null` for what is not finite.
pub fn write_number(out: &mut String, number: f64) {
    if !number.is_finite() {
        out.push_str("null");
        return;
    }
    if number == 0.0 {
        out.push('0');
        return;
    }
    if number < 0.0 {
        out.push('-');
    }
    let magnitude = number.abs();
    if (1e-6..1e21).contains(&magnitude) {
        let _ = write!(out, "{magnitude}");
        return;
    }
    // Rust prints the same shortest digits, as `d.ddde±x` without a plus sign.
    let printed = format!("{magnitude:e}");
    match printed.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => {
            let _ = write!(out, "{digits}e+{exponent}");
        }
        _ => out.push_str(&printed),
    }
}

/// Appends a value without the white space between its parts. Every literal keeps its spelling.
pub fn write_compact(out: &mut String, value: Json<'_>) {
    let (text, bytes) = (value.text(), value.text().as_bytes());
    let mut at = 0;
    while at < bytes.len() {
        let end = if bytes.get(at) == Some(&b'"') {
            scan::skip_value(bytes, at)
        } else {
            scan::skip_plain(bytes, at)
        };
        out.push_str(text.get(at..end).unwrap_or_default());
        at = scan::skip_whitespace(bytes, end);
    }
}
