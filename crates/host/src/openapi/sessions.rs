//! Sessions, and the logs of stored ones.

use serde_json::json;
use utoipa::openapi::{ArrayBuilder, HttpMethod};

use super::{
    draft::{Draft, Paths, id, in_head, in_path, in_query, integer, needed_in_query, text},
    transcripts::STORED,
};

const TAG: &str = "sessions";

pub(super) fn describe(paths: &mut Paths) {
    paths.add(HttpMethod::Get, "/api/turnkeep/sessions", list());
    paths.add(HttpMethod::Get, "/api/turnkeep/sessions/{sessionID}", one());
    paths.add(HttpMethod::Get, "/api/turnkeep/sessions/{sessionID}/events", events());
    paths.add(HttpMethod::Get, "/api/turnkeep/sessions/{sessionID}/events/stream", follow());
    paths.add(HttpMethod::Get, "/api/session.export", export("export"));
    paths.add(HttpMethod::Head, "/api/session.export", export("export_head"));
}

fn list() -> Draft {
    let about = "The sessions of the store and of the upstream as one list. A session that cannot \
                 be read is listed with its `state` and a `reason`, and hides no other.";
    let states = ArrayBuilder::new()
        .items(text(None).enum_values(Some(["ok", "damaged", "newer", "foreign"])));
    let example = json!({
        "sessions": [{
            "id": "demo-long", "source": "store", "title": "Tidy the notes", "cwd": "/home/me/notes",
            "createdAt": 1_700_000_000_000_i64, "updatedAt": 1_700_000_600_000_i64,
            "updatedAtEstimated": true, "lastPromptAt": 1_700_000_500_000_i64, "blank": false,
            "eventCount": 42, "sizeBytes": 4096, "revision": "4096", "state": "ok",
        }],
        "cursor": null,
    });
    Draft::new("sessions", TAG, "All sessions, the newest first", about)
        .takes(in_query("cursor", "The cursor of the page before.", text(None)))
        .takes(in_query("limit", "How many sessions.", integer(1, 200, Some(50))))
        .takes(in_query(
            "q",
            "Only sessions with this text in id, title or directory, in any case.",
            text(None),
        ))
        .takes(in_query("cwd", "Only sessions of this directory.", text(None)))
        .takes(in_query(
            "state",
            "Only sessions in this state; repeated, or separated by commas, in any of these.",
            states,
        ))
        .gives_json("A page of the list.", "SessionList", example)
        .can_be_held()
        .fails(&["usage", "bad_cursor", "upstream", "unavailable", "timed_out", "io"])
}

fn session() -> utoipa::openapi::path::Parameter {
    in_path("sessionID", "The session.")
}

fn one() -> Draft {
    let about = "What the list says of it, and its title even when the list did not know it: a \
                 stored session is read for it.";
    let example = json!({
        "id": "ses_1", "source": "upstream", "title": "Tidy the notes", "cwd": "/home/me/notes",
        "createdAt": 1_700_000_000_000_i64, "updatedAt": 1_700_000_600_000_i64, "lastPromptAt": null,
        "blank": false, "revision": "1700000600000", "state": "ok",
    });
    Draft::new("session", TAG, "One session", about)
        .takes(session())
        .gives_json("The session.", "Session", example)
        .can_be_held()
        .fails(&[
            "usage",
            "bad_session",
            "session_not_found",
            "upstream",
            "unavailable",
            "timed_out",
        ])
        .fails(STORED)
}

fn events() -> Draft {
    let about = "The logical events of a stored session, one JSON object a line, in the order of \
                 their `seq`. An error after the first line ends the answer before its end: a \
                 client that wants all of it counts.";
    Draft::new("session_events", TAG, "The log of a session", about)
        .takes(session())
        .takes(in_query("offset", "The first event, by `seq`.", integer(0, i64::MAX, Some(0))))
        .takes(in_query("length", "How many at most.", integer(0, i64::MAX, None)))
        .gives_other("The events, each a `LogEvent` on a line of its own.", "application/x-ndjson")
        .fails(&["usage", "bad_session", "session_not_found", "not_stored"])
        .fails(STORED)
}

fn follow() -> Draft {
    let about = "The same events as they are appended, as server-sent events whose `id` is the \
                 `seq`. A client that comes back names the last one it has.";
    let seq = integer(-1, i64::MAX, None);
    Draft::new("session_event_stream", TAG, "The log of a session, live", about)
        .takes(session())
        .takes(in_query("after", "The last event that the client has; -1 for none.", seq))
        .takes(in_head("Last-Event-ID", "The same, as browsers send it."))
        .gives_other("The stream. It does not end by itself.", "text/event-stream")
        .fails(&["usage", "bad_session", "session_not_found", "not_stored", "invalid_boundary"])
        .fails(STORED)
}

fn export(operation: &str) -> Draft {
    let about = "A stored session as a ZIP archive: `session.jsonl`, with descendants \
                 `subagents/…/session.jsonl`, and the images that they refer to. A failure after \
                 the head breaks the connection off: what has arrived whole is whole.";
    let flag = text(None).enum_values(Some(["true", "false"]));
    Draft::new(operation, TAG, "A session as an archive", about)
        .takes(needed_in_query("sessionId", "The session.", id()))
        .takes(in_query(
            "includeDescendants",
            "Whether the sessions that it started come along.",
            flag,
        ))
        .gives_other("The archive.", "application/zip")
        .with_header("content-disposition", "The name of the file to save.")
        .fails(&["usage", "session_not_found", "not_exportable", "no_store"])
        .fails(&["no_attachments", "attachment_missing", "attachment_damaged"])
}
