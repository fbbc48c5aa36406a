use std::collections::HashSet;

use super::{
    ChangesError, MessageError, ReconcileError,
    TurnPageError::{self, *},
};

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

const MESSAGE: [MessageError; 8] = [
    MessageError::BadSession,
    MessageError::BadMessage,
    MessageError::SessionNotFound,
    MessageError::NotFound,
    MessageError::Upstream,
    MessageError::Unavailable,
    MessageError::TimedOut,
    MessageError::Internal,
];

#[test]
fn message_errors_have_the_answers_that_clients_know() {
    let answers = MESSAGE.map(|error| (error.status(), error.body()));
    let expected = [
        (400, r#"{"error":"sessionID is required","code":"invalid_session"}"#),
        (400, r#"{"error":"messageID is required","code":"invalid_message"}"#),
        (404, r#"{"error":"session not found","code":"session_not_found"}"#),
        (404, r#"{"error":"not found","code":"not_found"}"#),
        (502, r#"{"error":"upstream"}"#),
        (503, r#"{"error":"upstream unavailable"}"#),
        (504, r#"{"error":"upstream timeout"}"#),
        (500, r#"{"error":"internal error"}"#),
    ]
    .map(|(status, body)| (status, body.to_owned()));
    assert_eq!(answers, expected);
    for error in MESSAGE {
        let wrapped = ChangesError::from(error);
        assert_eq!(
            (wrapped.kind(), wrapped.status(), wrapped.body(), wrapped.to_string()),
            (error.kind(), error.status(), error.body(), error.to_string())
        );
    }
}

#[test]
fn changes_errors_have_the_answers_that_clients_know() {
    let answers = [ChangesError::BadFile, ChangesError::FileNotFound]
        .map(|error| (error.status(), error.body()));
    let expected = [
        (400, r#"{"error":"file is invalid","code":"invalid_file"}"#),
        (404, r#"{"error":"change file not found","code":"change_not_found"}"#),
    ]
    .map(|(status, body)| (status, body.to_owned()));
    assert_eq!(answers, expected);
}

const RECONCILE: [ReconcileError; 3] = [
    ReconcileError::AnchorOrContinuation,
    ReconcileError::BadAnchor,
    ReconcileError::InvalidContinuation,
];

#[test]
fn reconcile_errors_have_the_answers_that_clients_know() {
    let answers = RECONCILE.map(|error| (error.status(), error.body()));
    let expected = [
        r#"{"error":"provide exactly one of anchor or continuation"}"#,
        r#"{"error":"anchor is required and must be a non-empty message id"}"#,
        r#"{"error":"invalid continuation"}"#,
    ]
    .map(|body| (400, body.to_owned()));
    assert_eq!(answers, expected);
}

#[test]
fn what_keeps_a_turn_page_back_keeps_a_gap_back() {
    for error in ALL {
        let reconcile = ReconcileError::from(error);
        if error == InvalidCursor {
            assert_eq!(reconcile, ReconcileError::InvalidContinuation);
        } else {
            assert_eq!(
                (reconcile.kind(), reconcile.status(), reconcile.body(), reconcile.to_string()),
                (error.kind(), error.status(), error.body(), error.to_string())
            );
        }
    }
}

#[test]
fn kinds_are_distinct_and_messages_are_in_house_style() {
    let turn_pages = ALL.map(|error| (error.kind(), error.to_string()));
    let messages = MESSAGE.map(|error| (error.kind(), error.to_string()));
    let changes = [ChangesError::BadFile, ChangesError::FileNotFound]
        .map(|error| (error.kind(), error.to_string()));
    let reconcile = RECONCILE.map(|error| (error.kind(), error.to_string()));
    for table in [&turn_pages[..], &messages, &changes, &reconcile] {
        let kinds: HashSet<_> = table.iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds.len(), table.len());
        for (_, message) in table {
            assert!(!message.ends_with('.'), "{message}");
            assert!(!message.starts_with(char::is_uppercase), "{message}");
        }
    }
}

#[test]
fn a_kind_means_one_status() {
    let mut statuses = std::collections::HashMap::new();
    let turn_pages = ALL.map(|error| (error.kind(), error.status()));
    let messages = MESSAGE.map(|error| (error.kind(), error.status()));
    for (kind, status) in turn_pages.into_iter().chain(messages) {
        assert_eq!(*statuses.entry(kind).or_insert(status), status, "{kind}");
    }
}
