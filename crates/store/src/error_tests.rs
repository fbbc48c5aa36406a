use std::{io, path::PathBuf};

use turnkeep_log::{Seq, SessionId};

use super::{
    AlreadyExists, AlreadyOwned, AppendError, BufferFull, Cancelled, CloseError, Corrupt,
    CreateError, DeleteError, FlushError, FlushStoreError, FormatUnsupported, HandleClosed,
    IoFailure, ListError, LogShrank, NotFound, NotInTrash, NotSerializable, OpenError,
    OwnershipLost, Poisoned, PublishError, ReadError, ReadOnly, RestoreError, SeqMismatch,
    StatError, StoreError, TrashError, VerifyError,
};

fn id() -> SessionId {
    SessionId::new("s").unwrap()
}

fn corrupt(path: Option<PathBuf>) -> Corrupt {
    let message = "session \"s\": stored log is corrupt: seq gap".to_owned();
    Corrupt { id: id(), message, path }
}

fn unsupported(path: Option<PathBuf>) -> FormatUnsupported {
    let message = "session \"s\" uses log format v7".to_owned();
    FormatUnsupported { id: id(), message, path }
}

/// Programs match on the kind, people on the words: neither changes by accident.
#[test]
fn every_failure_has_its_kind_and_its_words() {
    let appended: [(AppendError, &str, &str); 10] = [
        (
            ReadOnly { id: id(), operation: "append" }.into(),
            "read_only",
            "session \"s\": append is not available on a read handle",
        ),
        (
            HandleClosed { id: id(), operation: "append" }.into(),
            "handle_closed",
            "session \"s\": append on a closed handle",
        ),
        (AlreadyExists { id: id() }.into(), "already_exists", "session \"s\" already exists"),
        (
            AlreadyOwned { id: id() }.into(),
            "already_owned",
            "session \"s\" is already owned by an active write handle",
        ),
        (
            OwnershipLost { id: id(), evidence: "it grew".to_owned() }.into(),
            "ownership_lost",
            "session \"s\": write ownership was lost; close this handle and reopen (it grew)",
        ),
        (
            NotSerializable { id: id(), what: "an event".to_owned(), problem: "why".to_owned() }
                .into(),
            "not_serializable",
            "session \"s\": an event is not losslessly JSON-serializable: why",
        ),
        (
            SeqMismatch { id: id(), expected: Seq(4), index: 1, got: Seq(9) }.into(),
            "seq_mismatch",
            "append seq mismatch for \"s\": expected 4 at index 1, got 9",
        ),
        (
            Poisoned { id: id(), cause: "no sync".to_owned() }.into(),
            "poisoned",
            "session \"s\": an earlier write could not be confirmed (no sync)",
        ),
        (Cancelled { operation: "append" }.into(), "cancelled", "append was cancelled before"),
        (
            IoFailure { context: "cannot write".to_owned(), source: io::Error::other("full") }
                .into(),
            "io",
            "cannot write: full",
        ),
    ];
    for (error, kind, words) in appended {
        assert_eq!(error.kind(), kind);
        assert!(AppendError::KINDS.contains(&kind));
        let text = error.to_string();
        assert!(text.starts_with(words), "{text}");
        // A flush meets what it stores first, and says the same of it.
        let flushed = FlushError::from(error);
        assert_eq!((flushed.kind(), flushed.to_string()), (kind, text));
    }
    let opened: [(OpenError, &str, &str); 2] = [
        (NotFound { id: id() }.into(), "not_found", "session \"s\" not found"),
        (AlreadyOwned { id: id() }.into(), "already_owned", "session \"s\" is already owned"),
    ];
    for (error, kind, words) in opened {
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().starts_with(words), "{error}");
    }
    let shrank = ReadError::from(LogShrank { id: id(), found: 3, observed: 7 });
    assert_eq!(shrank.kind(), "log_shrank");
    let words = "session \"s\": stored log shrank below a previously observed prefix (3 < 7)";
    assert!(shrank.to_string().starts_with(words), "{shrank}");
    let gone = RestoreError::from(NotInTrash { id: id() });
    assert_eq!(gone.kind(), "not_found");
    assert!(gone.to_string().starts_with("session \"s\" not found in the trash"), "{gone}");
}

#[test]
fn a_refusal_names_the_log_where_there_is_one_and_nothing_where_there_is_none() {
    let path = || Some(PathBuf::from("/srv/s/session.jsonl"));
    let texts: [(OpenError, &str, &str); 4] = [
        (
            corrupt(path()).into(),
            "corrupt",
            "session \"s\": stored log is corrupt: seq gap (raw log: /srv/s/session.jsonl)",
        ),
        (corrupt(None).into(), "corrupt", "session \"s\": stored log is corrupt: seq gap"),
        (
            unsupported(path()).into(),
            "format_unsupported",
            "session \"s\" uses log format v7 (raw log: /srv/s/session.jsonl)",
        ),
        (unsupported(None).into(), "format_unsupported", "session \"s\" uses log format v7"),
    ];
    for (error, kind, text) in texts {
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
    }
}

/// A failure keeps what caused it within reach.
#[test]
fn a_failure_of_the_system_is_the_source_of_the_error() {
    use std::error::Error as _;
    let failure = IoFailure {
        context: "cannot read".to_owned(),
        source: io::Error::from(io::ErrorKind::PermissionDenied),
    };
    let source = failure.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn a_full_buffer_has_the_kind_of_what_keeps_it_full() {
    let source = AppendError::from(Poisoned { id: id(), cause: "no sync".to_owned() });
    let full = PublishError::from(BufferFull { id: id(), source });
    assert_eq!(full.kind(), "poisoned");
    assert!(full.to_string().starts_with("session \"s\": the event was not taken"), "{full}");
    assert!(full.to_string().contains("could not be confirmed (no sync)"), "{full}");
}

#[test]
fn a_failed_flush_of_a_store_tells_every_session() {
    let failure = |name: &str| {
        let id = SessionId::new(name).unwrap();
        (id.clone(), FlushError::from(AlreadyExists { id }))
    };
    let error = FlushStoreError { failures: vec![failure("a"), failure("b")] };
    let text = error.to_string();
    assert!(text.starts_with("session store flush failed for 2 of the open sessions: "), "{text}");
    assert!(text.contains("session \"a\"") && text.contains("session \"b\""), "{text}");
    let closed = CloseError { id: id(), kind: "io", message: "full".to_owned(), unstored: None };
    assert_eq!(closed.to_string(), "session \"s\" was closed, but not cleanly: full");
}

/// The words are a closed set: a program that knows them all knows every error.
#[test]
fn the_kinds_of_all_operations_are_those_that_are_documented() {
    let documented = [
        "not_found",
        "already_exists",
        "already_owned",
        "read_only",
        "handle_closed",
        "ownership_lost",
        "format_unsupported",
        "corrupt",
        "not_serializable",
        "seq_mismatch",
        "log_shrank",
        "poisoned",
        "cancelled",
        "io",
        "bad_cursor",
        "usage",
    ];
    let operations = [
        StoreError::KINDS,
        CreateError::KINDS,
        OpenError::KINDS,
        StatError::KINDS,
        ListError::KINDS,
        ReadError::KINDS,
        AppendError::KINDS,
        FlushError::KINDS,
        PublishError::KINDS,
        DeleteError::KINDS,
        TrashError::KINDS,
        RestoreError::KINDS,
        VerifyError::KINDS,
    ];
    let met: std::collections::BTreeSet<_> = operations.concat().into_iter().collect();
    assert_eq!(met, documented.into_iter().collect());
}
