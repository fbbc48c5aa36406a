use std::fs;

use tempfile::TempDir;

use super::{Found, Scope, TokenFile, Tokens};
use crate::auth::Secret;

#[test]
fn a_change_of_the_file_counts_at_once() {
    let folder = TempDir::new().unwrap();
    let file = TokenFile::new(folder.path().join("tokens.json"));
    let tokens = Tokens::new(file.clone());
    let unknown = Secret::new("tk_x".to_owned()).digest();
    assert_eq!(tokens.find(&unknown), Found::Unknown);
    assert!(!tokens.any_live().unwrap());

    let one = file.create("one", Scope::Read, None).unwrap().digest();
    let other = file.create("other", Scope::Admin, None).unwrap().digest();
    let expired = file.create("expired", Scope::Admin, Some(1)).unwrap().digest();
    assert_eq!(tokens.find(&one), Found::Live(Scope::Read));
    assert_eq!(tokens.find(&other), Found::Live(Scope::Admin));
    assert_eq!(tokens.find(&expired), Found::Ended);
    assert_eq!(tokens.find(&unknown), Found::Unknown);
    assert!(tokens.any_live().unwrap());

    file.revoke("one").unwrap();
    assert_eq!(tokens.find(&one), Found::Ended);
    assert_eq!(tokens.find(&other), Found::Live(Scope::Admin));

    let kept = fs::read_to_string(file.path()).unwrap();
    fs::write(file.path(), "{").unwrap();
    assert_eq!(tokens.find(&other), Found::Unknown, "a broken file lets nobody in");
    fs::write(file.path(), kept).unwrap();
    assert_eq!(tokens.find(&other), Found::Live(Scope::Admin));
    fs::remove_file(file.path()).unwrap();
    assert_eq!(tokens.find(&other), Found::Unknown);
}
