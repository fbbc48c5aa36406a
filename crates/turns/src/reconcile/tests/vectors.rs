//! The rounds that describe existing hosts, on a session of five turns read four rows at a time.
//! Where a round goes another way here, the test says how and why.
//!
//! Each round runs twice: on rows with times, where pages go on exactly below the oldest record,
//! and on rows without, where they go on in the form that existing hosts use.

use super::*;
use crate::testing::{Indexed, Model};

const PLAIN: &str = "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5";
const TIMED: &str = "u1@10 a1@11 u2@20 a2@21 u3@30 a3@31 u4@40 a4@41 u5@50 a5@51";
const ALL_BUDGETS: usize = usize::MAX;

fn config(records: usize, pages: usize) -> ReconcileConfig {
    let budgets = Budgets { records, pages, ..Budgets::default() };
    ReconcileConfig { budgets, ..host() }
}

fn plain(config: &ReconcileConfig, anchor_id: &str) -> Vec<Run> {
    let source = Indexed::new(PLAIN);
    round(config, anchor_id, |request| source.answer(request))
}

fn timed(config: &ReconcileConfig, anchor_id: &str) -> Vec<Run> {
    let model = Model::new(TIMED);
    round(config, anchor_id, |request| model.answer(request))
}

#[track_caller]
fn expect_one(runs: &[Run], calls: &str, ids: &str, end: &str, scanned: u64) {
    assert_eq!(runs.len(), 1);
    expect(&runs[0], calls, ids, end, scanned);
}

/// E1, unchanged.
#[test]
fn an_anchor_on_the_newest_page() {
    for runs in [plain(&host(), "u4"), timed(&host(), "u4")] {
        expect_one(&runs, "newest head", "u4 a4 u5 a5", "complete", 4);
        assert!(runs[0].page().anchor_found);
        assert_eq!(runs[0].heads(), [Some("a5"), Some("a5")]);
    }
    assert_eq!(plain(&host(), "u4")[0].page().response_bytes(), 294);
}

/// E2, unchanged.
#[test]
fn an_anchor_on_an_older_page() {
    let ids = "u2 a2 u3 a3 u4 a4 u5 a5";
    expect_one(&plain(&host(), "u2"), "newest 6 head", ids, "complete", 8);
    expect_one(&timed(&host(), "u2"), "newest u4@40 head", ids, "complete", 8);
    assert_eq!(plain(&host(), "u2")[0].page().response_bytes(), 588);
}

/// E3. Without times the continuation no longer names the row that it goes on below: the source's
/// own cursor says that, and a row named beside it is one to look for.
#[test]
fn a_gap_of_two_pages() {
    let config = config(4, 20);
    let runs = plain(&config, "u2");
    assert_eq!(runs.len(), 2);
    expect(&runs[0], "newest", "u4 a4 u5 a5", "6/-", 4);
    assert_eq!(progress(runs[0].page().continuation.as_ref().unwrap()).pages, 1);
    assert!(!runs[0].page().anchor_found);
    expect(&runs[1], "6 head", "u2 a2 u3 a3", "complete", 8);
    assert!(runs[1].page().anchor_found);

    let runs = timed(&config, "u2");
    assert_eq!(runs.len(), 2);
    expect(&runs[0], "newest", "u4 a4 u5 a5", "u4@40/u4", 4);
    expect(&runs[1], "u4@40 head", "u2 a2 u3 a3", "complete", 8);
}

/// E4. Existing hosts never get to u2: they go on at the newest page, look there for a row that is
/// on another one, and send the same rows again until the round is over. Here each row is sent
/// once, the page that has it is searched for, and no budget ends a round whose anchor is known.
#[test]
fn a_gap_whose_pages_are_smaller_than_those_of_the_source() {
    let config = config(3, 4);
    let runs = plain(&config, "u2");
    assert_eq!(runs.len(), 3);
    expect(&runs[0], "newest", "a4 u5 a5", "newest/a4", 3);
    expect(&runs[1], "newest 6", "u3 a3 u4", "6/u3!", 8);
    expect(&runs[2], "6 head", "u2 a2", "complete", 8);

    let runs = timed(&config, "u2");
    assert_eq!(runs.len(), 3);
    expect(&runs[0], "newest", "a4 u5 a5", "a4@41/a4", 3);
    expect(&runs[1], "a4@41", "u3 a3 u4", "u3@30/u3", 6);
    expect(&runs[2], "u3@30 head", "u2 a2", "complete", 10);
    assert!(runs[1].page().continuation.is_some() && !runs[1].page().anchor_found);
}

/// E5. Nothing is sent with a reset. Whether the last page really was the last one is asked for
/// where it is full.
#[test]
fn an_anchor_that_is_nowhere() {
    for runs in [plain(&host(), "u9"), timed(&host(), "u9")] {
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].end().as_str(), runs[0].page().scanned_records), ("reset", 10));
        assert_eq!(runs[0].heads(), [Some("a5"), Some("a5")], "no head is asked for");
    }
    assert_eq!(plain(&host(), "u9")[0].calls(), "newest 6 2");
    assert_eq!(timed(&host(), "u9")[0].calls(), "newest u4@40 u2@20");
    let wide = ReconcileConfig { width: 5, ..host() };
    assert_eq!(timed(&wide, "u9")[0].calls(), "5:newest 5:a3@31 probe:u1@10");
}

/// E6, unchanged.
#[test]
fn a_session_without_rows() {
    let model = Model::default();
    let runs = round(&host(), "u1", |request| model.answer(request));
    expect_one(&runs, "newest", "", "reset", 0);
    assert_eq!(runs[0].heads(), [None, None]);
}

/// E7. Nothing is sent with a reset.
#[test]
fn an_anchor_beyond_the_pages_of_a_round() {
    let config = config(4, 2);
    let runs = plain(&config, "u1");
    assert_eq!(runs.len(), 2);
    expect(&runs[0], "newest", "u4 a4 u5 a5", "6/-", 4);
    expect(&runs[1], "6", "", "reset", 8);
    let runs = timed(&config, "u1");
    assert_eq!(runs.len(), 2);
    expect(&runs[0], "newest", "u4 a4 u5 a5", "u4@40/u4", 4);
    expect(&runs[1], "u4@40", "", "reset", 8);
}

/// E8, unchanged.
#[test]
fn nothing_has_happened() {
    for runs in [plain(&host(), "a5"), timed(&host(), "a5")] {
        expect_one(&runs, "newest head", "a5", "complete", 4);
    }
}

/// E9, unchanged.
#[test]
fn an_anchor_that_is_found_with_the_last_byte_of_the_budget() {
    let budgets = Budgets { total_bytes: 1, ..Budgets::default() };
    let config = ReconcileConfig { budgets, ..host() };
    for runs in [plain(&config, "u5"), timed(&config, "u5")] {
        expect_one(&runs, "newest head", "u5 a5", "complete", 4);
    }
}

/// E10. Existing hosts start over although the anchor has been found; here the round goes on.
#[test]
fn a_budget_does_not_count_once_the_anchor_is_found() {
    let budgets = Budgets { records: 1, total_bytes: 1, pages: 1, ..Budgets::default() };
    let config = ReconcileConfig { budgets, ..host() };
    let ends =
        |runs: &[Run]| runs.iter().map(|run| run.ids() + " " + &run.end()).collect::<Vec<_>>();
    let plain = plain(&config, "u4");
    assert_eq!(ends(&plain), ["a5 newest/a5!", "u5 newest/u5!", "a4 newest/a4!", "u4 complete"]);
    let timed = timed(&config, "u4");
    assert_eq!(ends(&timed), ["a5 a5@51/a5!", "u5 u5@50/u5!", "a4 a4@41/a4!", "u4 complete"]);
    // The rows were all gone through when the anchor was found.
    assert!(timed.iter().chain(&plain).all(|run| run.page().scanned_records == 4));
    // Only rows that are likely to fit the page are asked for then.
    let calls: Vec<String> = timed.iter().map(Run::calls).collect();
    assert_eq!(calls, ["newest", "1:a5@51", "1:u5@50", "1:a4@41 head"]);
}

/// E11, unchanged.
#[test]
fn rows_that_are_added_during_a_round_are_for_the_next_one() {
    let mut model = Model::new(TIMED);
    let config = config(4, 20);
    let first = run(&config, anchor("u2"), |request| model.answer(request));
    expect(&first, "newest", "u4 a4 u5 a5", "u4@40/u4", 4);
    model.add("u6", 60, 60);
    model.add("a6", 61, 61);
    let second = run(&config, first.next().unwrap(), |request| model.answer(request));
    expect(&second, "u4@40 head", "u2 a2 u3 a3", "complete", 8);
    assert_eq!(second.heads(), [Some("a5"), Some("a6")]);
    let next = run(&config, anchor("a5"), |request| model.answer(request));
    expect(&next, "newest head", "a5 u6 a6", "complete", 4);
    assert_eq!(next.heads(), [Some("a6"), Some("a6")]);
}

/// E12. Existing hosts read the newest page again for each record.
#[test]
fn every_page_holds_at_least_one_record() {
    let budgets = Budgets { page_bytes: 1, ..Budgets::default() };
    let config = ReconcileConfig { budgets, ..host() };
    for runs in [plain(&config, "u4"), timed(&config, "u4")] {
        let ids: Vec<String> = runs.iter().map(Run::ids).collect();
        assert_eq!(ids, ["a5", "u5", "a4", "u4"]);
        assert!(runs.iter().all(|run| run.page().anchor_found));
        assert_eq!(runs[3].end(), "complete");
    }
    let rows: Vec<usize> = timed(&config, "u4")
        .iter()
        .map(|run| run.calls.iter().map(|call| call.limit).sum())
        .collect();
    assert_eq!(rows, [4, 1, 1, 2], "the last one with the question for the head");
}

#[test]
fn a_page_is_full_at_either_budget() {
    let of = |records, page_bytes| {
        let budgets = Budgets { records, page_bytes, ..Budgets::default() };
        let config = ReconcileConfig { budgets, ..host() };
        plain(&config, "u4")[0].ids()
    };
    // Records of 76 and 71 bytes.
    assert_eq!(of(ALL_BUDGETS, 294), "u4 a4 u5 a5");
    assert_eq!(of(ALL_BUDGETS, 293), "a4 u5 a5");
    assert_eq!(of(ALL_BUDGETS, 147), "u5 a5");
    assert_eq!(of(ALL_BUDGETS, 146), "a5");
    assert_eq!(of(2, 294), "u5 a5");
}
