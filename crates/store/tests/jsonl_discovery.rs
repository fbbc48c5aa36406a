//! Finding sessions, and the encoding of a root, where not all of it can be read.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, io::ErrorKind};

use support::{
    append,
    disk::BOTH,
    faulty::{Effect, Op, stored},
    header, id, never, open, read,
};
use turnkeep_store::{Access, SessionStore};

#[tokio::test]
async fn a_project_that_cannot_be_read_hides_no_session_of_another() {
    for encoding in BOTH {
        // By name, one comes before the project of the session and one after it.
        for project in ["--a--", "--z--"] {
            for op in [Op::Stat, Op::ReadDir] {
                let (disk, faults, store) = stored(encoding).await;
                let closed = disk.root().join(project);
                fs::create_dir_all(closed.join("s")).unwrap();
                fs::create_dir_all(closed.join("t")).unwrap();
                let refused = Effect::Fail(ErrorKind::PermissionDenied);
                faults.inject(op, project, 0, 1000, refused);
                assert!(store.stat(&id("s"), &never()).await.unwrap().is_some());
                assert_eq!(read(&*open(&store, "s", Access::Read).await).await.len(), 3);
                append(&*open(&store, "s", Access::Write).await, 3, 1).await;

                // What is found nowhere may be there: neither absent nor free to be made.
                let error = store.stat(&id("t"), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "io");
                assert!(error.to_string().contains(project), "{error}");
                let error = store.create(header("t"), &never()).await.unwrap_err();
                assert_eq!(error.kind(), "io");
            }
        }
    }
}
