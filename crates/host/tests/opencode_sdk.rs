//! OpenCode's published SDK against a real server, and against a host in front of one: its client
//! must not be able to tell which.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::path::{Path, PathBuf};

use serde_json::Value;
use support::host::RunningHost;
use tokio::process::Command;
use turnkeep_host::{HostOptions, UpstreamOptions};
use turnkeep_test_opencode::{OpenCode, Options};

/// Where `scripts/setup` puts it, or `$TURNKEEP_SDK`.
fn packages() -> PathBuf {
    let packages = std::env::var_os("TURNKEEP_SDK").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/sdk"),
        PathBuf::from,
    );
    let found = packages.join("node_modules/@opencode-ai/sdk").exists();
    assert!(found, "no SDK at {}: run ./scripts/setup", packages.display());
    packages
}

/// A whole session with the SDK, and what its client saw.
async fn session(flavour: &str, base_url: &str, project: &Path) -> Value {
    let run = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk/session.mjs"))
        .args([packages().as_path(), Path::new(flavour), Path::new(base_url), project])
        .kill_on_drop(true)
        .output();
    let run = run.await.unwrap();
    let (output, errors) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{flavour} at {base_url}: {output}{errors}");
    serde_json::from_str(&output).unwrap()
}

async fn both(flavour: &str) {
    let direct = async {
        let server = OpenCode::start(Options::default()).await.unwrap();
        session(flavour, server.base_url(), &server.project()).await
    };
    let through_host = async {
        let server = OpenCode::start(Options::default()).await.unwrap();
        let mut options = HostOptions::default();
        options.upstream = Some(UpstreamOptions::new(server.base_url()).unwrap());
        let host = RunningHost::start(options).await;
        session(flavour, &format!("{}/api", host.origin()), &server.project()).await
    };
    let (direct, through_host) = tokio::join!(direct, through_host);
    let (own, ours) =
        (direct["seen"].as_array().unwrap(), through_host["seen"].as_array().unwrap());
    for (own, ours) in own.iter().zip(ours) {
        assert_eq!(own, ours, "{flavour}: {}", own["what"]);
    }
    assert_eq!(own.len(), ours.len());
    assert_eq!(direct["told"], through_host["told"], "{flavour}");
    assert!(own.len() > 15, "a whole session");
}

#[tokio::test]
async fn the_default_client_sees_the_same() {
    both("default").await;
}

#[tokio::test]
async fn the_newer_client_sees_the_same() {
    both("v2").await;
}
