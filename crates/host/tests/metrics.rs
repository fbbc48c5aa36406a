//! What a host counts, as a monitoring system reads it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

mod support;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use support::{
    both::Served,
    host::RunningHost,
    logs::Logs,
    store::{TestStore, turns},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use turnkeep_host::HostOptions;
use turnkeep_store::SessionStore;

/// A scrape, read as a monitoring system does.
#[derive(Debug, Default)]
struct Scrape {
    /// By family: type and help.
    families: BTreeMap<String, (String, String)>,
    /// By name and labels, as spelled.
    values: BTreeMap<String, f64>,
}

impl Scrape {
    /// Reads the text, and holds it to its format on the way.
    fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut current = String::new();
        let lines = text.strip_suffix("# EOF\n").expect("it says where it ends").lines();
        for line in lines {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(help.ends_with('.') && !help.ends_with(".."), "{line}");
                name.clone_into(&mut current);
                let known = scrape.families.insert(current.clone(), (String::new(), help.into()));
                assert_eq!(known, None, "{name} comes once");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current, "a type belongs to the help before it");
                kind.clone_into(&mut scrape.families.get_mut(name).unwrap().0);
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').unwrap();
                assert!(name == current && name.ends_with(unit), "{line}");
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                let suffix = name.strip_prefix(&current).expect("a sample of its family");
                let suffixes: &[&str] = match scrape.families[&current].0.as_str() {
                    "counter" => &["_total"],
                    "histogram" => &["_bucket", "_count", "_sum"],
                    "info" => &["_info"],
                    "gauge" => &[""],
                    other => panic!("{other} is not a type"),
                };
                assert!(suffixes.contains(&suffix), "{line}");
                let value = value.parse().unwrap();
                assert_eq!(scrape.values.insert(series.into(), value), None, "{series} twice");
            }
        }
        scrape
    }

    async fn of(host: &RunningHost) -> Self {
        let answer = host.get("/metrics").await;
        assert_eq!(answer.status, 200);
        let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert_eq!(answer.header("content-type"), Some(media_type));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        Self::parse(&answer.body)
    }

    fn kind(&self, family: &str) -> &str {
        &self.families.get(family).unwrap_or_else(|| panic!("no {family}")).0
    }

    fn value(&self, series: &str) -> f64 {
        let value = self.values.get(series).copied();
        value.unwrap_or_else(|| panic!("no {series} in {:#?}", self.values))
    }

    /// Every value of every label but the bounds of buckets.
    fn labels(&self) -> BTreeSet<(String, String)> {
        let mut labels = BTreeSet::new();
        for series in self.values.keys() {
            let Some((_, rest)) = series.split_once('{') else { continue };
            for label in rest.strip_suffix('}').unwrap().split(',') {
                let (name, value) = label.split_once('=').unwrap();
                if name != "le" {
                    labels.insert((name.into(), value.trim_matches('"').into()));
                }
            }
        }
        labels
    }
}

#[tokio::test]
async fn requests_pages_and_rounds_are_counted_by_source() {
    for served in Served::both(5, |_| {}).await {
        let source = if served.store().is_some() { "store" } else { "upstream" };
        let (host, id) = (&served.host, served.session);
        host.page(id, 2, None).await;
        let anchor = served.id(3);
        host.round(id, &anchor).await;
        let page = format!("/api/openchamber/sessions/{id}/messages");
        let refused = host.get(&format!("{page}?before=oc1.canary-4711")).await;
        assert_eq!(refused.status, 400);
        host.reconcile(id, "anchor", "msg_canary-4711").await;

        let scrape = Scrape::of(host).await;
        for (name, kind) in [
            ("turnkeep_http_request_duration_seconds", "histogram"),
            ("turnkeep_http_requests_in_flight", "gauge"),
            ("turnkeep_http_response_body_bytes", "counter"),
            ("turnkeep_http_failures", "counter"),
            ("turnkeep_turn_page_rows", "histogram"),
            ("turnkeep_turn_page_size_bytes", "histogram"),
            ("turnkeep_reconcile_resets", "counter"),
            ("turnkeep_upstream_requests", "counter"),
            ("turnkeep_build", "info"),
            ("process_start_time_seconds", "gauge"),
        ] {
            assert_eq!(scrape.kind(name), kind, "{name}");
        }
        let count = |route: &str, status: &str| {
            let labels = format!("route=\"{route}\",method=\"read\",status=\"{status}\"");
            scrape.value(&format!("turnkeep_http_request_duration_seconds_count{{{labels}}}"))
        };
        assert!((count("turn_page", "2xx") - 1.0).abs() < f64::EPSILON);
        assert!((count("turn_page", "4xx") - 1.0).abs() < f64::EPSILON);
        assert!((count("reconcile", "2xx") - 2.0).abs() < f64::EPSILON);
        for (series, expected) in [
            ("http_failures_total{route=\"turn_page\",kind=\"invalid_cursor\"}".to_owned(), 1.0),
            ("http_requests_in_flight{route=\"turn_page\"}".to_owned(), 0.0),
            ("http_requests_in_flight{route=\"metrics\"}".to_owned(), 1.0),
            (format!("turn_page_rows_count{{source=\"{source}\"}}"), 1.0),
            (format!("turn_page_rows_sum{{source=\"{source}\"}}"), 15.0),
            (format!("turn_page_size_bytes_count{{source=\"{source}\"}}"), 1.0),
            (format!("reconcile_rounds_total{{source=\"{source}\"}}"), 2.0),
            (format!("reconcile_resets_total{{source=\"{source}\"}}"), 1.0),
        ] {
            assert!(
                (scrape.value(&format!("turnkeep_{series}")) - expected).abs() < 1e-9,
                "{series}"
            );
        }
        if source == "store" {
            assert!(scrape.value("turnkeep_store_open_sessions") >= 1.0);
            assert!(scrape.value("turnkeep_fold_cache_bytes") > 0.0);
        } else {
            assert!(scrape.value("turnkeep_upstream_requests_total") >= 3.0);
            assert!(scrape.value("turnkeep_upstream_body_bytes_total") > 100.0);
            assert!(scrape.value("turnkeep_upstream_probes_total{outcome=\"answered\"}") >= 1.0);
            assert!(scrape.value("turnkeep_upstream_pages_total{purpose=\"scan\"}") >= 2.0);
        }
    }
}

#[tokio::test]
async fn what_clients_send_becomes_no_label() {
    let store = TestStore::new();
    store.add_made("canary-4711", &turns(3)).await;
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    let host = RunningHost::start(options).await;
    for number in 0..30 {
        for target in [
            format!(
                "/api/openchamber/sessions/canary-4711/messages?directory=/canary-4711/{number}"
            ),
            format!("/api/openchamber/sessions/canary-4711-{number}/messages"),
            format!("/api/session/canary-4711/message/canary-4711-{number}"),
            format!("/canary-4711/{number}"),
            format!("/api/canary-4711/{number}"),
            format!("/auth/canary-4711-{number}"),
            format!("/api/openchamber/transcript-cache/canary-4711-{number}"),
        ] {
            host.get(&target).await;
        }
        let method = format!("CANARY4711{number}");
        host.request(&method, "/api/canary-4711").send().await.unwrap();
    }
    let scrape = Scrape::of(&host).await;
    let labels = scrape.labels();
    for (name, value) in &labels {
        let word = value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let version = name == "version";
        assert!((word && value.len() < 25) || version, "{name}={value}");
        assert!(!value.contains("4711"), "{name}={value}");
    }
    let names: BTreeSet<_> = labels.iter().map(|(name, _)| name.as_str()).collect();
    let known = ["kind", "method", "outcome", "purpose", "route", "source", "status", "version"];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
}

#[tokio::test]
async fn what_is_known_of_the_process_is_plausible() {
    let host = RunningHost::start(HostOptions::default()).await;
    let scrape = Scrape::of(&host).await;
    assert!(scrape.value("process_start_time_seconds") > 1.6e9);
    let version = env!("CARGO_PKG_VERSION");
    let build = scrape.value(&format!("turnkeep_build_info{{version=\"{version}\"}}"));
    assert!((build - 1.0).abs() < f64::EPSILON);
    if cfg!(target_os = "linux") {
        assert!(scrape.value("process_resident_memory_bytes") > 1e6);
        assert!(scrape.value("process_open_fds") > 3.0);
        assert!(scrape.value("process_max_fds") >= scrape.value("process_open_fds"));
    }
}

/// Scrapes until a number is what it should be.
async fn eventually(host: &RunningHost, series: &str, expected: f64) {
    for _ in 0..1000 {
        if (Scrape::of(host).await.value(series) - expected).abs() < f64::EPSILON {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{series} is never {expected}");
}

#[tokio::test]
async fn a_stream_is_under_way_for_as_long_as_it_lasts() {
    let logs = Logs::start();
    let store = TestStore::new();
    let mut options = HostOptions::default();
    options.store = Some(Arc::clone(&store.store) as Arc<dyn SessionStore>);
    let host = RunningHost::start(options).await;
    let origin = host.origin();
    let address = origin.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /api/global/event HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    let id = answer.split("x-request-id: ").nth(1).unwrap()[..16].to_owned();

    let clients = "turnkeep_event_clients{kind=\"sse\"}";
    let in_flight = "turnkeep_http_requests_in_flight{route=\"events\"}";
    eventually(&host, clients, 1.0).await;
    eventually(&host, in_flight, 1.0).await;
    assert!(!logs.text().contains("stream ended"));
    drop(stream);
    eventually(&host, in_flight, 0.0).await;
    eventually(&host, clients, 0.0).await;
    let text = logs.text();
    let ends: Vec<_> = text.lines().filter(|line| line.contains("stream ended")).collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert!(ends[0].contains(&id) && ends[0].contains("whole=false"), "{ends:?} of {id}");
    let head = text.lines().find(|line| line.contains("route=\"events\" status=200"));
    assert!(head.is_some_and(|line| line.contains(&id)), "{text}");
}
