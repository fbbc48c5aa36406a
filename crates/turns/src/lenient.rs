//! Base64 as JavaScript hosts read it: anything goes.

/// Decodes base64 the way Node's `Buffer.from(text, "base64")` does.
///
/// Both alphabets count, mixed if need be; any other byte is skipped; the first `=` ends the text.
/// Of what is left over at the end, two digits make one byte, three make two, a single one nothing.
#[must_use]
pub fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let mut bits = 0_u32;
    let mut held = 0_u32;
    for byte in text.bytes().take_while(|&byte| byte != b'=') {
        let Some(digit) = digit(byte) else { continue };
        bits = (bits << 6) | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            let [.., low] = (bits >> held).to_be_bytes();
            bytes.push(low);
        }
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "lenient_tests.rs"]
mod tests;
