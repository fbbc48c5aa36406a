//! Tool parts: what was asked, and what came of it.

use std::{borrow::Cow, fmt::Write as _};

use turnkeep_log::{
    Event, Text,
    json::{Json, JsonStr},
};

use super::{
    assistant::span,
    record::{Around, PartNumber, Record},
    render::{Writer, string},
    user::{attachment, file},
};

/// What came of a call. What was asked stays with the block that asked it.
#[derive(Default)]
pub(super) struct Tool {
    /// When the call began to run.
    pub(super) called: Option<i64>,
    /// The first `tool/result` that answered it.
    pub(super) result: Option<Event>,
    /// The inside of the literal that names the session the call started, where the log names one.
    pub(super) child: Option<Text>,
}

/// What a block asked of a tool.
pub(super) struct Asked<'a> {
    /// The insides of the literals of the call's id and the tool's name.
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: Arguments<'a>,
    /// When it was asked, in milliseconds.
    pub(super) at: i64,
    /// When it became too late for an answer.
    pub(super) closed: Option<i64>,
}

/// The arguments of a call.
#[derive(Clone, Copy)]
pub(super) enum Arguments<'a> {
    /// They are still being written.
    Streaming,
    /// The member as it is: the literal of a JSON text, if the writer follows the format.
    Whole(Json<'a>),
    Missing,
}

/// Where a result is looked up.
pub(super) fn call_id(result: Json<'_>) -> Option<JsonStr<'_>> {
    let source = result.path(&["message", "source"]).and_then(|source| string(source, "callId"));
    source.or_else(|| string(block(result)?, "toolCallId"))
}

fn block(result: Json<'_>) -> Option<Json<'_>> {
    result.path(&["message", "content"])?.elements()?.next()
}

impl Tool {
    pub(super) fn size(&self) -> usize {
        self.result.as_ref().map_or(0, |result| result.text().len())
    }

    /// The part's members after its type.
    ///
    /// A call is pending until it runs, running until it is answered, then completed or in error.
    /// One that was left without an answer when its turn ended is an error too, as a call is that
    /// was cut short in OpenCode: nobody is working on it any more.
    pub(super) fn part(
        &self,
        asked: &Asked<'_>,
        record: &Record,
        around: &Around<'_>,
        index: usize,
        out: &mut Writer,
    ) {
        out.key("callID").literal(asked.id);
        out.key("tool").literal(asked.name);
        out.key("state").open();
        match (&self.result, asked.closed) {
            (Some(result), _) => self.answered(result, asked, record, around, index, out),
            (None, Some(closed)) => {
                out.key("status").literal("error");
                input(asked.arguments, out);
                out.key("error").literal("Tool execution aborted");
                out.key("metadata").open();
                out.key("interrupted").raw("true");
                self.child(out);
                out.close();
                self.time(asked, Some(closed), out);
            }
            (None, None) if self.called.is_some() => {
                out.key("status").literal("running");
                input(asked.arguments, out);
                if self.child.is_some() {
                    out.key("metadata").open();
                    self.child(out);
                    out.close();
                }
                self.time(asked, None, out);
            }
            (None, None) => {
                out.key("status").literal("pending");
                input(asked.arguments, out);
                out.key("raw").literal("");
            }
        }
        out.close();
    }

    fn answered(
        &self,
        result: &Event,
        asked: &Asked<'_>,
        record: &Record,
        around: &Around<'_>,
        index: usize,
        out: &mut Writer,
    ) {
        let block = block(result.data());
        let content = || {
            let content = block.and_then(|block| block.get("content")).and_then(Json::elements);
            content.into_iter().flatten()
        };
        let texts: Vec<&str> = content()
            .filter(|block| string(*block, "type").is_some_and(|kind| kind == "text"))
            .filter_map(|block| string(block, "text").map(JsonStr::raw))
            .collect();
        let is_error = block.and_then(|block| block.get("isError")).and_then(Json::as_bool);
        if is_error == Some(true) {
            out.key("status").literal("error");
            input(asked.arguments, out);
            out.key("error").literals(&texts);
            if self.child.is_some() || result.data().get("meta").is_some() {
                self.metadata(result.data(), out);
            }
            self.time(asked, Some(result.time()), out);
            return;
        }
        out.key("status").literal("completed");
        let title = input(asked.arguments, out);
        out.key("output").literals(&texts);
        out.key("title").literal(&title);
        self.metadata(result.data(), out);
        self.time(asked, Some(result.time()), out);
        let mut images = content().filter_map(attachment).peekable();
        if images.peek().is_some() {
            out.key("attachments").open_array();
            for (count, image) in images.enumerate() {
                record.open_part(
                    around,
                    format_args!("{}.{}", PartNumber(index), PartNumber(count)),
                    "file",
                    out,
                );
                file(image, out);
                out.close();
            }
            out.close_array();
        }
    }

    /// What the tool said of its result beside the text, and the session it started.
    fn metadata(&self, result: Json<'_>, out: &mut Writer) {
        let meta = result.get("meta");
        let names_child = meta.is_some_and(|meta| meta.get("sessionId").is_some());
        match meta {
            Some(meta) if meta.members().is_some() && (names_child || self.child.is_none()) => {
                out.key("metadata").raw(meta.text());
            }
            _ => {
                out.key("metadata").open();
                match meta.map(|meta| (meta, meta.members())) {
                    Some((_, Some(members))) => {
                        for member in members {
                            out.key(member.key.raw()).raw(member.value.text());
                        }
                    }
                    Some((meta, None)) => out.key("meta").raw(meta.text()),
                    None => {}
                }
                self.child(out);
                out.close();
            }
        }
    }

    fn child(&self, out: &mut Writer) {
        if let Some(child) = &self.child {
            out.key("sessionId").literal(child);
        }
    }

    fn time(&self, asked: &Asked<'_>, end: Option<i64>, out: &mut Writer) {
        span(self.called.unwrap_or(asked.at), end, out);
    }
}

/// Writes `input`, and says what the model called the call, as the inside of a literal.
///
/// Arguments that spell a JSON object are it, in their own spelling. Any other text is kept whole
/// under `raw`; no text at all is no input.
fn input(arguments: Arguments<'_>, out: &mut Writer) -> String {
    let out = out.key("input");
    let Arguments::Whole(value) = arguments else {
        out.raw("{}");
        return String::new();
    };
    let Some(literal) = value.as_str() else {
        let object = value.members().is_some();
        out.raw(if object { value.text() } else { "{}" });
        return if object { title(value) } else { String::new() };
    };
    let text = unescape(literal);
    match Json::parse(&text) {
        Ok(object) if object.members().is_some() => {
            out.raw(object.text());
            return title(object);
        }
        _ if text.trim().is_empty() => out.raw("{}"),
        _ => {
            out.open();
            out.key("raw").literal(literal.raw());
            out.close();
        }
    }
    String::new()
}

fn title(input: Json<'_>) -> String {
    string(input, "description").map_or_else(String::new, |text| text.raw().to_owned())
}

/// The JSON text that a literal spells. A lone surrogate, which UTF-8 cannot hold, stays an
/// escape: in JSON it can only stand inside a string, where the escape means the same.
fn unescape(literal: JsonStr<'_>) -> Cow<'_, str> {
    literal.decode().unwrap_or_else(|| {
        let mut text = String::with_capacity(literal.raw().len());
        for char in char::decode_utf16(literal.units()) {
            match char {
                Ok(char) => text.push(char),
                Err(lone) => {
                    let _ = write!(text, "\\u{:04x}", lone.unpaired_surrogate());
                }
            }
        }
        Cow::Owned(text)
    })
}
