//! The reader: what it is made of, how it is served, and what its scripts do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{path::Path, process::Command};

use support::host::RunningHost;
use turnkeep_host::HostOptions;

/// What these patterns find in a text: the values of `src="…"`, `href="…"`, `from "…"`.
fn quoted_after<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let parts = text.split(prefix).skip(1);
    parts.filter_map(|part| part.split_once('"').map(|(value, _)| value)).collect()
}

#[tokio::test]
async fn every_file_that_is_referred_to_is_served() {
    let host = RunningHost::start(HostOptions::default()).await;
    let page = host.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));

    let mut wanted: Vec<String> = ["src=\"", "href=\""]
        .into_iter()
        .flat_map(|prefix| quoted_after(&page.body, prefix))
        .filter(|path| !path.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let mut seen = Vec::new();
    while let Some(path) = wanted.pop() {
        if seen.contains(&path) {
            continue;
        }
        let file = host.get(&path).await;
        assert_eq!(file.status, 200, "{path}");
        let extension = path.rsplit('.').next();
        let media_type = match extension {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            other => panic!("no media type for {other:?}"),
        };
        assert_eq!(file.header("content-type"), Some(media_type), "{path}");
        assert_eq!(file.header("cache-control"), Some("no-cache"), "{path}");
        assert!(file.header("etag").is_some(), "{path}");
        if extension == Some("js") {
            let imports = quoted_after(&file.body, "from \"./").into_iter();
            wanted.extend(imports.map(|name| format!("/assets/{name}")));
        }
        seen.push(path);
    }
    let sources = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("web")).unwrap();
    assert_eq!(seen.len() + 1, sources.count(), "no file is left over: {seen:?}");
}

#[tokio::test]
async fn nothing_in_the_page_needs_a_looser_policy() {
    let host = RunningHost::start(HostOptions::default()).await;
    let page = host.get("/").await;
    let policy = page.header("content-security-policy").unwrap();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.split("; ").any(|found| found == rule), "{rule} in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));

    assert!(!page.body.contains("<style") && !page.body.contains(" style="), "no inline style");
    for handler in ["onclick", "onload", "onerror", "javascript:"] {
        assert!(!page.body.contains(handler), "{handler}");
    }
    assert_eq!(page.body.matches("<script").count(), 1, "one script, by reference");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for markup in
            ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("]
        {
            assert!(!text.contains(markup), "{markup} in {}", path.display());
        }
    }
}

#[tokio::test]
async fn files_are_not_sent_twice() {
    let host = RunningHost::start(HostOptions::default()).await;
    let tag = host.get("/assets/main.js").await.header("etag").unwrap().to_owned();
    let again = host.request("GET", "/assets/main.js").header("if-none-match", &tag).send().await;
    assert_eq!(again.unwrap().status, 304);
    assert_eq!(host.get("/assets/nope.js").await.status, 404);
    assert_eq!(host.get("/assets/../src/lib.rs").await.status, 404);
}

/// The scripts' own tests, run by Node.
#[test]
fn the_scripts_do_what_they_should() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reader");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let output =
        Command::new("node").arg("--test").args(files).output().unwrap_or_else(|error| {
            panic!("Node.js is needed, `scripts/setup` installs it: {error}")
        });
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
}
