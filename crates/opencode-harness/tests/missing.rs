//! What a person reads when the server was never installed.

use std::process::Command;

#[test]
fn a_missing_server_is_one_sentence_with_the_way_out() {
    let output = Command::new(env!("CARGO_BIN_EXE_turnkeep-test-opencode"))
        .env("TURNKEEP_OPENCODE", "/nowhere/opencode")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.trim().lines().count(), 1, "{said}");
    assert!(said.contains("/nowhere/opencode was not found, run ./scripts/test"), "{said}");
}
