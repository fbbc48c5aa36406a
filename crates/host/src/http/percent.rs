//! Percent escapes of URLs.

/// Decodes a part of a path: every escape must be whole, and the result UTF-8.
pub(crate) fn decode_path(raw: &str) -> Option<String> {
    String::from_utf8(decode(raw, BadEscape::Refuse)?).ok()
}

/// Decodes a key or a value of a query: `+` is a space, a bad escape stands for itself, and bytes
/// that are not UTF-8 become U+FFFD.
pub(crate) fn decode_form(raw: &str) -> String {
    let spaced = raw.replace('+', " ");
    let bytes = decode(&spaced, BadEscape::Keep).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Encodes a text as a value of a query: what may stand there by itself, and slashes, stay.
pub(crate) fn encode(text: &str) -> String {
    use std::fmt::Write as _;

    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // A string takes whatever is written to it.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// What to do with a `%` that two hex digits do not follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BadEscape {
    Refuse,
    Keep,
}

fn decode(raw: &str, bad_escape: BadEscape) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match (first, after) {
            (b'%', [high, low, tail @ ..]) => hex(*high).zip(hex(*low)).map(|pair| (pair, tail)),
            _ => None,
        };
        match escaped {
            Some(((high, low), tail)) => {
                decoded.push(high << 4 | low);
                rest = tail;
            }
            None if *first == b'%' && bad_escape == BadEscape::Refuse => return None,
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    Some(decoded)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
