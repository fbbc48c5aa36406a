//! Random data URLs, as text.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use proptest::{
    collection::vec,
    option::weighted,
    prelude::*,
    sample::{Index, select},
};

use super::spelling::Text;

/// A data URL, likely of an image, likely damaged.
pub(super) fn data_url() -> Text {
    let header = select(vec![
        "data:image/png;base64",
        "data:;base64",
        "data:base64",
        "data:image\\/png;base64",
        "data:a; BASE64 ",
        "data:a;BaSe64\\t",
        "data:a;base64;x=y",
        "data:",
        "data:text/plain",
        "DATA:;base64",
        "data",
        "\\u0064ata:;base64",
        "data:\u{fc};base64",
        "data:xbase64",
    ]);
    let comma = select(vec![",", ",", ",", "\\u002c", "", ",,"]);
    let body = prop_oneof![
        4 => (image(), any::<Index>()).prop_map(|(bytes, cut)| {
            encode_base64(&bytes[..bytes.len() - cut.index(bytes.len() + 1)])
        }),
        3 => (image(), any::<Index>()).prop_map(|(bytes, cut)| {
            encode_base64(&bytes[..bytes.len() - cut.index(bytes.len() / 8 + 1)])
        }),
        2 => image().prop_map(|bytes| encode_percent(&bytes)),
        2 => vec(select(vec!["A", "QUJD", "-", "_", "+", "/", "==", "é"]), 0..8)
            .prop_map(|pieces| pieces.concat()),
        2 => vec(
            select(vec!["a", "%41", "%C3%A9", "%c3%a9", "%E0%A4%A", "%F0%9F%98%80", "%", "%FF",
                "%C3", "%ED%A0%80", "%C0%80", "%F4%90%80%80", "\\ud83d\\ude00", "\\ud83d", "é",
                "%4é", "%\\u0034\\u0031"]),
            0..6,
        ).prop_map(|pieces| pieces.concat()),
    ];
    let noise = vec(
        (any::<Index>(), select(vec![" ", "\\n", "\\u0041", "=", "\\u003d", "!", "\\/", "é", "%"])),
        0..3,
    );
    (header, comma, body, weighted(0.4, noise))
        .prop_map(|(header, comma, body, noise)| {
            // Noise must not go into an escape, so only bodies without any get some.
            let mut pieces: Vec<String> = body.chars().map(String::from).collect();
            if !body.contains('\\') {
                for (at, noise) in noise.unwrap_or_default() {
                    pieces.insert(at.index(pieces.len() + 1), noise.to_owned());
                }
            }
            let body = pieces.concat();
            format!("\"{header}{comma}{body}\"")
        })
        .boxed()
}

/// The first bytes of an image, of a size that is sometimes zero.
fn image() -> BoxedStrategy<Vec<u8>> {
    let side = || select(vec![0_u16, 1, 5, 640, 0x3FFF, 0xFFFF]);
    (
        side(),
        side(),
        0..8_usize,
        vec((select(vec![0xE0_u8, 0xE1, 0xD8, 0x01, 0xC4, 0xFF, 0xDB]), 0..9_u16), 0..4),
        0..40_usize,
    )
        .prop_map(|(width, height, format, segments, tail)| {
            let mut bytes = Vec::new();
            let [w, h] = [width, height].map(u16::to_le_bytes);
            match format {
                0 => {
                    bytes.extend(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0");
                    bytes.extend(width.to_be_bytes());
                    bytes.extend([0, 0]);
                    bytes.extend(height.to_be_bytes());
                }
                1 => {
                    bytes.extend(b"GIF89a");
                    bytes.extend([w, h].concat());
                }
                2 | 3 => {
                    bytes.extend([0xFF, 0xD8]);
                    for (marker, length) in segments {
                        bytes.extend([0xFF, marker]);
                        if !matches!(marker, 0x01 | 0xD8) {
                            bytes.extend(length.to_be_bytes());
                            bytes.extend(vec![7; usize::from(length.saturating_sub(2))]);
                        }
                    }
                    bytes.extend([0xFF, if format == 2 { 0xC2 } else { 0xC8 }, 0, 11, 8]);
                    bytes.extend([height.to_be_bytes(), width.to_be_bytes()].concat());
                }
                4 => {
                    bytes.extend(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0");
                    bytes.extend([w[0], w[1], 1, h[0], h[1], 0]);
                }
                5 => {
                    bytes.extend(b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f");
                    bytes.extend([w, h].concat());
                }
                6 => {
                    bytes.extend(b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a");
                    bytes.extend([w, h].concat());
                }
                _ => bytes.extend(b"RIFF\0\0\0\0WAVEVP8X"),
            }
            bytes.extend(vec![0; tail]);
            bytes
        })
        .boxed()
}

fn encode_base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn encode_percent(bytes: &[u8]) -> String {
    // Latin-1 bytes as characters: what is no ASCII becomes two bytes, so few images survive.
    let escape = |&byte: &u8| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02x}")
        }
    };
    bytes.iter().map(escape).collect()
}
