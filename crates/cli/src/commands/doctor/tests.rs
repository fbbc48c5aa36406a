use std::time::Duration;

use super::{
    place::{Room, clock_at, file_system_kind},
    probe::{self, sync_time},
    report::Status,
    settings::shown,
};
use crate::config::Settings;

#[test]
fn file_systems_are_told_apart() {
    let cases = [
        (0xef53, "ext4", Status::Ok),
        (0x6969, "NFS", Status::Note),
        (0x0102_1994, "tmpfs", Status::Note),
        (0x794c_7630, "overlay", Status::Note),
        (0x1234, "not known", Status::Ok),
    ];
    for (magic, name, status) in cases {
        let finding = file_system_kind(magic);
        assert!(finding.message.contains(name), "{finding:?}");
        assert_eq!(finding.status, status, "{finding:?}");
    }
    let advice = file_system_kind(0x6969).advice.unwrap();
    assert!(advice.contains("flock(2)"), "{advice}");
}

#[test]
fn a_full_disk_needs_doing() {
    let status = |bytes, files| Room { bytes, files }.finding().status;
    assert_eq!(status(50_000_000, None), Status::Todo);
    assert_eq!(status(500_000_000, Some(7)), Status::Note);
    assert_eq!(status(5_000_000_000, Some(7)), Status::Ok);
    assert_eq!(status(5_000_000_000, Some(0)), Status::Todo);
}

#[test]
fn a_clock_that_was_never_set_is_noticed() {
    assert_eq!(clock_at(Duration::from_secs(86_400)).status, Status::Todo);
    assert_eq!(clock_at(Duration::from_secs(1_800_000_000)).status, Status::Ok);
}

#[test]
fn a_sync_that_takes_no_time_is_noticed() {
    assert_eq!(sync_time(Duration::from_micros(1)).status, Status::Note);
    assert_eq!(sync_time(Duration::from_micros(400)).status, Status::Ok);
}

#[test]
fn a_probe_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let findings = probe::run(dir.path());
    assert_eq!(findings.len(), 4, "{findings:?}");
    assert!(findings.iter().all(|finding| finding.status != Status::Todo), "{findings:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let nowhere = probe::run(&dir.path().join("nowhere"));
    assert_eq!(nowhere[0].status, Status::Todo);
}

#[test]
fn an_address_is_shown_without_its_password() {
    let upstream = Some("http://me:secret@host:4096".to_owned());
    let shown = shown(&Settings { upstream, ..Settings::default() });
    assert_eq!(shown["upstream"], "http://…@host:4096");
    assert!(shown["store"].is_null());
}
