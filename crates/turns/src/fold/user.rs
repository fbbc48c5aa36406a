//! Messages in the user's role: a person's, and those made for the model.

use turnkeep_log::{
    Event,
    json::{Json, JsonStr},
};

use super::{
    record::{Around, PartNumber, Record},
    render::{Writer, string},
};

/// A `user/message`.
pub(super) struct User {
    message: Event,
    /// Whether a person wrote it; the parts of any other message are synthetic.
    authored: bool,
}

impl User {
    pub(super) fn new(message: &Event) -> Self {
        Self { message: message.clone(), authored: is_authored(message.data()) }
    }

    pub(super) fn authored(&self) -> bool {
        self.authored
    }

    /// The beginning of its first line of text, if it has any.
    pub(super) fn opening(&self) -> Option<String> {
        let content = self.message.data().get("content").and_then(Json::elements)?;
        let texts =
            content.filter(|block| string(*block, "type").is_some_and(|kind| kind == "text"));
        texts.filter_map(|block| string(block, "text")).find_map(opening)
    }

    pub(super) fn size(&self) -> usize {
        self.message.text().len()
    }

    pub(super) fn parts(&self, record: &Record, around: &Around<'_>, out: &mut Writer) {
        out.key("parts").open_array();
        let mut none = true;
        let content = self.message.data().get("content").and_then(Json::elements);
        for (index, block) in content.into_iter().flatten().enumerate() {
            none &= !self.part(record, around, index, block, out);
        }
        if none && !self.authored {
            // A user record without parts counts as a prompt; a message that nobody wrote is none.
            record.open_part(around, PartNumber(0), "text", out);
            out.key("text").literal("");
            self.close_part(out);
        }
        out.close_array();
    }

    /// Whether the block could be shown.
    fn part(
        &self,
        record: &Record,
        around: &Around<'_>,
        index: usize,
        block: Json<'_>,
        out: &mut Writer,
    ) -> bool {
        let Some(kind) = string(block, "type") else { return false };
        if kind == "text" {
            let Some(text) = string(block, "text") else { return false };
            record.open_part(around, PartNumber(index), "text", out);
            out.key("text").literal(text.raw());
        } else if kind == "image" {
            let Some(attachment) = attachment(block) else { return false };
            record.open_part(around, PartNumber(index), "file", out);
            file(attachment, out);
        } else {
            return false;
        }
        self.close_part(out);
        true
    }

    fn close_part(&self, out: &mut Writer) {
        if !self.authored {
            out.key("synthetic").raw("true");
        }
        out.close();
    }
}

/// How many characters of a first line are taken for a headline.
const HEADLINE_CHARS: usize = 80;

/// The beginning of the first line that says something.
pub(super) fn opening(text: JsonStr<'_>) -> Option<String> {
    let text = text.decode_lossy();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    match line.char_indices().nth(HEADLINE_CHARS) {
        Some((end, _)) => Some(format!("{}…", line.get(..end)?.trim_end())),
        None => Some(line.to_owned()),
    }
}

/// Whether the source of a message or command is a person.
pub(super) fn is_authored(data: Json<'_>) -> bool {
    let kind = data.get("source").and_then(|source| string(source, "kind"));
    kind.is_some_and(|kind| kind == "user")
}

/// What an image block refers to, when there is enough of it to show.
pub(super) fn attachment(block: Json<'_>) -> Option<Json<'_>> {
    let attachment = block.get("attachment")?;
    string(attachment, "mediaType").map(|_| attachment)
}

/// The members of a file part. The log holds a reference, not the bytes: there is no `url` until
/// somebody who can read attachments resolves `attachmentId`.
pub(super) fn file(attachment: Json<'_>, out: &mut Writer) {
    if let Some(kind) = string(attachment, "mediaType") {
        let prefix = if kind.raw().contains('/') { "" } else { "image/" };
        out.key("mime").literals(&[prefix, kind.raw()]);
    }
    if let Some(name) = string(attachment, "name") {
        out.key("filename").literal(name.raw());
    }
    for (key, name) in [("width", "width"), ("height", "height"), ("byteSize", "bytes")] {
        if let Some(number) = attachment.get(name).filter(|number| number.as_f64().is_some()) {
            out.key(key).raw(number.text());
        }
    }
    if let Some(id) = string(attachment, "attachmentId") {
        out.key("attachmentId").literal(id.raw());
    }
}
