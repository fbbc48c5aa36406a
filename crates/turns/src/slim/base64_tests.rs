use base64::prelude::{BASE64_STANDARD_NO_PAD, Engine as _};
use proptest::prelude::*;
use turnkeep_log::json::JsonStr;

use super::Base64;

fn decoded(raw: &str) -> Vec<u8> {
    let base64 = Base64::new(JsonStr::from_raw(raw));
    let bytes: Vec<u8> = base64.bytes().collect();
    assert_eq!(base64.byte_len(), bytes.len(), "{raw}");
    bytes
}

#[test]
fn reads_what_node_reads() {
    // What `Buffer.from(text, 'base64')` makes of each text under Node 20.
    let cases: [(&str, &[u8]); 18] = [
        ("", b""),
        ("Q", b""),
        ("QQ", b"A"),
        ("QUI", b"AB"),
        ("QUJD", b"ABC"),
        ("QUJDR", b"ABC"),
        ("QUJDRE", b"ABCD"),
        ("QUJDREU", b"ABCDE"),
        ("=QUJD", b""),
        ("QU==JD", b"A"),
        ("-_-_", &[0xFB, 0xFF, 0xBF]),
        ("+/+/", &[0xFB, 0xFF, 0xBF]),
        ("+_-/", &[0xFB, 0xFF, 0xBF]),
        ("Q!U.J~D", b"ABC"),
        ("QUJDé", b"ABC"),
        ("QU JD-_=\\n!RA==", &[0x41, 0x42, 0x43, 0xFB]),
        ("QU\\nJD\\/\\u002b=", &[0x41, 0x42, 0x43, 0xFF]),
        ("QU\\u003dJD", b"A"),
    ];
    for (raw, bytes) in cases {
        assert_eq!(decoded(raw), bytes, "{raw}");
    }
}

#[test]
fn a_character_beyond_ascii_carries_no_bits() {
    // U+0151 has the low byte of `Q`.
    assert_eq!(decoded("\u{151}UJD"), decoded("UJD"));
    assert_eq!(decoded("\\u0151UJD"), decoded("UJD"));
}

#[test]
fn counts_long_texts() {
    for length in [254, 255, 256, 1000, 100_000] {
        assert_eq!(Base64::new(JsonStr::from_raw(&"A".repeat(length))).byte_len(), length * 3 / 4);
        let spaced = "A ".repeat(length);
        assert_eq!(Base64::new(JsonStr::from_raw(&spaced)).byte_len(), length * 3 / 4);
    }
}

proptest! {
    #[test]
    fn decodes_clean_text_and_skips_in_it(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        skips in prop::collection::vec(0..9_usize, 0..12),
        noise in prop_oneof![Just(""), Just(" "), Just("\\n"), Just("é")],
    ) {
        let mut raw = BASE64_STANDARD_NO_PAD.encode(&bytes);
        // The same bytes from text in which no byte's place is known.
        raw.insert_str(raw.len() / 2, noise);
        prop_assert_eq!(&decoded(&raw), &bytes);
        let base64 = Base64::new(JsonStr::from_raw(&raw));
        prop_assert_eq!(base64.is_clean, noise.is_empty());
        let (mut found, mut expected) = (base64.bytes(), bytes.iter().copied());
        for skip in skips {
            prop_assert_eq!(found.nth(skip), expected.nth(skip));
        }
    }

    #[test]
    fn counts_what_it_decodes(raw in "[A-Za-z0-9+/_=é !-]{0,40}") {
        let base64 = Base64::new(JsonStr::from_raw(&raw));
        prop_assert_eq!(base64.byte_len(), base64.bytes().count());
    }
}
