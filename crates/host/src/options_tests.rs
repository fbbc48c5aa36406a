use std::{path::PathBuf, time::Duration};

use turnkeep_turns::reconcile::Budgets;

use super::HostOptions;

fn with(variables: &[(&str, &str)]) -> HostOptions {
    HostOptions::default().with_environment(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn the_scan_limit_is_taken_only_when_a_client_could_ask_for_it() {
    let scan_limit = |value| with(&[("OPENCHAMBER_SESSION_TURN_SCAN_LIMIT", value)]).scan_limit;
    assert_eq!(scan_limit("40"), 40);
    for ignored in ["", "9", "201", "4e1", "40.0", "forty"] {
        assert_eq!(scan_limit(ignored), 100, "{ignored}");
    }
    assert_eq!(with(&[]).scan_limit, 100);
}

#[test]
fn compression_can_be_turned_off() {
    assert!(with(&[]).compress);
    assert!(with(&[("OPENCHAMBER_RUNTIME", "web")]).compress);
    assert!(!with(&[("OPENCHAMBER_RUNTIME", "desktop")]).compress);
    assert!(!with(&[("OPENCHAMBER_SKIP_API_COMPRESSION", "1")]).compress);
    assert!(with(&[("OPENCHAMBER_SKIP_API_COMPRESSION", "false")]).compress);
}

#[test]
fn a_round_takes_its_budgets_and_its_runtime_from_the_environment() {
    let none = with(&[("OPENCHAMBER_RUNTIME", "")]);
    assert_eq!((none.runtime.as_str(), none.reconcile), ("web", Budgets::default()));
    let some = with(&[
        ("OPENCHAMBER_RUNTIME", "vscode"),
        ("OPENCHAMBER_SESSION_RECONCILE_PAGE_RECORDS", "500"),
        ("OPENCHAMBER_SESSION_RECONCILE_PAGE_BYTES", "1023"),
        ("OPENCHAMBER_SESSION_RECONCILE_TOTAL_PAGES", " 7 "),
        ("OPENCHAMBER_SESSION_RECONCILE_TOTAL_BYTES", "1073741825"),
    ]);
    let expected = Budgets { records: 500, pages: 7, ..Budgets::default() };
    assert_eq!((some.runtime.as_str(), some.reconcile), ("vscode", expected));
}

#[test]
fn the_transcript_cache_is_off_unless_it_is_named_and_the_option_beats_the_environment() {
    const NAME: &str = "OPENCHAMBER_TRANSCRIPT_CACHE_DB_PATH";
    let named = |option: Option<&str>, variable: Option<&str>| {
        let transcript_cache = option.map(PathBuf::from);
        let options = HostOptions { transcript_cache, ..HostOptions::default() };
        let options =
            options.with_environment(|name| variable.filter(|_| name == NAME).map(str::to_owned));
        options.transcript_cache
    };
    let path = |path: &str| Some(PathBuf::from(path));
    assert_eq!(named(None, None), None);
    for blank in ["", " \t"] {
        assert_eq!(named(Some(blank), None), None);
        assert_eq!(named(None, Some(blank)), None);
        assert_eq!(named(Some(blank), Some("/env.sqlite")), path("/env.sqlite"));
    }
    assert_eq!(named(Some("/set.sqlite"), Some("/env.sqlite")), path("/set.sqlite"));
    // Even one that will not do.
    assert_eq!(named(Some("/set.db"), Some("/env.sqlite")), path("/set.db"));
}

/// Clients have time-outs and buffers of their own that these fit.
#[test]
fn times_and_sizes_are_those_that_clients_count_on() {
    let options = HostOptions::default();
    let seconds = Duration::from_secs;
    assert_eq!(options.page_deadline, seconds(45));
    assert_eq!((options.replay_buffer_bytes, options.client_queue_bytes), (32 << 20, 8 << 20));
    let timing = &options.event_timing;
    assert_eq!((timing.connect, timing.stall), (seconds(15), seconds(20)));
    assert_eq!(timing.retry, Duration::from_millis(250));
    assert_eq!((timing.heartbeat, timing.socket_heartbeat), (seconds(10), seconds(15)));
    assert_eq!((options.proxy.hold, options.proxy.head_deadline), (seconds(6), seconds(240)));
    assert_eq!(options.reconcile.total_bytes, 64 << 20);
}
