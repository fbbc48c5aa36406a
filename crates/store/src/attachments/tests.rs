//! Which files an id leads to, and which it never does.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::Command,
};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use turnkeep_log::json::Json;

use super::{AttachmentError, AttachmentRef, Attachments, hex};

fn image(id: &str, media_type: &str, bytes: Option<u64>) -> AttachmentRef {
    AttachmentRef { id: id.to_owned(), media_type: media_type.to_owned(), bytes }
}

fn content(of: &Attachments, image: &AttachmentRef) -> Result<Vec<u8>, AttachmentError> {
    let mut stored = of.open(image)?;
    let mut content = Vec::new();
    // Small, so that there are several reads.
    let mut buffer = [0; 5];
    loop {
        match stored.read(&mut buffer)? {
            0 => return Ok(content),
            read => content.extend_from_slice(&buffer[..read]),
        }
    }
}

fn write(folder: &Path, name: &str, content: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn kind_of(of: &Attachments, image: &AttachmentRef) -> &'static str {
    content(of, image).unwrap_err().kind()
}

#[test]
fn a_file_is_found_by_its_digest_and_by_its_name() {
    let folder = TempDir::new().unwrap();
    let digest = hex(&Sha256::digest(b"an image, stored"));
    write(folder.path(), &format!("v1/objects/{}/{digest}", &digest[..2]), b"an image, stored");
    write(folder.path(), "plain", b"without an ending");
    write(folder.path(), "photo.jpg", b"short ending");
    write(folder.path(), "scan.jpeg", b"long ending");
    write(folder.path(), "empty.gif", b"");
    let named = format!("sha256:{digest}");
    for (at, id, media_type, expected) in [
        ("", named.as_str(), "image/png", "an image, stored"),
        ("v1", named.as_str(), "image/png", "an image, stored"),
        ("", "plain", "image/png", "without an ending"),
        ("", "photo", "image/jpeg", "short ending"),
        ("", "scan", "jpeg", "long ending"),
        ("", "empty", "image/gif", ""),
    ] {
        let attachments = Attachments::at(folder.path().join(at));
        let found = content(&attachments, &image(id, media_type, Some(expected.len() as u64)));
        assert_eq!(found.unwrap(), expected.as_bytes(), "{id}");
    }
    let attachments = Attachments::at(folder.path().to_owned());
    assert_eq!(kind_of(&attachments, &image("photo", "image/png", None)), "attachment_missing");
    assert_eq!(kind_of(&attachments, &image("photo", "", None)), "attachment_missing");
}

#[test]
fn no_id_leads_out_of_the_directory() {
    let home = TempDir::new().unwrap();
    let attachments = Attachments::at(home.path().join("attachments"));
    let directory = attachments.directory();
    write(home.path(), "secret", b"secret");
    write(home.path(), "elsewhere/secret", b"secret");
    write(directory, ".hidden", b"hidden");
    write(directory, "folder/inner", b"inner");
    symlink("../secret", directory.join("link")).unwrap();
    symlink(home.path().join("elsewhere"), directory.join("folder-link")).unwrap();
    symlink("nowhere", directory.join("dangling.png")).unwrap();
    let digest = hex(&Sha256::digest(b"secret"));
    let bucket = home.path().join("elsewhere").join(&digest[..2]);
    write(&bucket, &digest, b"secret");
    fs::create_dir(directory.join("v1")).unwrap();
    symlink(home.path().join("elsewhere"), directory.join("v1/objects")).unwrap();
    let absolute = home.path().join("secret");
    let long = "x".repeat(10_000);
    let object = format!("sha256:{digest}");
    for id in [
        "../secret",
        "..",
        ".",
        "",
        "folder/inner",
        "folder\\inner",
        "folder",
        "folder-link/secret",
        "link",
        "dangling",
        ".hidden",
        "secret\0",
        "a\nb",
        "\u{fffd}",
        "sha256:../../../../secret",
        absolute.to_str().unwrap(),
        long.as_str(),
        object.as_str(),
    ] {
        assert_eq!(
            kind_of(&attachments, &image(id, "image/png", None)),
            "attachment_missing",
            "{id:?}"
        );
    }
}

#[test]
fn what_is_no_file_is_not_read() {
    let folder = TempDir::new().unwrap();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(folder.path().join("socket")).unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let attachments = Attachments::at(folder.path().to_owned());
    for id in ["pipe", "socket", "folder"] {
        assert_eq!(kind_of(&attachments, &image(id, "image/png", None)), "attachment_missing");
    }
    let nowhere = Attachments::at(folder.path().join("nowhere"));
    assert_eq!(kind_of(&nowhere, &image("a", "image/png", None)), "attachment_missing");
}

#[test]
fn an_image_is_what_the_log_says_or_damaged() {
    let folder = TempDir::new().unwrap();
    let digest = hex(&Sha256::digest(b"as it was"));
    write(folder.path(), &format!("objects/{}/{digest}", &digest[..2]), b"as it is!");
    write(folder.path(), "cut", b"half");
    let attachments = Attachments::at(folder.path().to_owned());
    let stored = image(&format!("sha256:{digest}"), "image/png", Some(9));
    assert_eq!(kind_of(&attachments, &stored), "attachment_damaged");
    assert_eq!(kind_of(&attachments, &image("cut", "image/png", Some(8))), "attachment_damaged");
}

#[test]
fn a_file_that_changes_while_it_is_read_is_damaged() {
    let folder = TempDir::new().unwrap();
    let attachments = Attachments::at(folder.path().to_owned());
    for (now, problem) in [(&b"sho"[..], "shorter"), (b"a good deal longer", "longer")] {
        write(folder.path(), "a", b"eight...");
        let mut stored = attachments.open(&image("a", "image/png", None)).unwrap();
        let mut buffer = [0; 4];
        assert_eq!(stored.read(&mut buffer).unwrap(), 4);
        write(folder.path(), "a", now);
        let mut rest = || (0..9).find_map(|_| stored.read(&mut buffer).err());
        let told = rest().unwrap().to_string();
        assert!(told.contains(problem), "{told}");
    }
}

#[test]
fn a_reference_is_read_as_far_as_it_makes_sense() {
    let parse = |text: &str| AttachmentRef::parse(Json::parse(text).unwrap());
    let whole = r#"{"attachmentId":"a","mediaType":"image/webp","bytes":7,"width":1,"height":1}"#;
    assert_eq!(parse(whole), Some(image("a", "image/webp", Some(7))));
    assert_eq!(parse(r#"{"attachmentId":"a","bytes":-1}"#), Some(image("a", "", None)));
    assert_eq!(parse(r#"{"attachmentId":"\ud800"}"#), Some(image("\u{fffd}", "", None)));
    for nothing in ["{}", r#"{"attachmentId":1}"#, "[]", "null"] {
        assert_eq!(parse(nothing), None);
    }
    for (media_type, extension) in [
        ("image/png", "png"),
        ("image/jpeg", "jpg"),
        ("image/webp", "webp"),
        ("gif", "gif"),
        ("image/avif", "bin"),
        ("", "bin"),
    ] {
        assert_eq!(image("a", media_type, None).extension(), extension);
    }
}

#[test]
fn the_usual_directory_is_beside_the_sessions() {
    let home = TempDir::new().unwrap();
    let sessions = home.path().join("sessions");
    fs::create_dir(&sessions).unwrap();
    assert_eq!(Attachments::beside(&sessions), None);
    fs::write(home.path().join("attachments"), "no directory").unwrap();
    assert_eq!(Attachments::beside(&sessions), None);
    fs::remove_file(home.path().join("attachments")).unwrap();
    fs::create_dir(home.path().join("attachments")).unwrap();
    let expected = Some(home.path().join("attachments"));
    assert_eq!(Attachments::beside(&sessions), expected);
    assert_eq!(Attachments::beside(&sessions.join(".")), expected);
}
