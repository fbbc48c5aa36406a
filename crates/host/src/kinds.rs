//! One table for every kind of failure: what it means to a program, a shell and a client.
//!
//! The store, the turn pages and the command name their failures by a stable word, the *kind*.
//! This table is the only place that turns a kind into an exit code or an HTTP status.

use turnkeep_store::SessionState;

/// What one kind of failure means outside of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The stable word.
    pub kind: &'static str,
    /// The exit code of the command.
    pub exit_code: u8,
    /// The HTTP status. Clients try again on 5xx and give up on 4xx, so a failure that a second
    /// try cannot mend is a 4xx even when the fault is on our disk.
    pub status: u16,
    /// What a client is told: never a path, never content.
    pub text: &'static str,
}

const fn kind(kind: &'static str, exit_code: u8, status: u16, text: &'static str) -> Kind {
    Kind { kind, exit_code, status, text }
}

/// Every kind there is.
pub const KINDS: &[Kind] = &[
    // The command line and its input.
    kind("usage", 2, 400, "bad request"),
    kind("bad_cursor", 2, 400, "invalid cursor"),
    kind("not_serializable", 2, 400, "not losslessly JSON-serializable"),
    kind("already_exists", 2, 409, "session already exists"),
    // The session log.
    kind("not_found", 3, 404, "session not found"),
    kind("already_owned", 4, 409, "session is already owned by another writer"),
    kind("ownership_lost", 4, 409, "write ownership was lost"),
    kind("format_unsupported", 5, 422, "session log format unsupported"),
    kind("corrupt", 6, 422, "session log is corrupt"),
    kind("read_only", 7, 409, "the handle is read-only"),
    kind("handle_closed", 7, 409, "the handle is closed"),
    kind("seq_mismatch", 7, 409, "append seq mismatch"),
    kind("log_shrank", 7, 500, "session log shrank"),
    kind("poisoned", 7, 500, "an earlier write could not be confirmed"),
    kind("cancelled", 7, 499, "aborted"),
    kind("io", 7, 500, "internal error"),
    // Turn pages.
    kind("bad_session", 2, 400, "sessionID is required"),
    kind("bad_turns", 2, 400, "turns must be an integer between 1 and 10"),
    kind("bad_scan_limit", 2, 400, "scanLimit must be an integer between 10 and 200"),
    kind("invalid_cursor", 2, 400, "invalid cursor"),
    kind("session_not_found", 3, 404, "session not found"),
    kind("max_scan_pages", 7, 413, "scan page limit exceeded"),
    kind("max_scan_messages", 7, 413, "scan message limit exceeded"),
    kind("duplicate_cursor", 7, 502, "duplicate cursor"),
    kind("empty_page_with_cursor", 7, 502, "empty page with cursor"),
    kind("missing_id", 7, 502, "upstream record missing id"),
    kind("upstream", 7, 502, "upstream"),
    kind("unavailable", 7, 503, "upstream unavailable"),
    kind("timed_out", 7, 504, "upstream timeout"),
    kind("internal", 7, 500, "internal error"),
    // Messages.
    kind("invalid_session", 2, 400, "sessionID is required"),
    kind("invalid_message", 2, 400, "messageID is required"),
    kind("message_not_found", 3, 404, "not found"),
    // Reconciling.
    kind("anchor_or_continuation", 2, 400, "provide exactly one of anchor or continuation"),
    kind("invalid_anchor", 2, 400, "anchor is required and must be a non-empty message id"),
    kind("invalid_continuation", 2, 400, "invalid continuation"),
    // Changes.
    kind("invalid_file", 2, 400, "file is invalid"),
    kind("change_not_found", 3, 404, "change file not found"),
    // The HTTP surface.
    kind("forbidden_host", 7, 403, "forbidden host"),
    kind("forbidden_origin", 7, 403, "forbidden origin"),
    kind("method_not_allowed", 7, 405, "method not allowed"),
    kind("no_route", 7, 404, "not found"),
    // Cold reads and forks.
    kind("source_conflict", 7, 409, "session changed while it was read"),
    kind("invalid_boundary", 2, 400, "the session has no such event"),
    kind("open_turn", 7, 409, "a turn is open at that event"),
    // Saving a damaged log.
    kind("forked", 2, 409, "session log forks"),
    kind("half_saved", 7, 500, "the session was saved in part"),
    // Event streams.
    kind("upgrade_required", 2, 426, "use a WebSocket here"),
    // The events of a session.
    kind("not_stored", 3, 404, "the session is not in the store: its log is not kept here"),
    // The transcript cache.
    kind("invalid_cache_scope", 2, 400, "Invalid transcript cache scope"),
    kind("invalid_cache_generation", 2, 400, "Invalid transcript cache generation"),
    kind("invalid_cache_message", 2, 400, "Invalid transcript cache message ID"),
    kind("invalid_cache_payload", 2, 400, "Invalid transcript cache payload"),
    kind("preview_credential", 7, 403, "Forbidden"),
    kind("not_cached", 3, 404, "message_not_found"),
    kind("cache_failed", 7, 500, "Transcript cache request failed"),
    kind("cache_off", 7, 501, "Transcript cache is unavailable for this runtime"),
    // Exporting. The route answers 500 to whatever keeps it from exporting a session that is there,
    // since its clients know no other status.
    kind("attachment_missing", 7, 500, "an image of the session is missing"),
    kind("attachment_damaged", 7, 500, "an image of the session is damaged"),
    kind("no_attachments", 7, 500, "the images of sessions are not known to this host"),
    kind("no_store", 7, 500, "this host keeps no sessions"),
    kind("not_exportable", 3, 404, "only sessions of the store can be exported"),
    // Who is let in.
    kind("unauthenticated", 7, 401, "authentication required"),
    kind("wrong_password", 7, 401, "wrong password or token"),
    kind("insufficient_scope", 7, 403, "your token does not allow that"),
    kind("locked_out", 7, 429, "too many failed logins"),
    kind("busy", 7, 503, "too many logins at a time"),
    kind("too_large", 7, 413, "request body too large"),
    kind("token_exists", 2, 409, "there is a token of that name"),
    kind("no_such_token", 3, 404, "no such token"),
    // What is handed on to the upstream.
    kind("restarting", 7, 503, "OpenCode is restarting"),
    kind("service_unavailable", 7, 503, "OpenCode service unavailable"),
    kind("upstream_timed_out", 7, 504, "OpenCode upstream timed out"),
    kind("upstream_login", 7, 502, "OpenCode refuses the login that this host has for it"),
    kind("upload_timed_out", 7, 408, "the request's body stopped coming"),
    kind("stored_session", 3, 404, "OpenCode does not have this session, turnkeep stores it"),
    kind("stored_session_is_read", 7, 409, "a stored session is only read here"),
];

/// What this kind means; what an internal failure means, for a word that is not in the table.
#[must_use]
pub fn of(kind: &str) -> &'static Kind {
    const INTERNAL: &Kind = &self::kind("internal", 7, 500, "internal error");
    KINDS.iter().find(|row| row.kind == kind).unwrap_or(INTERNAL)
}

/// How a session is listed whose events cannot be read for a reason of this kind; `None` when the
/// reason is not in the session.
#[must_use]
pub fn state_of_unreadable(kind: &str) -> Option<SessionState> {
    match kind {
        "format_unsupported" => Some(SessionState::Newer),
        "corrupt" | "log_shrank" => Some(SessionState::Damaged),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use turnkeep_store::attachments::AttachmentError;
    use turnkeep_store::error::{
        AppendError, ColdError, CreateError, DeleteError, FlushError, ListError, OpenError,
        ReadError, RecoverError, RestoreError, SalvageError, StatError, StoreError, TrashError,
        VerifyError,
    };
    use turnkeep_turns::{ChangesError, MessageError, ReconcileError, TurnPageError};

    use super::{KINDS, of};
    use crate::export::ExportError;

    #[test]
    fn every_kind_appears_once_and_means_something() {
        let words: BTreeSet<_> = KINDS.iter().map(|row| row.kind).collect();
        assert_eq!(words.len(), KINDS.len());
        for row in KINDS {
            assert!((2..=7).contains(&row.exit_code), "{row:?}");
            assert!((400..600).contains(&row.status), "{row:?}");
            assert_eq!(of(row.kind), row);
        }
    }

    #[test]
    fn every_kind_the_store_can_name_is_here() {
        let enums = [
            StoreError::KINDS,
            CreateError::KINDS,
            OpenError::KINDS,
            StatError::KINDS,
            ListError::KINDS,
            ReadError::KINDS,
            AppendError::KINDS,
            FlushError::KINDS,
            DeleteError::KINDS,
            TrashError::KINDS,
            RestoreError::KINDS,
            ColdError::KINDS,
            VerifyError::KINDS,
            SalvageError::KINDS,
            RecoverError::KINDS,
        ];
        for kind in enums.concat() {
            assert_eq!(of(kind).kind, kind);
        }
        for kind in ["invalid_boundary", "open_turn"] {
            assert_eq!(of(kind).kind, kind);
        }
        for kind in [ExportError::KINDS, AttachmentError::KINDS].concat() {
            assert_eq!(of(kind).kind, kind);
        }
        assert_eq!(of("no such word").exit_code, 7);
    }

    #[test]
    fn every_kind_a_turn_page_can_name_is_here_and_means_the_same() {
        use TurnPageError as E;
        let named = [
            E::BadSession,
            E::BadTurns,
            E::BadScanLimit,
            E::InvalidCursor,
            E::SessionNotFound,
            E::MaxScanPages,
            E::MaxScanMessages,
            E::DuplicateCursor,
            E::EmptyPageWithCursor,
            E::MissingId,
            E::Upstream,
            E::Unavailable,
            E::TimedOut,
            E::Internal,
        ];
        for error in named {
            let row = of(error.kind());
            assert_eq!((row.kind, row.status), (error.kind(), error.status()));
            assert!(error.body().starts_with(&format!(r#"{{"error":"{}""#, row.text)), "{row:?}");
        }
    }

    #[test]
    fn every_kind_a_message_can_name_is_here_and_means_the_same() {
        use MessageError as E;
        let named = [
            E::BadSession,
            E::BadMessage,
            E::SessionNotFound,
            E::NotFound,
            E::Upstream,
            E::Unavailable,
            E::TimedOut,
            E::Internal,
        ];
        for error in named {
            let row = of(error.kind());
            assert_eq!((row.kind, row.status), (error.kind(), error.status()));
            assert!(error.body().starts_with(&format!(r#"{{"error":"{}""#, row.text)), "{row:?}");
        }
    }

    #[test]
    fn every_kind_that_reconciling_and_changes_can_name_is_here_and_means_the_same() {
        let reconciling = [
            ReconcileError::AnchorOrContinuation,
            ReconcileError::BadAnchor,
            ReconcileError::InvalidContinuation,
            ReconcileError::Rows(TurnPageError::Upstream),
        ];
        let reconciling = reconciling.map(|error| (error.kind(), error.status(), error.body()));
        let changes = [
            ChangesError::BadFile,
            ChangesError::FileNotFound,
            ChangesError::Message(MessageError::NotFound),
        ];
        let changes = changes.map(|error| (error.kind(), error.status(), error.body()));
        for (kind, status, body) in reconciling.into_iter().chain(changes) {
            let row = of(kind);
            assert_eq!((row.kind, row.status), (kind, status));
            assert!(body.starts_with(&format!(r#"{{"error":"{}""#, row.text)), "{row:?}");
        }
    }
}
