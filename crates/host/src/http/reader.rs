//! The reader: a page that shows the sessions and their transcripts.
//!
//! Its files are part of the program, so that there is nothing to install and nothing to find.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Response, header},
};
use bytes::Bytes;

use super::conditional;
use crate::failure::Failure;

/// One file of the reader: its path below `/`, its media type, its content.
struct Asset {
    path: &'static str,
    media_type: &'static str,
    content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! assets {
    ($($path:literal: $media_type:ident = $file:literal),+ $(,)?) => {
        [$(Asset {
            path: $path,
            media_type: $media_type,
            content: include_str!(concat!("../../web/", $file)),
        }),+]
    };
}

const ASSETS: [Asset; 24] = assets! {
    "": HTML = "index.html",
    "assets/icon.svg": SVG = "icon.svg",
    "assets/base.css": CSS = "base.css",
    "assets/login.css": CSS = "login.css",
    "assets/sessions.css": CSS = "sessions.css",
    "assets/transcript.css": CSS = "transcript.css",
    "assets/activity.js": JS = "activity.js",
    "assets/api.js": JS = "api.js",
    "assets/dom.js": JS = "dom.js",
    "assets/follow.js": JS = "follow.js",
    "assets/format.js": JS = "format.js",
    "assets/list.js": JS = "list.js",
    "assets/live.js": JS = "live.js",
    "assets/login.js": JS = "login.js",
    "assets/main.js": JS = "main.js",
    "assets/markdown.js": JS = "markdown.js",
    "assets/opened.js": JS = "opened.js",
    "assets/parts.js": JS = "parts.js",
    "assets/sessions.js": JS = "sessions.js",
    "assets/tools.js": JS = "tools.js",
    "assets/transcript.js": JS = "transcript.js",
    "assets/turn.js": JS = "turn.js",
    "assets/turns.js": JS = "turns.js",
    "assets/whole.js": JS = "whole.js",
};

/// Answers with a file of the reader.
pub(super) fn asset(path: &str, request: &HeaderMap) -> Result<Response<Body>, Failure> {
    let found = ASSETS.iter().find(|asset| asset.path == path);
    let asset = found.ok_or_else(|| Failure::of_kind("no_route"))?;
    let content = Bytes::from_static(asset.content.as_bytes());
    let mut response = conditional::ok(request, asset.media_type, content);
    // Asked for again each time, so that a new build is seen at once; a tag makes that cheap.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
