//! Messages that their server cannot encode.

use super::*;
use crate::testing::Model;

const TIMED: &str = "u1@10 a1@11 u2@20 a2@21 u3@30 a3@31";

#[test]
fn a_message_that_cannot_be_encoded_is_read_around() {
    let whole = Model::new(TIMED);
    for poisoned in whole.ids().iter().skip(1) {
        let mut model = Model::new(TIMED);
        model.poison(poisoned);
        for width in [1, 2, 3, 6, 100] {
            let config = ReconcileConfig { width, ..host() };
            let run = run(&config, anchor("u1"), |request| model.answer(request));
            let expected = round(&config, "u1", |request| whole.answer(request));
            assert_eq!(run.page(), expected[0].page(), "{poisoned}, width {width}");
        }
    }
}

#[test]
fn the_oldest_message_becomes_a_stub() {
    let mut model = Model::new(TIMED);
    model.poison("u1");
    let found = run(&host(), anchor("u1"), |request| model.answer(request));
    assert_eq!((found.ids().as_str(), found.end().as_str()), ("u1 a1 u2 a2 u3 a3", "complete"));
    assert!(found.page().records[0].contains("TurnkeepUnreadable"));
    let missing = run(&host(), anchor("u9"), |request| model.answer(request));
    assert_eq!(missing.end(), "reset");
}

#[test]
fn an_unreadable_message_has_to_fit_as_well() {
    let mut model = Model::new(TIMED);
    model.poison("u1");
    let budgets = Budgets { records: 5, ..Budgets::default() };
    let config = ReconcileConfig { budgets, width: 5, ..host() };
    let runs = round(&config, "u1", |request| model.answer(request));
    let ids: Vec<String> = runs.iter().map(Run::ids).collect();
    assert_eq!(ids, ["a1 u2 a2 u3 a3", "u1"]);
    assert_eq!(runs[1].end(), "complete");
}

#[test]
fn a_session_of_one_unreadable_message_has_a_head() {
    let mut model = Model::new("u1@10");
    model.poison("u1");
    let run = run(&host(), anchor("u1"), |request| model.answer(request));
    assert_eq!((run.ids().as_str(), run.end().as_str()), ("u1", "complete"));
    assert_eq!(run.heads(), [Some("u1"), Some("u1")], "the question for it fails as the page does");
}

#[test]
fn a_page_too_large_to_take_is_read_in_smaller_ones() {
    let model = Model::new(TIMED);
    let config = ReconcileConfig { width: 100, ..host() };
    for most in [1, 2, 3] {
        let run = run(&config, anchor("u1"), |request| {
            if request.limit > most { Answer::Oversized } else { model.answer(request) }
        });
        assert_eq!((run.ids().as_str(), run.end().as_str()), ("u1 a1 u2 a2 u3 a3", "complete"));
    }
}
