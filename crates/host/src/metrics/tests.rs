use std::time::Duration;

use prometheus_client::registry::Unit;

use super::{
    Metrics, Reading, Value,
    process::{open_files_limit, resident_bytes},
    requests::Outcome,
};

#[test]
fn two_hosts_count_by_themselves() {
    let (one, other) = (Metrics::default(), Metrics::default());
    let outcome = Outcome { route: "turn_page", method: "read", status: "4xx" };
    one.requests.answered(outcome, Duration::from_millis(3), Some("invalid_cursor"));
    let counted = r#"turnkeep_http_failures_total{route="turn_page",kind="invalid_cursor"} 1"#;
    assert!(one.render(Vec::new()).contains(counted), "{}", one.render(Vec::new()));
    assert!(!other.render(Vec::new()).contains("invalid_cursor"));
}

#[test]
fn what_is_under_way_is_counted_until_it_ends() {
    let metrics = Metrics::default();
    let in_flight = |number: u8| {
        let series = format!("turnkeep_http_requests_in_flight{{route=\"events\"}} {number}\n");
        let text = metrics.render(Vec::new());
        assert!(text.contains(&series), "{text}");
    };
    let first = metrics.requests.begin("events");
    let second = metrics.requests.begin("events");
    second.sent(7);
    in_flight(2);
    drop(first);
    in_flight(1);
    drop(second);
    in_flight(0);
    let sent = "turnkeep_http_response_body_bytes_total{route=\"events\"} 7\n";
    assert!(metrics.render(Vec::new()).contains(sent));
}

#[test]
fn readings_are_spelled_as_what_they_are() {
    let readings = vec![
        Reading { name: "a", help: "A", unit: None, value: Value::Count(3) },
        Reading { name: "b", help: "B", unit: Some(Unit::Bytes), value: Value::State(1.5) },
        Reading { name: "c", help: "C", unit: None, value: Value::States("kind", vec![("x", 2)]) },
    ];
    let text = Metrics::default().render(readings);
    for line in [
        "# HELP turnkeep_a A.\n# TYPE turnkeep_a counter\nturnkeep_a_total 3\n",
        "# TYPE turnkeep_b_bytes gauge\n# UNIT turnkeep_b_bytes bytes\nturnkeep_b_bytes 1.5\n",
        "# TYPE turnkeep_c gauge\nturnkeep_c{kind=\"x\"} 2\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_system_is_read_as_it_spells() {
    assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t   2048 kB\nRssAnon: 1 kB\n"), Some(2_097_152.0));
    assert_eq!(resident_bytes("VmRSS:\t many kB\n"), None);
    let limits = "Limit   Soft Limit  Hard Limit  Units\nMax open files   1024   4096   files\n";
    assert_eq!(open_files_limit(limits), Some(1024.0));
    assert_eq!(open_files_limit("Max open files  unlimited unlimited files\n"), None);
}
