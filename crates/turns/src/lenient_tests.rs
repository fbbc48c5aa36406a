use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use proptest::prelude::*;

use super::decode;

#[test]
fn leftovers_and_padding_follow_node() {
    let lengths = ["QUJDR", "QUJDRE", "QUJDREU", "Q", "=QUJD", "QU==JD", ""];
    assert_eq!(lengths.map(|text| decode(text).len()), [3, 4, 5, 0, 0, 1, 0]);
    assert_eq!(decode("QUJDREU"), b"ABCDE");
}

#[test]
fn alphabets_mix_and_other_bytes_are_skipped() {
    assert_eq!(decode("-_+/"), decode("+/+/"));
    assert_eq!(decode("Q U\nJ!D\u{e9}\u{6c49}"), b"ABC");
}

proptest! {
    #[test]
    fn whatever_is_encoded_decodes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(&decode(&STANDARD.encode(&bytes)), &bytes);
        prop_assert_eq!(&decode(&URL_SAFE_NO_PAD.encode(&bytes)), &bytes);
    }

    #[test]
    fn no_text_is_refused(text in any::<String>()) {
        prop_assert!(decode(&text).len() <= text.len());
    }
}
