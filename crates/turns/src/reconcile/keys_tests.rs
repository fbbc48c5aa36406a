use super::*;

const OLD: &[u8] = b"the old key, at least 32 bytes long";
const NEW: &[u8] = b"the new key, at least 32 bytes long";

fn lines(keys: &[&[u8]]) -> String {
    keys.iter().map(|key| base64::engine::general_purpose::STANDARD.encode(key) + "\n").collect()
}

fn ring(keys: &[&[u8]]) -> KeyRing {
    KeyRing::parse(&lines(keys)).expect("the keys are sound")
}

#[test]
fn what_is_signed_is_known_again() {
    // RFC 4231, test case 7: a key longer than a block and a text longer than one.
    let ring = KeyRing::new(&[0xaa; 131]).unwrap();
    let text = "This is a test using a larger than block-size key and a larger than block-size \
                data. The key needs to be hashed before being used by the HMAC algorithm.";
    let mac: Vec<u8> = ring.sign(text).as_ref().to_vec();
    let hex: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex.concat(), "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    assert!(ring.has_signed(text, &mac));
    assert!(!ring.has_signed("another text", &mac));
    assert!(!ring.has_signed(text, &mac[..31]));
    assert!(!ring.has_signed(text, &[]));
    let mut longer = mac.clone();
    longer.push(0);
    assert!(!ring.has_signed(text, &longer));
}

#[test]
fn the_first_key_signs_and_all_verify() {
    let (old, new) = (ring(&[OLD]), ring(&[NEW]));
    let both = ring(&[NEW, OLD]);
    let sign = |ring: &KeyRing| ring.sign("x").as_ref().to_vec();
    assert_eq!(sign(&both), sign(&new));
    assert!(both.has_signed("x", &sign(&old)) && both.has_signed("x", &sign(&new)));
    assert!(!new.has_signed("x", &sign(&old)) && !old.has_signed("x", &sign(&both)));
}

#[test]
fn files_of_keys_are_read_leniently() {
    let key = [0xfb; 33];
    let expected = KeyRing::new(&key).unwrap().sign("x").as_ref().to_vec();
    let plain = lines(&[&key]);
    let url_safe = plain.replace('+', "-").replace('/', "_");
    assert_ne!(plain, url_safe);
    for text in [plain.trim_end().to_owned(), format!("\r\n  {plain}\r\n\n"), url_safe] {
        let ring = KeyRing::parse(&text).unwrap();
        assert_eq!(ring.sign("x").as_ref(), expected, "{text:?}");
    }
    let padded = lines(&[&[1; 32]]);
    let bare = padded.replace('=', "");
    assert_ne!(padded, bare);
    assert!(KeyRing::parse(&padded).is_ok() && KeyRing::parse(&bare).is_ok());
}

#[test]
fn unsound_files_are_refused_by_line() {
    let error = |text: &str| KeyRing::parse(text).err();
    assert_eq!(error(""), Some(KeyRingError::NoKey));
    assert_eq!(error(" \n\n"), Some(KeyRingError::NoKey));
    let sound = lines(&[OLD]);
    assert_eq!(error("# a key"), Some(KeyRingError::NotBase64 { line: 1 }));
    assert_eq!(error(&format!("{sound}\n!")), Some(KeyRingError::NotBase64 { line: 3 }));
    assert_eq!(error(&lines(&[OLD, &[1; 31]])), Some(KeyRingError::TooShort { line: 2 }));
    assert_eq!(KeyRing::new(&[1; 31]).err(), Some(KeyRingError::TooShort { line: 1 }));
}

#[test]
fn keys_are_not_printed() {
    let printed = format!("{:?}", ring(&[NEW, OLD]));
    assert_eq!(printed, "KeyRing { keys: 2, .. }");
}
