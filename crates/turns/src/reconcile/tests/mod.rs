mod errors;
mod live;
mod log;
mod random;
mod resume;
mod rounds;
mod unreadable;
mod vectors;

use super::*;
use crate::testing::{SESSION, id_of, shown};

const NOW: u64 = 1_700_000_000_000;

/// A host that asks for four rows at a time, with the budgets of a real one.
fn host() -> ReconcileConfig {
    ReconcileConfig {
        runtime: "web".to_owned(),
        width: 4,
        budgets: Budgets::default(),
        keys: KeyRing::new(&[7; 32]).unwrap(),
    }
}

fn scope() -> Scope {
    Scope {
        runtime: "web".to_owned(),
        directory: None,
        session: SESSION.to_owned(),
        reasoning: true,
    }
}

fn anchor(id: &str) -> ReconcileStart {
    ReconcileStart::Anchor(id.to_owned())
}

fn request(start: ReconcileStart) -> ReconcileRequest {
    ReconcileRequest { session: SESSION.to_owned(), directory: None, reasoning: true, start }
}

/// What the scan for one page asked for, and what came of it.
struct Run {
    calls: Vec<PageRequest>,
    result: Result<ReconcilePage, ReconcileError>,
}

fn run_on(
    kind: SourceKind,
    config: &ReconcileConfig,
    start: ReconcileStart,
    mut answer: impl FnMut(&PageRequest) -> Answer,
) -> Run {
    let mut calls = Vec::new();
    let result = ReconcileScan::new(config, request(start), kind, NOW).and_then(|mut scan| {
        while let Some(request) = scan.want().cloned() {
            assert!(calls.len() < 1000, "the scan does not end");
            calls.push(request.clone());
            scan.feed(answer(&request))?;
        }
        scan.finish(NOW)
    });
    Run { calls, result }
}

fn run(
    config: &ReconcileConfig,
    start: ReconcileStart,
    answer: impl FnMut(&PageRequest) -> Answer,
) -> Run {
    run_on(SourceKind::OpenCode, config, start, answer)
}

/// All pages of a round, from the newest to the last.
fn round(
    config: &ReconcileConfig,
    anchor_id: &str,
    mut answer: impl FnMut(&PageRequest) -> Answer,
) -> Vec<Run> {
    let mut runs = vec![run(config, anchor(anchor_id), &mut answer)];
    while let Some(next) = runs.last().and_then(Run::next) {
        assert!(runs.len() < 500, "the round does not end");
        runs.push(run(config, next, &mut answer));
    }
    runs
}

impl Run {
    fn page(&self) -> &ReconcilePage {
        self.result.as_ref().expect("the scan makes a page")
    }

    fn error(&self) -> ReconcileError {
        *self.result.as_ref().expect_err("the scan fails")
    }

    fn next(&self) -> Option<ReconcileStart> {
        self.page().continuation.clone().map(ReconcileStart::Continuation)
    }

    fn id_list(&self) -> Vec<String> {
        self.page().records.iter().map(|record| id_of(record)).collect()
    }

    /// The ids of the records, in one line.
    fn ids(&self) -> String {
        self.id_list().join(" ")
    }

    /// The requests in one line: the source cursor of each, with the limit in front where it is
    /// not `width`, and what sets it apart before that.
    fn calls(&self) -> String {
        let call = |request: &PageRequest| {
            let before = shown(request.before.as_deref());
            match request.purpose {
                Purpose::Scan if request.limit == 4 => before,
                Purpose::Scan | Purpose::Narrow => format!("{}:{before}", request.limit),
                Purpose::Probe if request.before.is_none() => "head".to_owned(),
                Purpose::Probe => format!("probe:{before}"),
                Purpose::Identify => "identify".to_owned(),
            }
        };
        self.calls.iter().map(call).collect::<Vec<_>>().join(" ")
    }

    /// How the page ends: `complete`, `reset`, or where it goes on, as `source cursor/oldest row
    /// sent`, with `!` when the anchor has been found.
    fn end(&self) -> String {
        let page = self.page();
        assert!(!page.reset_required || page.records.is_empty() && page.complete());
        let Some(text) = &page.continuation else {
            assert_ne!(page.anchor_found, page.reset_required);
            return if page.reset_required { "reset" } else { "complete" }.to_owned();
        };
        let progress = progress(text);
        assert_eq!(progress.anchor_found, page.anchor_found);
        assert_eq!(progress.scanned.records, page.scanned_records);
        assert_eq!(Some(&progress.captured_head), page.captured_head.as_ref());
        let before = shown(progress.resume.scan_before.as_deref());
        let returned = progress.resume.returned_through.as_deref().unwrap_or("-");
        let found = if progress.anchor_found { "!" } else { "" };
        format!("{before}/{returned}{found}")
    }

    fn heads(&self) -> [Option<&str>; 2] {
        let page = self.page();
        [page.captured_head.as_deref(), page.latest_head.as_deref()]
    }
}

fn progress(text: &str) -> Progress {
    continuation::open(text, &scope(), &host().keys, NOW).expect("it is a sound continuation")
}

/// Checks requests, records, end and rows gone through.
#[track_caller]
fn expect(run: &Run, calls: &str, ids: &str, end: &str, scanned: u64) {
    assert_eq!(
        (run.calls(), run.ids(), run.end(), run.page().scanned_records),
        (calls.to_owned(), ids.to_owned(), end.to_owned(), scanned)
    );
}
