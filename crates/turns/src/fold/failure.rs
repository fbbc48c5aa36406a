//! Why an answer is not whole, in the shape of OpenCode's message errors.

use turnkeep_log::{
    Text,
    json::{Json, JsonStr},
};

use super::render::{Writer, string};

/// The error of an answer that somebody or something stopped.
pub(super) fn aborted(message: &str) -> Text {
    named("MessageAbortedError", None, message)
}

/// The error of a model request that failed. `provider` is the inside of a literal.
///
/// | code | error |
/// |---|---|
/// | `AUTH` | `ProviderAuthError` |
/// | `CONTEXT_WINDOW_EXCEEDED` | `ContextOverflowError` |
/// | any other, or an HTTP status | `APIError`, the code and the request's id in its metadata |
/// | none of these, or `UNKNOWN` | `UnknownError` |
pub(super) fn failed(failure: Json<'_>, provider: &str) -> Text {
    let message = string(failure, "message").map_or("Request failed", JsonStr::raw);
    let code = string(failure, "code").filter(|code| !code.is_empty() && *code != "UNKNOWN");
    let status = failure.get("status").filter(|status| status.as_natural().is_some());
    if code.is_some_and(|code| code == "AUTH") {
        named("ProviderAuthError", Some(provider), message)
    } else if code.is_some_and(|code| code == "CONTEXT_WINDOW_EXCEEDED") {
        named("ContextOverflowError", None, message)
    } else if code.is_some() || status.is_some() {
        api(failure, message, code.map(JsonStr::raw), status)
    } else {
        named("UnknownError", None, message)
    }
}

/// What a failed turn says of its failure. Logs of earlier writers have it under another name, or
/// beside the kind.
pub(super) fn of_turn(reason: Json<'_>) -> Json<'_> {
    let object = |key| reason.get(key).filter(|value| value.members().is_some());
    object("error").or_else(|| object("failure")).unwrap_or(reason)
}

fn named(name: &str, provider: Option<&str>, message: &str) -> Text {
    let mut out = Writer::with_capacity(64 + message.len());
    out.open();
    out.key("name").literal(name);
    out.key("data").open();
    if let Some(provider) = provider {
        out.key("providerID").literal(provider);
    }
    out.key("message").literal(message);
    out.close();
    out.close();
    Text::from(out.finish())
}

fn api(failure: Json<'_>, message: &str, code: Option<&str>, status: Option<Json<'_>>) -> Text {
    let mut out = Writer::with_capacity(128 + message.len());
    out.open();
    out.key("name").literal("APIError");
    out.key("data").open();
    out.key("message").literal(message);
    if let Some(status) = status {
        out.key("statusCode").raw(status.text());
    }
    out.key("isRetryable").raw("false");
    let request = string(failure, "requestId").map(JsonStr::raw);
    if code.is_some() || request.is_some() {
        out.key("metadata").open();
        for (key, value) in [("code", code), ("requestId", request)] {
            if let Some(value) = value {
                out.key(key).literal(value);
            }
        }
        out.close();
    }
    out.close();
    out.close();
    Text::from(out.finish())
}
