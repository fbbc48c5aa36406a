//! The images of a message, in the message.
//!
//! A log refers to its images, and so does a record that is folded from it: a file part has an
//! `attachmentId` and no `url`. Turn pages leave URLs out anyway; a message that is asked for by
//! itself gets those that there are.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use turnkeep_log::{
    Text,
    json::{Json, JsonStr},
};
use turnkeep_store::attachments::{AttachmentRef, Attachments};

/// How many bytes of images one message carries at most. Parts beyond that stay without a URL.
const MOST: u64 = 32 << 20;

/// Whether it is worth looking for images.
pub(super) fn may_show_images(record: &Text) -> bool {
    record.contains("\"attachmentId\"")
}

/// The record with a `data:` URL in every file part whose image is stored; what cannot be had stays
/// as it is. This blocks.
pub(super) fn with_images(record: Text, attachments: &Attachments) -> Text {
    let Ok(whole) = Json::parse(&record) else { return record };
    let mut out = String::new();
    let mut copied = 0;
    let mut left = MOST;
    let parts = whole.get("parts").and_then(Json::elements).into_iter().flatten();
    for part in parts {
        let of_tool = part.path(&["state", "attachments"]).and_then(Json::elements);
        for file in std::iter::once(part).chain(of_tool.into_iter().flatten()) {
            let Some(url) = url_of(file, attachments, &mut left) else { continue };
            // Before the brace that ends it.
            let end = offset_in(&record, file.text()) + file.text().len() - 1;
            out.push_str(record.get(copied..end).unwrap_or_default());
            out.push_str(",\"url\":\"");
            out.push_str(&url);
            out.push('"');
            copied = end;
        }
    }
    if copied == 0 {
        return record;
    }
    out.push_str(record.get(copied..).unwrap_or_default());
    out.into()
}

/// Where in a text a part of it stands.
fn offset_in(text: &Text, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_str().as_ptr() as usize)
}

/// The image of a file part as a URL, when it is stored and there is room for it.
fn url_of(file: Json<'_>, attachments: &Attachments, left: &mut u64) -> Option<String> {
    let text = |key| file.get(key).and_then(Json::as_str).and_then(JsonStr::decode);
    if text("type")? != "file" || file.get("url").is_some() {
        return None;
    }
    let media_type = text("mime")?.into_owned();
    // Nothing that a browser would run.
    if !["image/png", "image/jpeg", "image/webp", "image/gif"].contains(&media_type.as_str()) {
        return None;
    }
    let bytes = file.get("byteSize").and_then(Json::as_natural);
    let image = AttachmentRef { id: text("attachmentId")?.into_owned(), media_type, bytes };
    match read(attachments, &image, *left) {
        Ok(content) => {
            let content = content?;
            *left -= content.len() as u64;
            Some(format!("data:{};base64,{}", image.media_type, STANDARD.encode(content)))
        }
        Err(kind) => {
            tracing::debug!(kind, "an image of a message");
            None
        }
    }
}

/// The content of an image of at most so many bytes.
fn read(
    attachments: &Attachments,
    image: &AttachmentRef,
    most: u64,
) -> Result<Option<Vec<u8>>, &'static str> {
    let mut stored = attachments.open(image).map_err(|error| error.kind())?;
    if stored.length() > most {
        return Ok(None);
    }
    let mut content = vec![0; usize::try_from(stored.length()).unwrap_or_default()];
    let mut filled = 0;
    loop {
        let mut more = [0];
        let space = match content.get_mut(filled..) {
            Some(space) if !space.is_empty() => space,
            // To its end, where it turns out whether it is what it must be.
            _ => &mut more[..],
        };
        match stored.read(space).map_err(|error| error.kind())? {
            0 => return Ok(Some(content)),
            read => filled += read,
        }
    }
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
