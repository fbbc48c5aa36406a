//! Archives as other programs see them.

use std::{fs, process::Command};

use super::{Content, LARGE, Packer};

fn packed(entries: &[(&str, Content, u64, &[u8])]) -> Packer {
    let mut packer = Packer::new();
    for (name, content, claimed, bytes) in entries {
        packer.begin(name, *content, *claimed).unwrap();
        bytes.chunks(7).for_each(|some| packer.write(some).unwrap());
    }
    packer
}

/// What Python, which knows nothing of our code, reads of an archive.
fn read_elsewhere(archive: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    fs::write(&path, archive).unwrap();
    let script = "import sys, zipfile\n\
                  archive = zipfile.ZipFile(sys.argv[1])\n\
                  assert archive.testzip() is None\n\
                  for entry in archive.infolist():\n    \
                      print(entry.filename, archive.read(entry).decode())";
    let python = Command::new("python3").args(["-c", script]).arg(&path).output().unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    String::from_utf8(python.stdout).unwrap()
}

#[test]
fn an_archive_is_read_by_others_with_sizes_of_either_width() {
    let mut packer = packed(&[
        ("session.jsonl", Content::Text, 14, b"first\nsecond\n"),
        ("media/sha256:ab.png", Content::Image, LARGE + 1, b"an image"),
        ("empty", Content::Text, 0, b""),
    ]);
    packer.finish().unwrap();
    let archive = packer.take();
    let expected = "session.jsonl first\nsecond\n\nmedia/sha256:ab.png an image\nempty \n";
    assert_eq!(read_elsewhere(&archive), expected);
    assert!(packer.finish().is_err() && packer.write(b"more").is_err());
    assert!(packer.take().is_empty());
}

#[test]
fn what_is_taken_in_pieces_is_the_same_archive() {
    let text = b"the same text again and again\n".repeat(10_000);
    let mut packer = packed(&[("a", Content::Text, 1, &text)]);
    packer.finish().unwrap();
    let whole = packer.take();

    let mut packer = Packer::new();
    let mut pieces = Vec::new();
    packer.begin("a", Content::Text, 1).unwrap();
    for some in text.chunks(7) {
        packer.write(some).unwrap();
        pieces.extend(packer.take());
    }
    packer.finish().unwrap();
    pieces.extend(packer.take());
    assert_eq!(pieces, whole, "deterministic, too");
}

#[test]
fn an_archive_that_is_given_up_has_no_end() {
    let packer = packed(&[("a", Content::Text, 3, b"abc")]);
    let written = packer.written.clone();
    drop(packer);
    let bytes = &written.lock().bytes;
    assert!(bytes.starts_with(b"PK\x03\x04"), "the entry was begun");
    assert!(!bytes.windows(4).any(|four| four == b"PK\x01\x02" || four == b"PK\x05\x06"));
}
