//! What an answer of the upstream means.

use std::sync::Arc;

use reqwest::{Response, StatusCode, header};
use turnkeep_log::{
    Text,
    json::{Json, JsonStr},
};

use super::room::{Room, Rooms};
use crate::blocking::off_the_workers;

/// The header that says where the next page starts.
const NEXT_CURSOR: &str = "x-next-cursor";

/// How much room a body gets on the word of its header alone.
const MAX_ANNOUNCED_BYTES: usize = 16 << 20;

/// A good answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The body: JSON, as far as the headers say.
    pub(crate) body: Text,
    /// Where the next page starts.
    pub(crate) next: Option<String>,
    /// The room that the body takes, to be held as long as the body or a slice of it is.
    pub(crate) room: Arc<Room>,
}

/// Why there is no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody listens, or the server says that it does not serve now.
    Unavailable,
    /// The connection ended in the middle.
    Broken,
    /// The server knows no such session.
    NotFound,
    /// The server knows no such message.
    MessageNotFound,
    /// The server refuses the cursor.
    BadCursor,
    /// The server cannot encode what it would have to send.
    Unencodable,
    /// The body is larger than was to be read.
    Oversized,
    /// The server does not take our login.
    LoginRefused,
    /// The answer is none that the server is known to give.
    Unexpected,
}

impl Trouble {
    /// A fixed name for logs.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Broken => "broken",
            Self::NotFound => "not_found",
            Self::MessageNotFound => "message_not_found",
            Self::BadCursor => "bad_cursor",
            Self::Unencodable => "unencodable",
            Self::Oversized => "oversized",
            Self::LoginRefused => "login_refused",
            Self::Unexpected => "unexpected",
        }
    }
}

/// Reads an answer of at most `max_bytes`, once there is room for it.
///
/// A server that does not know a path answers 200 with its web app, so a body counts only when it
/// is said to be JSON.
pub(super) async fn read(
    response: Response,
    max_bytes: usize,
    rooms: &Rooms,
) -> Result<Reply, Trouble> {
    let status = response.status();
    let headers = response.headers();
    let next = headers.get(NEXT_CURSOR).and_then(|next| next.to_str().ok());
    let next = next.filter(|next| !next.is_empty()).map(str::to_owned);
    let is_plain_json = media_type(headers) == "application/json"
        && !headers.contains_key(header::CONTENT_ENCODING);
    match status {
        StatusCode::SERVICE_UNAVAILABLE => return Err(Trouble::Unavailable),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Trouble::LoginRefused),
        _ if !is_plain_json => return Err(Trouble::Unexpected),
        _ => {}
    }
    let (bytes, room) = body(response, max_bytes.min(rooms.largest()), rooms).await?;
    // The room goes along: the work ends although its reader may have left.
    let (body, room) = off_the_workers(bytes.len(), move || (text(bytes), room)).await;
    match status {
        StatusCode::OK => Ok(Reply { body, next, room: Arc::new(room) }),
        refused => Err(refusal(refused, &body)),
    }
}

async fn body(
    mut response: Response,
    max_bytes: usize,
    rooms: &Rooms,
) -> Result<(Vec<u8>, Room), Trouble> {
    let announced = response.content_length();
    let announced = announced.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    if announced.is_some_and(|bytes| bytes > max_bytes) {
        return Err(Trouble::Oversized);
    }
    let mut room = rooms.take(announced.unwrap_or(max_bytes)).await;
    let mut body = Vec::with_capacity(announced.unwrap_or_default().min(MAX_ANNOUNCED_BYTES));
    while let Some(chunk) = response.chunk().await.map_err(|_| Trouble::Broken)? {
        if body.len() + chunk.len() > max_bytes {
            return Err(Trouble::Oversized);
        }
        body.extend_from_slice(&chunk);
    }
    room.shrink_to(body.len());
    Ok((body, room))
}

/// The bytes as text: a byte order mark is dropped, and what is not UTF-8 becomes U+FFFD.
fn text(bytes: Vec<u8>) -> Text {
    let decoded = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    match decoded.strip_prefix('\u{feff}') {
        Some(rest) => Text::from(rest),
        None => Text::from(decoded),
    }
}

/// The media type without its parameters, in lower case.
pub(super) fn media_type(headers: &header::HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let bare = value.unwrap_or_default().split(';').next().unwrap_or_default();
    bare.trim().to_ascii_lowercase()
}

/// What an answer other than 200 means, from its status and the few bodies that are known.
fn refusal(status: StatusCode, body: &str) -> Trouble {
    let body = Json::parse(body).ok();
    let text = |keys: &[&str]| body.and_then(|body| body.path(keys)).and_then(Json::as_str);
    let says = |keys: &[&str], word: &str| text(keys).is_some_and(|value| value == *word);
    let message = || text(&["data", "message"]).map(JsonStr::decode_lossy).unwrap_or_default();
    match status {
        StatusCode::NOT_FOUND
            if says(&["name"], "NotFoundError") && message().starts_with("Message not found") =>
        {
            Trouble::MessageNotFound
        }
        StatusCode::NOT_FOUND if says(&["name"], "NotFoundError") => Trouble::NotFound,
        StatusCode::BAD_REQUEST if says(&["_tag"], "BadRequest") => Trouble::BadCursor,
        StatusCode::BAD_REQUEST if says(&["data", "kind"], "Body") => Trouble::Unencodable,
        _ => Trouble::Unexpected,
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
