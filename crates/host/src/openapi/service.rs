//! The process, its description, and the reader.

use serde_json::json;
use utoipa::openapi::HttpMethod;

use super::draft::{Draft, Paths};
use crate::metrics::MEDIA_TYPE;

pub(super) fn describe(paths: &mut Paths) {
    let health = "Says that the process answers, and nothing about it.";
    let health = Draft::new("health", "service", "Whether the process answers", health)
        .gives_json("It does.", "Health", json!({"status": "ok"}))
        .open();
    paths.add(HttpMethod::Get, "/health", health);
    let metrics = "Every number that the host counts, as OpenMetrics text.";
    let metrics = Draft::new("metrics", "service", "What the host counts", metrics)
        .gives_other("The numbers.", MEDIA_TYPE.split(';').next().unwrap_or_default());
    paths.add(HttpMethod::Get, "/metrics", metrics);
    let document = "This document.";
    let document = Draft::new("openapi", "service", "What the host answers", document)
        .gives_json("The document.", "Document", json!({"openapi": "3.1.0"}))
        .can_be_held()
        .open();
    paths.add(HttpMethod::Get, "/openapi.json", document);
    let reader = "The list of sessions and their transcripts, for people.";
    let reader = Draft::new("reader", "reader", "The reader", reader)
        .gives_other("The page.", "text/html")
        .can_be_held()
        .open();
    paths.add(HttpMethod::Get, "/", reader);
}
