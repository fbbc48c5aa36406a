//! The description of the routes, as the host serves it and as it lies in the documents.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, path::Path};

use support::{described, host::RunningHost};
use turnkeep_host::HostOptions;

/// `just openapi` writes the file anew.
#[tokio::test]
async fn the_document_is_what_the_host_serves() {
    let host = RunningHost::start(HostOptions::default()).await;
    let answer = host.get("/openapi.json").await;
    assert_eq!(answer.status, 200);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("TURNKEEP_UPDATE_OPENAPI").is_some() {
        fs::write(&path, &answer.body).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == answer.body,
        "docs/openapi.json is not what the host serves: run `just openapi`"
    );
    assert_eq!(answer.json()["servers"][0]["url"], "/", "it is of any host");
}

#[test]
fn examples_are_what_they_are_examples_of() {
    assert!(described::check_examples() > 100);
}
