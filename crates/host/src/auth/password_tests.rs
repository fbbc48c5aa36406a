use std::{fs, os::unix::fs::PermissionsExt as _};

use tempfile::TempDir;

use super::{Password, PasswordError};
use crate::auth::Secret;

/// `correct horse`, hashed with little effort.
const HASH: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21l$";

fn read(text: &str, mode: u32) -> Result<Password, PasswordError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("password");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    Password::read(&path)
}

fn hashed(password: &str) -> String {
    use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, Version};
    let params = Params::new(64, 1, 1, None).unwrap();
    let salt = argon2::password_hash::SaltString::from_b64("c29tZXNhbHRzb21l").unwrap();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password(password.as_bytes(), &salt)
        .unwrap()
        .to_string()
}

async fn is(password: &Password, guess: &str) -> bool {
    password.is(Secret::new(guess.to_owned())).await.unwrap()
}

#[tokio::test]
async fn the_first_line_is_the_password_as_it_is_or_hashed() {
    let hash = hashed("correct horse");
    assert!(hash.starts_with(HASH), "{hash}");
    for text in ["correct horse\n", "correct horse\r\nignored\n", &hash, &format!("{hash}\n\n")] {
        let password = read(text, 0o600).unwrap();
        assert!(is(&password, "correct horse").await, "{text}");
        for wrong in ["", "correct horse\n", "Correct horse", "correct", &hash] {
            assert!(!is(&password, wrong).await, "{wrong:?} for {text:?}");
        }
        let shown = format!("{password:?}");
        assert!(!shown.contains("correct"), "{shown}");
    }
}

#[test]
fn a_file_that_others_can_read_or_write_is_refused_with_what_to_do() {
    for mode in [0o640, 0o604, 0o620, 0o666] {
        let error = read("hunter2", mode).unwrap_err().to_string();
        assert!(error.contains("`chmod 600 /") && error.contains("may be read by"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    assert!(read("hunter2", 0o400).is_ok());
    let hash = hashed("hunter2");
    assert!(read(&hash, 0o644).is_ok(), "a hash may be seen");
    let error = read(&hash, 0o664).unwrap_err().to_string();
    assert!(error.contains("may be written by"), "{error}");
}

#[test]
fn what_is_no_password_is_refused() {
    assert!(matches!(read("", 0o600), Err(PasswordError::Empty { .. })));
    assert!(matches!(read("\nsecond", 0o600), Err(PasswordError::Empty { .. })));
    for (line, problem) in [
        ("$argon2id$", ""),
        ("$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21l$YWFhYWFhYWFhYWFhYWFhYQ", "argon2i"),
        ("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21l", "cut short"),
        (
            "$argon2id$v=19$m=4194304,t=1,p=1$c29tZXNhbHRzb21l$YWFhYWFhYWFhYWFhYWFhYQ",
            "more than 1 GiB",
        ),
        (
            "$argon2id$v=19$m=65536,t=4294967295,p=1$c29tZXNhbHRzb21l$YWFhYWFhYWFhYWFhYWFhYQ",
            "too long",
        ),
    ] {
        let error = read(line, 0o600).unwrap_err();
        assert!(matches!(error, PasswordError::Hash { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    let folder = TempDir::new().unwrap();
    for path in [folder.path().join("missing"), folder.path().to_owned()] {
        assert!(matches!(Password::read(&path), Err(PasswordError::Read { .. })));
    }
}

#[test]
fn a_hash_of_another_kind_is_not_taken_for_the_password() {
    for line in [
        "$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW",
        "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjlO/O817G3uBnIFNjnQJu",
        "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc8",
        "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$tnSYvahCwPBHKZUspmcxMfb0.WiB9W.zEaKlOBL35rC",
        "$pbkdf2-sha256$i=600000,l=32$c29tZXNhbHRzb21l$YWFhYWFhYWFhYWFhYWFhYQ",
    ] {
        let error = read(line, 0o600).unwrap_err();
        assert!(matches!(error, PasswordError::Hash { .. }), "{line}: {error}");
        assert!(!error.to_string().contains(line), "{error}");
    }
    for password in ["$6$ is what I paid", "$2a$"] {
        assert!(read(password, 0o600).is_ok(), "{password}");
    }
}

#[tokio::test]
async fn what_can_never_be_sent_is_no_password() {
    let marked = read("\u{feff}correct horse\n", 0o600).unwrap();
    assert!(is(&marked, "correct horse").await);
    assert!(matches!(read("\u{feff}\n", 0o600), Err(PasswordError::Empty { .. })));
    assert!(read(&"x".repeat(512), 0o600).is_ok());
    assert!(matches!(read(&"x".repeat(513), 0o600), Err(PasswordError::Long { .. })));
}
