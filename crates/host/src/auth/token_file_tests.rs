use std::{
    fs, os::unix::fs::PermissionsExt as _, process::Command, sync::mpsc, thread, time::Duration,
};

use tempfile::TempDir;

use super::{Scope, TokenFile, TokenFileError, TokenState, now};

fn file() -> (TempDir, TokenFile) {
    let folder = TempDir::new().unwrap();
    let file = TokenFile::new(folder.path().join("turnkeep/tokens.json"));
    (folder, file)
}

#[test]
fn a_token_is_shown_once_and_only_its_hash_is_kept() {
    let (_folder, file) = file();
    assert!(file.list().unwrap().is_empty());
    let secret = file.create("ci", Scope::Write, Some(now() + 60_000)).unwrap();
    assert!(secret.reveal().starts_with("tk_") && secret.reveal().len() == 46);
    let text = fs::read_to_string(file.path()).unwrap();
    assert!(!text.contains(secret.reveal()) && !text.contains(&secret.reveal()[3..]), "{text}");

    let tokens = file.list().unwrap();
    let [token] = &tokens[..] else { panic!("{tokens:?}") };
    assert_eq!((token.name.as_str(), token.scope), ("ci", Scope::Write));
    assert!(token.digest.matches(&secret.digest()));
    assert_eq!(token.state(now()), TokenState::Live);
    assert_eq!(token.state(now() + 60_000), TokenState::Expired);

    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.path()), 0o600);
    assert_eq!(mode(file.path().parent().unwrap()), 0o700);
}

#[test]
fn a_pipe_in_its_place_is_not_waited_for() {
    let (folder, _) = file();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap().success());
    let (listed, list) = mpsc::channel();
    thread::spawn(move || listed.send(TokenFile::new(path).list()));
    let list = list.recv_timeout(Duration::from_secs(10)).expect("it is waited for");
    assert!(matches!(list, Err(TokenFileError::Read { .. })), "{list:?}");
}

#[test]
fn names_are_unique_among_the_living() {
    let (_folder, file) = file();
    file.create("ci", Scope::Read, None).unwrap();
    let error = file.create("ci", Scope::Admin, None).unwrap_err();
    assert_eq!(error.kind(), "token_exists");
    file.revoke("ci").unwrap();
    assert_eq!(file.list().unwrap()[0].state(now()), TokenState::Revoked);
    assert_eq!(file.revoke("ci").unwrap_err().kind(), "no_such_token");
    file.create("ci", Scope::Admin, Some(0)).unwrap();
    file.create("ci", Scope::Read, None).unwrap();
    assert_eq!(file.list().unwrap().len(), 1, "those that have ended make place");
    for bad in ["", "a\nb", &"x".repeat(65)] {
        assert!(matches!(file.create(bad, Scope::Read, None), Err(TokenFileError::Name)));
    }
}

#[test]
fn two_at_a_time_lose_nothing() {
    let (_folder, file) = file();
    thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for number in 0..8 {
                    file.create(&format!("{writer}-{number}"), Scope::Read, None).unwrap();
                }
            });
        }
    });
    assert_eq!(file.list().unwrap().len(), 32);
}

#[test]
fn a_file_that_is_not_as_it_should_be_lets_nobody_in() {
    let (folder, _) = file();
    let path = folder.path().join("tokens.json");
    let file = TokenFile::new(&path);
    let write = |text: &str, mode| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        file.list().unwrap_err()
    };
    let token = |scope: &str, sha256: &str| {
        format!(
            r#"{{"version":1,"tokens":[{{"name":"a","scope":"{scope}","sha256":"{sha256}",
            "created":1,"expires":null,"revoked":null}}]}}"#
        )
    };
    let good = token("read", &"a".repeat(64));
    for text in [
        "",
        "[]",
        r#"{"version":2,"tokens":[]}"#,
        &token("root", &"a".repeat(64)),
        &token("read", "canary"),
        r#"{"version":"canary","tokens":[]}"#,
    ] {
        let error = write(text, 0o600);
        assert!(matches!(error, TokenFileError::Malformed { .. }), "{text}: {error}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    let error = write(&good, 0o660);
    assert!(matches!(error, TokenFileError::Mode { mode: 0o660, .. }), "{error}");
    assert!(error.to_string().contains("`chmod 600 /"), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(file.list().unwrap().len(), 1);
    let folder = TokenFile::new(folder.path());
    assert!(matches!(folder.list(), Err(TokenFileError::Read { .. })));
}
