use super::{Digest, Secret};

#[test]
fn random_secrets_have_256_bits_and_are_never_the_same() {
    let secrets: Vec<_> = (0..100).map(|_| Secret::random("tk_").unwrap()).collect();
    for (at, secret) in secrets.iter().enumerate() {
        assert_eq!(secret.reveal().len(), 3 + 43);
        let digest = secret.digest();
        let same = secrets.iter().filter(|other| other.digest().matches(&digest)).count();
        assert_eq!(same, 1, "{at}");
    }
}

#[test]
fn a_digest_survives_a_file_and_shows_nothing() {
    let digest = Secret::new("abc".to_owned()).digest();
    let hex = digest.to_hex();
    assert_eq!(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert!(Digest::from_hex(&hex).unwrap().matches(&digest));
    for bad in ["", "ba78", &hex[1..], &hex.replace('b', "g"), &hex.replace("ba", "+a")] {
        assert!(Digest::from_hex(bad).is_none(), "{bad}");
    }
    assert_eq!(format!("{digest:?}"), "Digest");
    assert_eq!(format!("{:?}", Some(Secret::new("abc".to_owned()))), "Some(Secret)");
}
