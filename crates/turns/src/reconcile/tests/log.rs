//! Sessions of our own log.

use super::*;
use crate::testing::Log;

const TIMELINE: &str = "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5";

fn log_round(config: &ReconcileConfig, log: &Log, anchor_id: &str) -> Vec<Run> {
    let mut runs =
        vec![run_on(SourceKind::Log, config, anchor(anchor_id), |request| log.answer(request))];
    while let Some(next) = runs.last().and_then(Run::next) {
        runs.push(run_on(SourceKind::Log, config, next, |request| log.answer(request)));
    }
    runs
}

#[test]
fn a_log_goes_on_below_a_seq() {
    let log = Log::new(TIMELINE);
    let budgets = Budgets { records: 3, ..Budgets::default() };
    let runs = log_round(&ReconcileConfig { budgets, ..host() }, &log, "u2");
    assert_eq!(runs.len(), 3);
    expect(&runs[0], "newest", "a4 u5 a5", "#70/a4", 3);
    expect(&runs[1], "#70", "u3 a3 u4", "#40/u3", 6);
    expect(&runs[2], "#40 head", "u2 a2", "complete", 10);
}

#[test]
fn a_page_of_a_log_goes_on_below_the_row_it_ends_with() {
    let log = Log::new(TIMELINE);
    let budgets = Budgets { records: 4, ..Budgets::default() };
    let runs = log_round(&ReconcileConfig { budgets, ..host() }, &log, "u3");
    expect(&runs[0], "newest", "u4 a4 u5 a5", "#60/u4", 4);
    expect(&runs[1], "#60 head", "u3 a3", "complete", 8);
}

#[test]
fn a_log_is_believed_about_its_end() {
    let log = Log::new(TIMELINE);
    let missing = log_round(&ReconcileConfig { width: 5, ..host() }, &log, "u9");
    expect(&missing[0], "5:newest 5:#50", "", "reset", 10);
}

#[test]
fn a_log_has_heads_too() {
    let mut log = Log::new("u1 a1");
    let run = run_on(SourceKind::Log, &host(), anchor("u1"), |request| {
        let answer = log.answer(request);
        log.0.push((500, crate::testing::record("u2", None)));
        answer
    });
    assert_eq!((run.ids().as_str(), run.heads()), ("u1 a1", [Some("a1"), Some("u2")]));
}

#[test]
fn a_log_has_no_trouble_with_encoding() {
    for answer in [Answer::Unencodable, Answer::Failed] {
        let run = run_on(SourceKind::Log, &host(), anchor("u1"), |_| answer.clone());
        assert_eq!(run.error(), TurnPageError::Upstream.into());
    }
}
