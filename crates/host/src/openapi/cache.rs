//! The transcript cache.

use serde_json::{Value, json};
use utoipa::openapi::HttpMethod;

use super::draft::{Draft, Paths, id, include_reasoning, needed_in_query, text};

const TAG: &str = "transcript cache";

/// What any of these may answer.
const ANY: &[&str] = &["preview_credential", "cache_failed", "cache_off"];

/// What is wrong with a body.
const BODY: &[&str] = &["invalid_cache_payload", "invalid_cache_scope"];

pub(super) fn describe(paths: &mut Paths) {
    let session = "/api/openchamber/transcript-cache/session";
    let message = "/api/openchamber/transcript-cache/message";
    paths.add(HttpMethod::Get, session, read_session());
    paths.add(HttpMethod::Delete, session, clear_session());
    paths.add(HttpMethod::Get, message, read_message());
    paths.add(HttpMethod::Put, message, write_message());
    paths.add(HttpMethod::Delete, message, remove_message());
    paths.add(
        HttpMethod::Delete,
        "/api/openchamber/transcript-cache/generation",
        clear_generation(),
    );
    paths.add(HttpMethod::Delete, "/api/openchamber/transcript-cache/all", clear_all());
    paths.add(HttpMethod::Post, "/api/openchamber/transcript-cache/evict", evict());
}

fn scoped(draft: Draft) -> Draft {
    draft
        .takes(needed_in_query(
            "transport",
            "How the client reaches its sessions.",
            text(None).min_length(Some(1)),
        ))
        .takes(needed_in_query(
            "generation",
            "Which life of the transport: an integer.",
            text(None).pattern(Some("^[0-9]+$")),
        ))
        .takes(needed_in_query(
            "directory",
            "The project directory.",
            text(None).min_length(Some(1)),
        ))
        .takes(needed_in_query("sessionID", "The session.", text(None).min_length(Some(1))))
}

fn scope() -> Value {
    json!({"transport": "web", "generation": 1, "directory": "/home/me/notes", "sessionID": "ses_1"})
}

fn record() -> Value {
    json!({
        "scope": scope(),
        "messageID": "msg_1", "info": {"id": "msg_1", "role": "user"}, "parts": [],
        "partCompleteness": [], "completeness": "full", "contentHash": "0f", "byteSize": 47,
        "lastAccessedAt": 1_700_000_000_000_i64, "sortKey": {"created": 0, "messageID": "msg_1"},
    })
}

fn read_session() -> Draft {
    let example =
        json!({"available": true, "scope": scope(), "records": [record()], "byteSize": 47});
    let draft = Draft::new(
        "transcript_cache_session",
        TAG,
        "The kept messages of a session",
        "In the order of their making.",
    );
    scoped(draft)
        .takes(include_reasoning())
        .gives_json("The messages.", "CachedSession", example)
        .can_be_held()
        .fails(&["invalid_cache_scope", "invalid_cache_generation"])
        .fails(ANY)
}

fn read_message() -> Draft {
    let example = json!({"available": true, "record": record()});
    let draft = Draft::new(
        "transcript_cache_message",
        TAG,
        "One kept message",
        "The message and how much of it was kept.",
    );
    scoped(draft)
        .takes(needed_in_query("messageID", "The message.", id()))
        .takes(include_reasoning())
        .gives_json("The message.", "CachedMessageAnswer", example)
        .can_be_held()
        .fails(&[
            "invalid_cache_scope",
            "invalid_cache_generation",
            "invalid_cache_message",
            "not_cached",
        ])
        .fails(ANY)
}

fn write_message() -> Draft {
    let about = "Only a message that will not change any more is kept, and what is whole is not \
                 replaced by what is reduced. The scope may also stand in the body itself.";
    let example = json!({"status": "written", "record": record()});
    Draft::new("transcript_cache_write", TAG, "Keep a message", about)
        .takes_json("CacheWrite", "The message, at most 72 MB.")
        .gives_json("What became of it.", "CacheOutcome", example)
        .fails(BODY)
        .fails(&["invalid_cache_generation", "invalid_cache_message"])
        .fails(ANY)
}

fn remove_message() -> Draft {
    Draft::new(
        "transcript_cache_remove",
        TAG,
        "Remove a message",
        "Nothing is amiss when there is none.",
    )
    .takes_json("CacheMessageKey", "Which one.")
    .gives_nothing(204, "It is gone.")
    .fails(BODY)
    .fails(&["invalid_cache_generation", "invalid_cache_message"])
    .fails(ANY)
}

fn clear_session() -> Draft {
    Draft::new("transcript_cache_clear_session", TAG, "Remove a session", "All its messages go.")
        .takes_json("CacheSessionKey", "Which one.")
        .gives_nothing(204, "They are gone.")
        .fails(BODY)
        .fails(&["invalid_cache_generation"])
        .fails(ANY)
}

fn clear_generation() -> Draft {
    Draft::new(
        "transcript_cache_clear_generation",
        TAG,
        "Remove a generation",
        "All messages of one life of a transport go.",
    )
    .takes_json("CacheGenerationKey", "Which one.")
    .gives_nothing(204, "They are gone.")
    .fails(BODY)
    .fails(&["invalid_cache_generation"])
    .fails(ANY)
}

fn clear_all() -> Draft {
    Draft::new("transcript_cache_clear", TAG, "Remove everything", "The cache is empty then.")
        .gives_nothing(204, "Everything is gone.")
        .fails(ANY)
}

fn evict() -> Draft {
    let about = "What was not used for longest goes until so many bytes are left. What is \
                 protected stays, whatever that takes.";
    let example = json!({"evicted": 2, "freedBytes": 94, "remainingBytes": 47});
    Draft::new("transcript_cache_evict", TAG, "Make room", about)
        .takes_json("CacheBudget", "How much may stay.")
        .gives_json("What went.", "CacheEvicted", example)
        .fails(BODY)
        .fails(&["invalid_cache_generation"])
        .fails(ANY)
}
