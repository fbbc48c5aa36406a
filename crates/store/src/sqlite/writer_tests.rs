use std::sync::Arc;

use rusqlite::ffi;
use turnkeep_log::SessionHeader;

use super::{Broken, Database, Setback, SqliteLog};
use crate::{contract::steps, shell::failure::WriteFailure, sqlite::SqliteOptions};

fn log(header: SessionHeader) -> (tempfile::TempDir, SqliteLog) {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("sessions.db"));
    let database = Arc::new(Database::open(&options).unwrap());
    (folder, SqliteLog::pending(database, header, true, 1 << 30))
}

fn error(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

#[test]
fn a_full_disk_leaves_a_batch_to_be_tried_again() {
    let (_folder, log) = log(steps::header("s"));
    for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY] {
        let setback = log.uncommitted(error(code));
        assert!(matches!(setback, Setback::Failed(WriteFailure::Log(_))), "{setback:?}");
    }
}

#[test]
fn a_commit_that_may_be_on_disk_or_not_ends_the_handle() {
    let (_folder, log) = log(steps::header("s"));
    for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR, ffi::SQLITE_CORRUPT] {
        let setback = log.uncommitted(error(code));
        assert!(matches!(setback, Setback::Broken(Broken::Poisoned(_))), "{setback:?}");
    }
}
