//! `export` on real stores: to a file, to a pipe, and what is left when it fails.

#![allow(clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    fs,
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use support::{Bench, eventually, fixture, signal, text, turn};

/// What Python reads of an archive: each entry's name and how many lines it has.
fn read_elsewhere(archive: &Path) -> String {
    let script = "import sys, zipfile\n\
                  archive = zipfile.ZipFile(sys.argv[1])\n\
                  assert archive.testzip() is None\n\
                  for entry in archive.infolist():\n    \
                      print(entry.filename, archive.read(entry).count(b'\\n'))";
    let python = Command::new("python3").args(["-c", script]).arg(archive).output().unwrap();
    assert!(python.status.success(), "{}", text(&python.stderr));
    text(&python.stdout).to_owned()
}

/// A prompt that shows an image, as a line of input.
fn shows(image: &str) -> String {
    let content = json!([{ "type": "image",
        "attachment": { "attachmentId": image, "mediaType": "image/png" } }]);
    let data =
        json!({ "id": "u", "role": "user", "source": { "kind": "user" }, "content": content });
    let event = json!({ "type": "user/message", "surfaceOp": "append", "data": data });
    format!("{event}\n")
}

/// A store with the session `s` that shows the image `i`.
fn with_image() -> Bench {
    let bench = Bench::new();
    let appended = bench.run_with_input(&["append", "s", "--create"], shows("i").as_bytes());
    assert!(appended.status.success(), "{appended:?}");
    bench
}

/// Puts the image where sessions of a directory have theirs.
fn add_image(bench: &Bench, content: &[u8]) {
    let folder = bench.root().with_file_name("attachments");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("i.png"), content).unwrap();
}

/// Bytes that do not get shorter when they are packed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(length / 8).flatten().collect()
}

/// The files beside the store, where commands run.
fn files(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.root().parent().unwrap()).unwrap();
    let entries = entries.map(Result::unwrap).filter(|entry| entry.path().is_file());
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn a_session_goes_to_a_file_and_the_same_to_a_pipe() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "s", "--create"], turn(1, "Hello?", "World!").as_bytes());
    let exported = bench.run(&["export", "s", "-o", "s.zip"]);
    assert!(exported.status.success(), "{exported:?}");
    let path = bench.root().with_file_name("s.zip");
    let bytes = fs::read(&path).unwrap();
    let told =
        format!("exported session \"s\" to s.zip: 6 events, 0 images, {} bytes\n", bytes.len());
    assert_eq!(text(&exported.stdout), told);
    assert_eq!(text(&exported.stderr), "", "no bar without a terminal");
    assert_eq!(read_elsewhere(&path), "session.jsonl 7\n");
    let piped = bench.run(&["export", "s"]);
    assert!(piped.status.success(), "{piped:?}");
    assert_eq!(piped.stdout, bytes);
    assert_eq!(files(&bench), ["s.zip"], "nothing else is left");
}

#[test]
fn descendants_and_images_come_along() {
    let bench = with_image();
    add_image(&bench, b"an image\n");
    for name in ["subagent-fork-parent", "subagent-fork-child"] {
        let log = fixture(&format!("dsh/golden/{name}/session.jsonl.zstd"));
        let header = fs::read_to_string(fixture(&format!("dsh/golden/{name}/session.jsonl")));
        let header: Value = serde_json::from_str(header.unwrap().lines().next().unwrap()).unwrap();
        let cwd = header["cwd"].as_str().unwrap().trim_start_matches('/').replace('/', "-");
        bench.plant(&format!("--{cwd}--"), header["id"].as_str().unwrap(), &log);
        if name == "subagent-fork-child" {
            let parent = header["parentSession"].as_str().unwrap();
            let args = ["export", parent, "--descendants", "--json", "-o", "tree.zip"];
            let exported = bench.run(&args);
            assert!(exported.status.success(), "{exported:?}");
            let report: Value = serde_json::from_slice(&exported.stdout).unwrap();
            assert_eq!((&report["sessions"], &report["images"]), (&json!(2), &json!(0)));
            assert_eq!((&report["path"], &report["id"]), (&json!("tree.zip"), &json!(parent)));
            let path = bench.root().with_file_name("tree.zip");
            assert_eq!(report["bytes"], fs::metadata(&path).unwrap().len());
            let found = read_elsewhere(&path);
            let names: Vec<_> = found.lines().map(|line| line.split(' ').next().unwrap()).collect();
            let child = header["id"].as_str().unwrap();
            assert_eq!(names, ["session.jsonl", &format!("subagents/{child}/session.jsonl")]);
        }
    }
    let exported = bench.run(&["export", "s", "-o", "s.zip"]);
    assert!(text(&exported.stdout).contains("1 event, 1 image"), "{exported:?}");
    let found = read_elsewhere(&bench.root().with_file_name("s.zip"));
    assert_eq!(found, "session.jsonl 2\nmedia/i.png 1\n");
}

#[test]
fn an_export_that_fails_leaves_no_file_and_says_why() {
    let bench = with_image();
    let told = |args: &[&str], code: i32, about: &str| {
        let failed = bench.run(args);
        assert_eq!(failed.status.code(), Some(code), "{failed:?}");
        let stderr = text(&failed.stderr);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(about), "{stderr}");
        assert!(files(&bench).is_empty(), "{:?}", files(&bench));
    };
    let to_file = ["export", "s", "-o", "s.zip"];
    told(&["export", "nope", "-o", "s.zip"], 3, "session \"nope\" not found");
    told(&to_file, 7, "there is no attachments directory; set `attachments`");
    fs::create_dir(bench.root().with_file_name("attachments")).unwrap();
    told(&to_file, 7, "image \"i\" is not in the attachments directory");
    told(&["export", "s", "-o", "nowhere/s.zip"], 7, "image \"i\"");
    add_image(&bench, b"an image");
    told(&["export", "s", "-o", "nowhere/s.zip"], 7, "cannot create nowhere/s.zip");
    told(&["export", "s", "-o", ".."], 2, "no name for a file");

    let failed = bench.run(&["--json", "export", "nope"]);
    let error: Value = serde_json::from_slice(&failed.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    assert_eq!(error["error"]["session"], "nope");
    assert!(failed.stdout.is_empty());

    let damaged = fixture("dsh/damaged/zstd-checksum-mid.zstd");
    let id = "damaged";
    bench.plant("_no-cwd", id, &damaged);
    let failed = bench.run(&["export", id, "-o", "d.zip"]);
    assert_eq!(failed.status.code(), Some(6), "{failed:?}");
    assert!(files(&bench).is_empty());
}

#[test]
fn a_file_that_exists_is_never_overwritten() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "s", "--create"], turn(1, "a", "b").as_bytes());
    let path = bench.root().with_file_name("s.zip");
    fs::write(&path, "dear to somebody").unwrap();
    let refused = bench.run(&["export", "s", "-o", "s.zip"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("s.zip exists"), "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "dear to somebody");
    std::os::unix::fs::symlink("nothing", bench.root().with_file_name("link.zip")).unwrap();
    let refused = bench.run(&["export", "s", "-o", "link.zip"]);
    assert_eq!(refused.status.code(), Some(2), "not through a link either: {refused:?}");
}

#[test]
fn the_directory_of_images_is_a_setting() {
    let bench = with_image();
    let folder = bench.root().with_file_name("pictures");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("i"), "an image").unwrap();
    let args = ["export", "s", "-o", "s.zip"];
    let exported = bench.command(&args).env("TURNKEEP_ATTACHMENTS", &folder).output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
}

#[test]
fn a_terminal_is_told_how_to_get_the_archive() {
    let bench = Bench::new();
    bench.run_with_input(&["append", "s", "--create"], turn(1, "a", "b").as_bytes());
    let script = "import os, pty, sys\n\
                  sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let shown = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_turnkeep"), "export", "s", "--store"])
        .arg(bench.root())
        .env("HOME", bench.root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(shown.status.code(), Some(2), "{shown:?}");
    assert!(text(&shown.stdout).contains("-o session.zip"), "{shown:?}");
    assert!(!text(&shown.stdout).contains("PK"), "{shown:?}");
}

#[test]
fn a_reader_that_goes_away_is_a_failure() {
    let bench = with_image();
    add_image(&bench, &noise(4 << 20));
    let mut child = bench.spawn(&["export", "s"]);
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 100]).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    assert!(text(&ended.stderr).contains("cannot write to standard output"), "{ended:?}");
}

#[test]
fn an_export_that_is_stopped_or_killed_leaves_no_archive() {
    let bench = with_image();
    add_image(&bench, &noise(64 << 20));
    let part = || files(&bench).into_iter().find(|name| name.ends_with(".part"));
    let begun = || {
        let path = part().map(|name| bench.root().with_file_name(name));
        path.is_some_and(|path| fs::metadata(path).is_ok_and(|file| file.len() > 1 << 20))
    };
    for (sent, leaves) in [("-TERM", 0), ("-INT", 0), ("-KILL", 1)] {
        let child = bench.spawn(&["export", "s", "-o", "s.zip"]);
        eventually("the archive is begun", begun);
        signal(&child, sent);
        let ended = child.wait_with_output().unwrap();
        assert!(!ended.status.success(), "{sent}: {ended:?}");
        if sent != "-KILL" {
            assert_eq!(ended.status.code(), Some(7), "{ended:?}");
            assert!(text(&ended.stderr).contains("the export was stopped"), "{ended:?}");
        }
        let left = files(&bench);
        assert_eq!(left.len(), leaves, "{sent}: {left:?}");
        assert!(!left.contains(&"s.zip".to_owned()), "{sent}");
    }
}
