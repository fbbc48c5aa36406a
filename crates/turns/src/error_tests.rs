use std::collections::HashSet;

use super::TurnPageError::{self, *};

const ALL: [TurnPageError; 14] = [
    BadSession,
    BadTurns,
    BadScanLimit,
    InvalidCursor,
    SessionNotFound,
    MaxScanPages,
    MaxScanMessages,
    DuplicateCursor,
    EmptyPageWithCursor,
    MissingId,
    Upstream,
    Unavailable,
    TimedOut,
    Internal,
];

#[test]
fn every_error_has_the_answer_that_clients_know() {
    let answers = ALL.map(|error| (error.status(), error.body()));
    let expected = [
        (400, r#"{"error":"sessionID is required"}"#),
        (400, r#"{"error":"turns must be an integer between 1 and 10"}"#),
        (400, r#"{"error":"scanLimit must be an integer between 10 and 200"}"#),
        (400, r#"{"error":"invalid cursor"}"#),
        (404, r#"{"error":"session not found","code":"session_not_found"}"#),
        (413, r#"{"error":"scan page limit exceeded","code":"max_scan_pages"}"#),
        (413, r#"{"error":"scan message limit exceeded","code":"max_scan_messages"}"#),
        (502, r#"{"error":"duplicate cursor"}"#),
        (502, r#"{"error":"empty page with cursor"}"#),
        (502, r#"{"error":"upstream record missing id"}"#),
        (502, r#"{"error":"upstream"}"#),
        (503, r#"{"error":"upstream unavailable"}"#),
        (504, r#"{"error":"upstream timeout"}"#),
        (500, r#"{"error":"internal error"}"#),
    ]
    .map(|(status, body)| (status, body.to_owned()));
    assert_eq!(answers, expected);
}

#[test]
fn kinds_are_distinct_and_messages_are_in_house_style() {
    let kinds: HashSet<_> = ALL.iter().map(|error| error.kind()).collect();
    assert_eq!(kinds.len(), ALL.len());
    for error in ALL {
        let message = error.to_string();
        assert!(!message.ends_with('.'), "{message}");
        assert!(!message.starts_with(char::is_uppercase), "{message}");
    }
}
