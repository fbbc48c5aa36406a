//! Which parts get the images they refer to.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use turnkeep_log::Text;
use turnkeep_store::attachments::Attachments;

use super::{MOST, may_show_images, with_images};

fn file(id: &str, mime: &str) -> Value {
    json!({ "type": "file", "mime": mime, "attachmentId": id })
}

fn resolved(record: &Value, folder: &TempDir) -> Value {
    let text = Text::from(record.to_string());
    assert!(may_show_images(&text));
    let attachments = Attachments::at(folder.path().to_owned());
    serde_json::from_str(&with_images(text, &attachments)).unwrap()
}

#[test]
fn stored_images_become_urls_and_nothing_else_changes() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.png"), b"png").unwrap();
    fs::write(folder.path().join("b"), b"gif").unwrap();
    fs::write(folder.path().join("page"), b"<script>").unwrap();
    let record = json!({ "info": { "id": "m" }, "parts": [
        { "type": "text", "text": "\u{e9}\"attachmentId\"" },
        file("a", "image/png"),
        file("missing", "image/png"),
        file("page", "text/html"),
        file("../secret", "image/png"),
        { "type": "file", "mime": "image/png", "attachmentId": "a", "byteSize": 4 },
        { "type": "file", "mime": "image/png", "attachmentId": "a", "url": "https://else" },
        { "type": "tool", "state": { "attachments": [file("b", "image/gif")], "output": "o" } },
        file("a", "image/png"),
    ]});
    let mut expected = record.clone();
    for (place, url) in [
        ("/parts/1", "data:image/png;base64,cG5n"),
        ("/parts/7/state/attachments/0", "data:image/gif;base64,Z2lm"),
        ("/parts/8", "data:image/png;base64,cG5n"),
    ] {
        expected.pointer_mut(place).unwrap()["url"] = url.into();
    }
    assert_eq!(resolved(&record, &folder), expected);
}

#[test]
fn there_is_an_end_to_what_one_message_carries() {
    let folder = TempDir::new().unwrap();
    let large = fs::File::create(folder.path().join("large")).unwrap();
    large.set_len(MOST + 1).unwrap();
    fs::write(folder.path().join("small"), b"png").unwrap();
    let record = json!({ "parts": [file("large", "image/png"), file("small", "image/png")] });
    let record = resolved(&record, &folder);
    assert_eq!(record["parts"][0].get("url"), None);
    assert_eq!(record["parts"][1]["url"], "data:image/png;base64,cG5n");
}

#[test]
fn what_needs_no_change_is_the_same_text() {
    let folder = TempDir::new().unwrap();
    let text = Text::from(json!({ "parts": [file("a", "image/png")] }).to_string());
    let same = with_images(text.clone(), &Attachments::at(folder.path().to_owned()));
    assert_eq!(same.as_str().as_ptr(), text.as_str().as_ptr());
    assert!(!may_show_images(&Text::from(r#"{"parts":[]}"#)));
}
