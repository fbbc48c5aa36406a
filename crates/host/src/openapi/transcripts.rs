//! Turn pages and what belongs to them.

use serde_json::json;
use utoipa::openapi::HttpMethod;

use super::draft::{
    Draft, MAX_ID, Paths, directory, id, in_path, in_query, include_reasoning, integer,
    needed_in_query, text,
};

const TAG: &str = "transcripts";

/// Why a stored session cannot be read.
pub(super) const STORED: &[&str] = &["format_unsupported", "corrupt", "log_shrank", "io"];

/// Why rows cannot be had.
const ROWS: &[&str] = &[
    "session_not_found",
    "max_scan_pages",
    "max_scan_messages",
    "duplicate_cursor",
    "empty_page_with_cursor",
    "missing_id",
    "upstream",
    "unavailable",
    "timed_out",
];

/// Cursors and continuations are not longer than this, in UTF-16 units.
const MAX_CURSOR: usize = 8192;

const EVENT_ID: &str = "The last event before the page was read. A client that applies the page and \
                        then every event after this one is exact. Absent while no events are read.";

pub(super) fn describe(paths: &mut Paths) {
    paths.add(HttpMethod::Get, "/api/openchamber/sessions/{sessionID}/messages", turn_page());
    paths.add(
        HttpMethod::Get,
        "/api/openchamber/sessions/{sessionID}/messages/reconcile",
        reconcile(),
    );
    paths.add(HttpMethod::Get, "/api/openchamber/sessions/{sessionID}/changes", changes());
    paths.add(HttpMethod::Get, "/api/session/{sessionID}/message/{messageID}", message());
    paths.add(HttpMethod::Get, "/api/session/{sessionID}/message", messages());
}

fn session() -> utoipa::openapi::path::Parameter {
    in_path(
        "sessionID",
        "The session. The store is asked first, then the upstream for ids that begin with `ses`.",
    )
}

fn turn_page() -> Draft {
    let about = "The newest turns, or those before a cursor, with parts reduced to what a list of \
                 them shows. A page that is not complete has a cursor, always.";
    let before = text(Some(MAX_CURSOR));
    let example = json!({
        "records": [{"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1_700_000_000_000_i64}}, "parts": [{"id": "prt_1", "type": "text", "text": "Tidy the notes"}]}],
        "turnCount": 1, "cursor": null, "complete": true, "partsProjection": "slim-v1",
    });
    Draft::new("turn_page", TAG, "The last few turns of a session", about)
        .takes(session())
        .takes(in_query("turns", "How many turns.", integer(1, 10, Some(3))))
        .takes(in_query("before", "The cursor of the page before.", before))
        .takes(in_query("scanLimit", "How many rows to ask a source for at a time. It changes no page. The default can be configured.", integer(10, 200, Some(100))))
        .takes(directory())
        .takes(include_reasoning())
        .gives_json("The page.", "TurnPage", example)
        .with_header("x-turnkeep-event-id", EVENT_ID)
        .can_be_held()
        .fails(&["usage", "bad_session", "bad_turns", "bad_scan_limit", "invalid_cursor"])
        .fails(ROWS)
        .fails(STORED)
}

fn reconcile() -> Draft {
    let about = "What happened since a message that the client is sure of, the newest first, in \
                 pages. Exactly one of `anchor` and `continuation` starts a page.";
    let continuation = text(Some(MAX_CURSOR));
    let example = json!({
        "records": [{"info": {"id": "msg_1", "role": "user"}, "parts": []}],
        "anchorFound": true, "capturedHeadMessageID": "msg_1", "latestHeadMessageID": "msg_1",
        "continuation": null, "complete": true, "resetRequired": false, "scannedRecords": 1,
        "responseBytes": 45,
    });
    Draft::new("reconcile", TAG, "What happened since a message", about)
        .takes(session())
        .takes(in_query("anchor", "The id of the message, to begin a round.", text(Some(MAX_ID))))
        .takes(in_query(
            "continuation",
            "What the page before named, to go on with a round.",
            continuation,
        ))
        .takes(directory())
        .takes(include_reasoning())
        .gives_json("A page of the round.", "ReconcilePage", example)
        .with_header("x-turnkeep-event-id", EVENT_ID)
        .can_be_held()
        .fails(&[
            "usage",
            "bad_session",
            "anchor_or_continuation",
            "invalid_anchor",
            "invalid_continuation",
        ])
        .fails(ROWS)
        .fails(STORED)
}

fn changes() -> Draft {
    let about = "The files that a message changed; with `file`, how it changed that one.";
    let example = json!({"files": [{"file": "notes.md", "status": "modified", "additions": 3, "deletions": 1}]});
    Draft::new("changes", TAG, "What a message changed", about)
        .takes(session())
        .takes(needed_in_query("messageID", "The message.", id()))
        .takes(in_query("file", "One of its files, without control characters.", text(Some(4096))))
        .takes(directory())
        .gives_json("The files, or the diff of one.", "Changes", example)
        .can_be_held()
        .fails(&[
            "usage",
            "invalid_session",
            "invalid_message",
            "invalid_file",
            "message_not_found",
            "change_not_found",
        ])
        .fails(&["session_not_found", "upstream", "unavailable", "timed_out"])
        .fails(STORED)
}

fn message() -> Draft {
    let about = "One message with everything a turn page leaves out, but for the patches in its \
                 summary.";
    let example = json!({"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user"}, "parts": [{"id": "prt_1", "type": "text", "text": "Tidy the notes"}]});
    Draft::new("message", TAG, "One message, whole", about)
        .takes(session())
        .takes(in_path("messageID", "The message."))
        .takes(directory())
        .takes(include_reasoning())
        .gives_json("The message.", "Message", example)
        .with_header("x-turnkeep-event-id", EVENT_ID)
        .can_be_held()
        .fails(&["usage", "invalid_session", "invalid_message", "message_not_found"])
        .fails(&["session_not_found", "upstream", "unavailable", "timed_out"])
        .fails(STORED)
}

fn messages() -> Draft {
    let about = "OpenCode's own list of messages, old to new. Of an upstream's session it is what \
                 the upstream answers; of a stored one it has the same shape.";
    let example =
        json!([{"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user"}, "parts": []}]);
    Draft::new("messages", TAG, "OpenCode's list of messages", about)
        .takes(session())
        .takes(in_query(
            "limit",
            "How many messages; all of them without it, or with 0.",
            integer(0, i64::MAX, None),
        ))
        .takes(in_query("before", "The cursor of the page before; only with `limit`.", text(None)))
        .takes(directory())
        .takes(include_reasoning())
        .gives_json("The messages.", "Messages", example)
        .with_header("x-next-cursor", "The cursor of the next older page, if there is one.")
        .with_header("link", "The same as an address, with `rel=\"next\"`.")
        .can_be_held()
        .fails(&["usage", "invalid_session", "session_not_found", "no_route", "invalid_cursor"])
        .fails(&[
            "upstream",
            "unavailable",
            "timed_out",
            "restarting",
            "service_unavailable",
            "upstream_timed_out",
        ])
        .fails(STORED)
        .passes_on()
}
