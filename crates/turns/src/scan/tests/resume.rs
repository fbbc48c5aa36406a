//! Rows with times: pages go on at cursors made from the rows themselves.

use super::*;
use crate::testing::Model;

const TIMELINE: &str = "u1@10 a1@11 u2@20 a2@21 u3@30 a3@31 u4@40 a4@41 u5@50 a5@51";

fn run(model: &Model, turns: usize, width: usize, before: Option<&str>) -> Run {
    scan(&query(turns, width, before), |request| model.answer(request))
}

#[test]
fn a_page_goes_on_exactly_below_its_oldest_turn() {
    let model = Model::new(TIMELINE);
    let first = run(&model, 2, 100, None);
    assert_eq!(first.ids(), "u4 a4 u5 a5");
    assert_eq!(first.cursor(), "u4@40/u4");
    let second = run(&model, 2, 4, first.page().cursor.as_deref());
    assert_eq!((second.calls().as_str(), second.ids().as_str()), ("u4@40", "u2 a2 u3 a3"));
    assert_eq!(second.cursor(), "u2@20/u2");
    let last = run(&model, 2, 4, second.page().cursor.as_deref());
    assert_eq!((last.calls().as_str(), last.ids().as_str()), ("u2@20", "u1 a1"));
    assert_eq!(last.cursor(), "-");
}

#[test]
fn the_cursor_is_the_same_at_any_width() {
    let model = Model::new(TIMELINE);
    let wide = run(&model, 3, 100, None);
    for width in 1..12 {
        assert_eq!(run(&model, 3, width, None).page(), wide.page(), "width {width}");
    }
}

#[test]
fn new_rows_do_not_wear_a_cursor_out() {
    let mut model = Model::new(TIMELINE);
    let first = run(&model, 2, 100, None);
    for index in 0..500 {
        model.add(&format!("a6_{index:03}"), 60 + index, 60 + index);
    }
    let second = run(&model, 2, 100, first.page().cursor.as_deref());
    assert_eq!(second.calls(), "u4@40", "one page, without the rows that the client has");
    assert_eq!(second.ids(), "u2 a2 u3 a3");
}

#[test]
fn a_deleted_boundary_does_no_harm() {
    let mut model = Model::new(TIMELINE);
    let first = run(&model, 2, 100, None);
    model.remove("u4");
    assert_eq!(run(&model, 2, 100, first.page().cursor.as_deref()).ids(), "u2 a2 u3 a3");
}

#[test]
fn equal_times_are_ordered_by_id() {
    let model = Model::new("u1@5 a2@5 u2@6 u3@6 u4@6");
    let first = run(&model, 2, 100, None);
    assert_eq!((first.ids().as_str(), first.cursor().as_str()), ("u3 u4", "u3@6/u3"));
    assert_eq!(run(&model, 2, 100, first.page().cursor.as_deref()).ids(), "u1 u2");
}

#[test]
fn a_page_out_of_order_falls_back_to_finding_the_boundary() {
    // u2 claims a time that would hide a1 from a cursor made of it.
    let mut model = Model::new("u1@10 a1@11 a2@21 u3@30");
    model.add("u2", 20, 5);
    let first = run(&model, 2, 100, None);
    assert_eq!((first.ids().as_str(), first.cursor().as_str()), ("u2 a2 u3", "newest/u2"));
    model.add("u4", 40, 40);
    let second = run(&model, 2, 2, first.page().cursor.as_deref());
    assert_eq!(second.calls(), "newest u3@30 u2@20 probe:u1@10", "found on the second page");
    assert_eq!(second.ids(), "u1 a1");
}

#[test]
fn a_page_in_order_that_contradicts_its_cursors_counts_as_out_of_order() {
    // Alone on their pages, both rows look well ordered.
    let mut model = Model::new("u1@10 a1@11 u3@30");
    model.add("u2", 20, 5);
    let first = run(&model, 2, 1, None);
    assert_eq!((first.ids().as_str(), first.cursor().as_str()), ("u2 u3", "u3@30/u2"));
    assert_eq!(run(&model, 2, 1, first.page().cursor.as_deref()).ids(), "u1 a1");
}

#[test]
fn a_boundary_that_its_own_cursor_still_shows_is_not_sent_again() {
    // The time u2 claims is between its real one and the next row's: in order, but too new.
    let mut model = Model::new("u1@10 a1@11 u3@30");
    model.add("u2", 20, 25);
    let first = run(&model, 2, 100, None);
    assert_eq!(first.cursor(), "u2@25/u2");
    for width in 1..5 {
        assert_eq!(run(&model, 2, width, first.page().cursor.as_deref()).ids(), "u1 a1");
    }
}

#[test]
fn a_token_with_another_rows_cursor_is_searched() {
    let model = Model::new(TIMELINE);
    let before = token(Some(&at("u5", 50)), "u4");
    let run = run(&model, 1, 2, Some(&before));
    assert_eq!((run.calls().as_str(), run.ids().as_str()), ("u5@50 u4@40", "u3 a3"));
    assert_eq!(run.cursor(), "u3@30/u3");
}

#[test]
fn a_boundary_that_is_nowhere_ends_in_an_invalid_cursor() {
    let model = Model::new(TIMELINE);
    let run = run(&model, 1, 4, Some(&token(None, "u9")));
    assert_eq!(run.error(), TurnPageError::InvalidCursor);
    assert_eq!(run.calls(), "newest u4@40 u2@20", "all of history has been looked through");
}

#[test]
fn a_boundary_is_searched_up_to_the_limits_only() {
    let model = Model::new(TIMELINE);
    let before = token(None, "u1");
    let pages = Limits { pages: 2, ..LIMITS };
    let run = scan_within(pages, &query(1, 2, Some(&before)), SourceKind::OpenCode, |request| {
        model.answer(request)
    });
    assert_eq!((run.error(), run.calls.len()), (TurnPageError::InvalidCursor, 2));
    let rows = Limits { rows: 5, ..LIMITS };
    let run = scan_within(rows, &query(1, 4, Some(&before)), SourceKind::OpenCode, |request| {
        model.answer(request)
    });
    assert_eq!((run.error(), run.calls.len()), (TurnPageError::InvalidCursor, 2));
}

#[test]
fn the_page_stops_reading_once_it_has_its_turns() {
    let model = Model::new(TIMELINE);
    let counts = |turns, width| run(&model, turns, width, None).calls.len();
    assert_eq!([counts(1, 2), counts(2, 2), counts(3, 2), counts(5, 3)], [1, 2, 3, 4]);
    assert_eq!([counts(1, 10), counts(3, 10), counts(4, 9)], [1, 1, 1]);
}
