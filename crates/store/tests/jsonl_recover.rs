//! Saving what is left of damaged jsonl logs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{fs, io::ErrorKind, os::unix::fs::MetadataExt as _, path::Path, sync::Arc};

use support::{
    create,
    disk::{BOTH, Disk, lay, log_name, pack},
    event_of,
    faulty::{Effect, FaultyFs, Op},
    fixtures::{self, Fixture},
    id, never, open, read, seqs,
};
use turnkeep_log::{Event, SessionHeader};
use turnkeep_store::{
    Access, SessionStore,
    error::RecoverError,
    jsonl::Encoding,
    recover::{Branch, RecoverOptions, Recovery, recover},
    verify::Progress,
};

fn into(name: &str) -> RecoverOptions {
    RecoverOptions { into: id(name), branch: None, cwd: None }
}

async fn save(
    store: &dyn SessionStore,
    session: &str,
    options: &RecoverOptions,
) -> Result<Recovery, RecoverError> {
    recover(store, &id(session), options, &Progress::none(), &never()).await
}

async fn events_of(store: &dyn SessionStore, session: &str) -> Vec<Event> {
    read(&*open(store, session, Access::Write).await).await
}

fn rooted(fixture: &Fixture) -> (Disk, std::path::PathBuf) {
    let disk = Disk::new(fixture.encoding);
    let dir = disk.root().join(fixture.project()).join(&fixture.session);
    let log = dir.join(log_name(fixture.encoding));
    lay(&log, &fixture.bytes);
    (disk, log)
}

/// Everything about a file that reading does not change.
fn state(path: &Path) -> (Vec<u8>, u64, i64, i64, i64) {
    let stat = fs::metadata(path).unwrap();
    let bytes = fs::read(path).unwrap();
    (bytes, stat.ino(), stat.mtime(), stat.mtime_nsec(), stat.ctime_nsec())
}

fn line(seq: u64, writer: &str) -> String {
    let event = event_of("todo/write", seq, &format!(r#"{{"todos":["{writer}"]}}"#));
    event.text().to_string() + "\n"
}

fn lines(first: u64, count: u64, writer: &str) -> String {
    (first..first + count).map(|seq| line(seq, writer)).collect()
}

fn turn_end(seq: u64) -> String {
    let data = r#"{"turn":1,"reason":{"kind":"completed"}}"#;
    event_of("turn/end", seq, data).text().to_string() + "\n"
}

fn log_of(disk: &Disk, batches: &[&str]) -> Vec<u8> {
    let header = support::header("s").to_line() + "\n";
    let parts = [&[header.as_str()], batches].concat();
    parts.iter().flat_map(|part| disk.encode(part)).collect()
}

#[tokio::test]
async fn damaged_logs_yield_what_comes_before_the_damage_and_torn_ones_more() {
    // How many events are kept, and how many of them readers do not get to; or the error.
    type Saved = Result<(u64, u64), &'static str>;
    let intact = fixtures::named("golden", "packed-chunks/session.jsonl");
    let (disk, _) = rooted(&intact);
    let whole = events_of(&disk.store(), &intact.session).await;
    assert_eq!(whole.len(), 124);
    let expected: &[(&str, Saved)] = &[
        // The one event of the last frame, whose checksum lacks a byte.
        ("zstd-torn-1byte.zstd", Ok((124, 1))),
        ("zstd-torn-magic2.zstd", Ok((124, 0))),
        ("zstd-checksum-mid.zstd", Err("corrupt")),
        ("zstd-garbage-tail.zstd", Ok((124, 0))),
        ("zstd-zero-tail.zstd", Ok((124, 0))),
        ("zstd-complete-frame-torn-record.zstd", Ok((124, 0))),
        ("zstd-empty.zstd", Err("corrupt")),
        ("raw-torn.jsonl", Ok((124, 0))),
        ("raw-gap-committed.jsonl", Ok((124, 0))),
        ("raw-bad-json-tail.jsonl", Ok((124, 0))),
        // Before the event that readers refuse.
        ("raw-unknown-type.jsonl", Ok((124, 0))),
        ("raw-unknown-ignorable.jsonl", Ok((125, 0))),
        ("raw-extension-turn-end.jsonl", Ok((126, 0))),
        ("raw-open-turn.jsonl", Ok((126, 0))),
        ("raw-future-version.jsonl", Err("format_unsupported")),
        ("raw-retired-header-field.jsonl", Err("corrupt")),
        ("raw-legacy-fallback.jsonl", Ok((124, 0))),
        ("raw-header-delta.jsonl", Ok((124, 0))),
        ("raw-message-without-id.jsonl", Ok((124, 0))),
        // A line that is no record between two that follow each other: nothing is gone.
        ("raw-blank-line.jsonl", Ok((124, 122))),
    ];
    let fixtures = fixtures::all("damaged");
    assert_eq!(fixtures.len(), expected.len());
    for (name, expected) in expected {
        let fixture = fixtures.iter().find(|fixture| fixture.name.ends_with(name)).unwrap();
        let (disk, log) = rooted(fixture);
        let before = state(&log);
        let store = disk.store();
        let recovered = save(&store, &fixture.session, &into("saved")).await;
        assert_eq!(state(&log), before, "{name}: untouched");
        assert_eq!(support::disk::names(log.parent().unwrap()).len(), 1, "{name}: nothing beside");
        match (recovered, expected) {
            (Ok(recovery), Ok((kept, salvaged))) => {
                assert_eq!((recovery.kept, recovery.salvaged), (*kept, *salvaged), "{name}");
                let events = events_of(&disk.store(), "saved").await;
                assert_eq!(events.len() as u64, *kept, "{name}");
                assert_eq!(events[..124], whole[..], "{name}");
                assert_eq!(recovery.stopped.is_some(), recovery.left > 0, "{name} {recovery:?}");
                let found = store.verify(&id("saved"), &Progress::none(), &never()).await;
                assert!(found.unwrap().is_intact(), "{name}");
            }
            (Err(error), Err(kind)) => {
                assert_eq!(error.kind(), *kind, "{name}: {error}");
                let stat = disk.store().stat(&id("saved"), &never()).await.unwrap();
                assert_eq!(stat, None, "{name}: nothing was made");
            }
            (got, _) => panic!("{name}: {got:?}"),
        }
    }
}

#[tokio::test]
async fn a_torn_frame_yields_its_whole_lines_at_every_cut() {
    let batch = lines(2, 40, "some text to make a frame of several lines");
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let prefix = log_of(&disk, &[&lines(0, 2, "a")]);
        let whole = log_of(&disk, &[&lines(0, 2, "a"), &batch]);
        let mut most = 0;
        for cut in (prefix.len()..whole.len()).step_by(whole.len() / 60 + 1) {
            let disk = Disk::new(encoding);
            disk.lay("s", &whole[..cut]);
            let store = disk.store();
            let recovery = save(&store, "s", &into("saved")).await.unwrap();
            let events = events_of(&disk.store(), "saved").await;
            assert_eq!(seqs(&events), (0..recovery.kept).collect::<Vec<_>>());
            let text: String = events.iter().map(|event| event.text().to_string() + "\n").collect();
            assert!((lines(0, 2, "a") + &batch).starts_with(&text));
            // What readers take is kept in any case.
            assert!(recovery.kept >= recovery.verification.events);
            most = most.max(recovery.kept);
        }
        assert!(most > 30, "{encoding:?}: {most}");
    }
    // Without the checksum alone nothing is missing.
    let disk = Disk::new(Encoding::Zstd);
    let whole = log_of(&disk, &[&lines(0, 2, "a"), &batch]);
    disk.lay("s", &whole[..whole.len() - 4]);
    let recovery = save(&disk.store(), "s", &into("saved")).await.unwrap();
    assert_eq!((recovery.kept, recovery.salvaged, recovery.left), (42, 40, 0));
    assert_eq!(recovery.stopped, None);
}

#[tokio::test]
async fn nothing_is_renumbered_across_a_hole() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        disk.lay("s", &log_of(&disk, &[&lines(0, 3, "a"), &lines(4, 3, "a"), &turn_end(7)]));
        let recovery = save(&disk.store(), "s", &into("saved")).await.unwrap();
        assert_eq!((recovery.kept, recovery.left), (3, 4));
        assert!(recovery.stopped.unwrap().contains("event 3 is gone"));
        assert_eq!(seqs(&events_of(&disk.store(), "saved").await), [0, 1, 2]);
    }
}

#[tokio::test]
async fn damage_that_no_event_was_lost_to_loses_none() {
    let disk = Disk::new(Encoding::Zstd);
    // A frame that was never acknowledged, and a writer that did not see it.
    let torn = pack(&lines(3, 2, "never acknowledged"));
    let log = [
        log_of(&disk, &[&lines(0, 3, "a")]),
        torn[..torn.len() - 9].to_vec(),
        pack(&lines(3, 4, "b")),
        pack(&turn_end(7)),
    ]
    .concat();
    disk.lay("s", &log);
    let recovery = save(&disk.store(), "s", &into("saved")).await.unwrap();
    assert_eq!(recovery.kept, 8);
    let events = events_of(&disk.store(), "saved").await;
    assert!(events[3].text().contains("\"b\""));
}

#[tokio::test]
async fn either_branch_of_a_fork_can_be_saved() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let batches = [
            &*lines(0, 4, "a"),
            &lines(4, 3, "a"),
            &lines(4, 2, "b"),
            &lines(7, 1, "a"),
            &lines(6, 2, "b"),
            &turn_end(8),
        ];
        disk.lay("s", &log_of(&disk, &batches));
        let before = state(&disk.log("s"));
        let store = disk.store();
        let refused = save(&store, "s", &into("none")).await.unwrap_err();
        assert_eq!(refused.kind(), "forked");
        assert!(refused.to_string().contains("--branch first"));
        for (branch, count, writer) in [(Branch::First, 8, "a"), (Branch::Last, 9, "b")] {
            let options = RecoverOptions { branch: Some(branch), ..into(writer) };
            let recovery = save(&store, "s", &options).await.unwrap();
            assert_eq!((recovery.kept, recovery.kept + recovery.left), (count, 13));
            let events = events_of(&disk.store(), writer).await;
            assert_eq!(seqs(&events), (0..count).collect::<Vec<_>>());
            let of = |seq: usize| events[seq].text().contains(&format!("[\"{writer}\"]"));
            assert!((4..8).all(of), "{events:?}");
        }
        assert_eq!(state(&disk.log("s")), before);
    }
}

#[tokio::test]
async fn what_is_there_twice_needs_no_choice() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let batches = [&*lines(0, 4, "a"), &lines(2, 2, "a"), &lines(4, 1, "a"), &turn_end(5)];
        disk.lay("s", &log_of(&disk, &batches));
        let recovery = save(&disk.store(), "s", &into("saved")).await.unwrap();
        assert_eq!(recovery.kept, 6);
        assert_eq!(seqs(&events_of(&disk.store(), "saved").await), [0, 1, 2, 3, 4, 5]);
    }
}

#[tokio::test]
async fn the_header_goes_along() {
    let disk = Disk::new(Encoding::Zstd);
    let header = SessionHeader {
        parent_session: Some("parent".to_owned()),
        seed_length: Some(5),
        agent_preset: Some("preset".to_owned()),
        ..support::header("s")
    };
    let log = [pack(&(header.to_line() + "\n")), pack(&lines(0, 3, "a")), b"garbage".to_vec()];
    disk.lay("s", &log.concat());
    let store = disk.store();
    save(&store, "s", &into("saved")).await.unwrap();
    let saved = open(&store, "saved", Access::Read).await.header().clone();
    // No more can have been inherited than there is.
    assert_eq!(saved, SessionHeader { id: id("saved"), seed_length: Some(3), ..header });
}

#[tokio::test]
async fn a_lost_header_must_be_told() {
    for encoding in BOTH {
        let disk = Disk::new(encoding);
        let log = [disk.encode("no header\n"), disk.encode(&lines(0, 3, "a"))].concat();
        disk.lay("s", &log);
        let store = disk.store();
        let refused = save(&store, "s", &into("saved")).await.unwrap_err();
        assert_eq!(refused.kind(), "corrupt");
        assert!(refused.to_string().contains("--cwd"));
        assert_eq!(store.stat(&id("saved"), &never()).await.unwrap(), None);
        let options = RecoverOptions { cwd: Some("/work/proj".to_owned()), ..into("saved") };
        let recovery = save(&store, "s", &options).await.unwrap();
        assert!(recovery.header_lost);
        let saved = open(&store, "saved", Access::Read).await;
        assert_eq!(saved.header().cwd.as_deref(), Some("/work/proj"));
        assert_eq!(saved.header().created_at, 1_700_000_000_000);
        assert_eq!(read(&*saved).await.len(), 3);
    }
}

#[tokio::test]
async fn an_intact_session_is_copied() {
    for fixture in fixtures::all("golden") {
        let (disk, log) = rooted(&fixture);
        let before = state(&log);
        let store = disk.store();
        let recovery = save(&store, &fixture.session, &into("copy")).await.unwrap();
        assert_eq!((recovery.left, recovery.salvaged, recovery.stopped), (0, 0, None));
        let events = events_of(&disk.store(), "copy").await;
        assert_eq!(events, events_of(&disk.store(), &fixture.session).await);
        assert_eq!(state(&log).0, before.0);
    }
}

#[tokio::test]
async fn ids_that_cannot_be_used_are_refused() {
    let disk = Disk::new(Encoding::Zstd);
    let store = disk.store();
    support::store_session(&store, "s", 3).await;
    support::store_session(&store, "there", 1).await;
    for (session, to, kind) in [
        ("s", "there", "already_exists"),
        ("s", "s", "already_exists"),
        ("no", "saved", "not_found"),
    ] {
        assert_eq!(save(&store, session, &into(to)).await.unwrap_err().kind(), kind);
    }
    let pending = create(&store, "pending").await;
    assert_eq!(save(&store, "pending", &into("x")).await.unwrap_err().kind(), "not_found");
    assert_eq!(save(&store, "s", &into("pending")).await.unwrap_err().kind(), "already_exists");
    drop(pending);
    let called_off = support::cancelled();
    let (from, to, progress) = (id("s"), into("saved"), Progress::none());
    let cancelled = recover(&store, &from, &to, &progress, &called_off);
    assert_eq!(cancelled.await.unwrap_err().kind(), "cancelled");
    assert_eq!(store.stat(&id("saved"), &never()).await.unwrap(), None);
}

/// A log that is stored in one piece is there whole or not at all; of a larger one it is told how
/// far it got.
#[tokio::test]
async fn what_cannot_be_stored_to_its_end_is_told() {
    let disk = Disk::new(Encoding::Zstd);
    let large = |seq| event_of("todo/write", seq, &format!("\"{}\"", "x".repeat(9 << 20)));
    let store = disk.store();
    for (session, count) in [("large", 5), ("small", 2)] {
        let handle = create(&store, session).await;
        for seq in 0..count {
            handle.append(vec![large(seq)], &never()).await.unwrap();
        }
        handle.close().await.unwrap();
    }

    // The first write of all, and the one that follows it.
    let faults = FaultyFs::default();
    let store = disk.store_on(Arc::new(faults.clone()));
    faults.fail(Op::Append, "tmp", ErrorKind::StorageFull);
    let failed = save(&store, "small", &into("saved")).await.unwrap_err();
    assert_eq!(failed.kind(), "io", "{failed}");
    faults.assert_spent();
    assert_eq!(disk.store().stat(&id("saved"), &never()).await.unwrap(), None);

    let second = Effect::Fail(ErrorKind::StorageFull);
    faults.inject(Op::Append, "saved/session.jsonl.zstd", 1, 1, second);
    let failed = save(&store, "large", &into("saved")).await.unwrap_err();
    assert_eq!(failed.kind(), "half_saved", "{failed}");
    assert!(failed.to_string().contains("\"saved\" holds only the first 4 events"), "{failed}");
    assert_eq!(events_of(&disk.store(), "saved").await.len(), 4);

    let recovery = save(&disk.store(), "large", &into("whole")).await.unwrap();
    assert_eq!(recovery.kept, 5);
}
