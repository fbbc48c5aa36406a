//! The shapes that a reader relies on.

use crate::{
    event::Event,
    json::{Json, JsonStr, Kind},
};

type Check = Result<(), &'static str>;

pub(super) fn check(event: &Event) -> Check {
    let data = event.data();
    match event.event_type() {
        "user/message" => message(data, "user").map(drop),
        "assistant/message" => from_model(message(within(data)?, "assistant")?),
        "tool/result" => tool_result(message(within(data)?, "user")?),
        "request/header" if data.get("reason").is_some_and(|reason| is(reason, "fallback")) => {
            Err("has the unsupported legacy request/header reason \"fallback\"")
        }
        _ => Ok(()),
    }
}

fn within(data: Json<'_>) -> Result<Json<'_>, &'static str> {
    data.get("message").ok_or("lacks an identified message")
}

/// What the model sees of one event.
#[derive(Clone, Copy)]
struct Message<'a> {
    source: Json<'a>,
    kind: JsonStr<'a>,
    content: Json<'a>,
}

fn message<'a>(message: Json<'a>, role: &str) -> Result<Message<'a>, &'static str> {
    text(message, "id").ok_or("lacks an identified message")?;
    let said = message.get("role").ok_or("has a message without a role")?;
    if !is(said, role) {
        return Err("has a message of another role than its type asks for");
    }
    let source = message.get("source").ok_or("has a message without a source")?;
    let kind = text(source, "kind").ok_or("has a message whose source is of no kind")?;
    let content = message.get("content").filter(|content| content.kind() == Kind::Array);
    let content = content.ok_or("has a message whose content is no list")?;
    Ok(Message { source, kind, content })
}

fn from_model(message: Message<'_>) -> Check {
    if message.kind != "model" {
        return Err("has an assistant message that no model is the source of");
    }
    for key in ["provider", "model"] {
        text(message.source, key).ok_or("has an assistant message without provider or model")?;
    }
    Ok(())
}

fn tool_result(message: Message<'_>) -> Check {
    if message.kind != "tool" {
        return Err("has a tool result that no tool is the source of");
    }
    let call = text(message.source, "callId").ok_or("has a tool result without a call id")?;
    let mut blocks = message.content.elements().into_iter().flatten();
    let (Some(block), None) = (blocks.next(), blocks.next()) else {
        return Err("has a tool result that is not exactly one block");
    };
    if !block.get("type").is_some_and(|value| is(value, "tool-result")) {
        return Err("has a tool result whose block is of another type");
    }
    if !block.get("content").is_some_and(|content| content.kind() == Kind::Array) {
        return Err("has a tool result whose content is no list");
    }
    if block.get("toolCallId").and_then(Json::as_str) != Some(call) {
        return Err("has a tool result that names two calls");
    }
    Ok(())
}

/// A member that is a string, and not an empty one.
fn text<'a>(object: Json<'a>, key: &str) -> Option<JsonStr<'a>> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

fn is(value: Json<'_>, text: &str) -> bool {
    value.as_str().is_some_and(|value| value == text)
}
