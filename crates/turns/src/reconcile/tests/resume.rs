//! Where the next page goes on.

use super::*;
use crate::{
    cursor::Position,
    testing::{Indexed, Model, at, page, record},
};

const TIMED: &str = "u1@10 a1@11 u2@20 a2@21 u3@30 a3@31 u4@40 a4@41 u5@50 a5@51";

fn few(records: usize) -> ReconcileConfig {
    let budgets = Budgets { records, pages: 50, ..Budgets::default() };
    ReconcileConfig { budgets, ..host() }
}

fn ends(runs: &[Run]) -> Vec<String> {
    runs.iter().map(|run| format!("{} {}", run.ids(), run.end())).collect()
}

#[test]
fn a_page_in_order_goes_on_at_a_cursor_made_of_its_row() {
    let model = Model::new(TIMED);
    let runs = round(&few(3), "u3", |request| model.answer(request));
    assert_eq!(ends(&runs), ["a4 u5 a5 a4@41/a4", "u3 a3 u4 complete"]);
}

#[test]
fn the_source_knows_best_where_a_page_of_its_own_goes_on() {
    // The oldest row of the newest page claims a time of its own: a cursor made of that would be
    // wrong, the one that came with the page is not.
    let mut model = Model::new("u1@10 a1@11 u2@20 a2@21 a3@31 a4@32");
    model.add("u3", 30, 5);
    let runs = round(&few(3), "u2", |request| model.answer(request));
    assert_eq!(ends(&runs), ["u3 a3 a4 newest/u3", "u2 a2 complete"]);
    let exactly = ReconcileConfig { width: 3, ..few(3) };
    let runs = round(&exactly, "u2", |request| model.answer(request));
    assert_eq!(ends(&runs), ["u3 a3 a4 u3@30/u3", "u2 a2 complete"]);
    assert_eq!(runs[1].calls(), "3:u3@30 head");
}

#[test]
fn a_page_out_of_order_is_read_again_down_to_the_oldest_row_sent() {
    let mut model = Model::new("u1@10 a1@11 u2@20 a2@21 u4@40 a4@41");
    model.add("a3", 31, 5);
    let first = run(&few(2), anchor("u2"), |request| model.answer(request));
    expect(&first, "newest", "u4 a4", "newest/u4", 2);
    // By then the row is on an older page.
    for index in 0..6 {
        model.add(&format!("a5_{index}"), 50 + index, 50 + index);
    }
    let second = run(&few(2), first.next().unwrap(), |request| model.answer(request));
    expect(&second, "newest a5_2@52 u4@40", "a2 a3", "u4@40/a2!", 6);
    let third = run(&few(2), second.next().unwrap(), |request| model.answer(request));
    expect(&third, "u4@40 head", "u2", "complete", 6);
}

#[test]
fn a_row_that_is_looked_for_and_gone_ends_the_round() {
    let rows = Indexed::new("u1 a1 u2 a2 u3 a3");
    let first = run(&few(1), anchor("u1"), |request| rows.answer(request));
    assert_eq!(first.end(), "newest/a3");
    let without = Indexed::new("u1 a1 u2 a2 u3");
    let second = run(&few(1), first.next().unwrap(), |request| without.answer(request));
    assert_eq!(second.error(), ReconcileError::InvalidContinuation);
    assert_eq!(second.calls(), "newest 1", "all of history has been looked through");
    let endless: Vec<String> = (0..1000).map(|index| format!("a{index}")).collect();
    let endless = Indexed::new(&endless.join(" "));
    let second = run(&few(1), first.next().unwrap(), |request| endless.answer(request));
    assert_eq!((second.error(), second.calls.len()), (ReconcileError::InvalidContinuation, 50));
}

#[test]
fn a_deleted_row_does_no_harm_to_a_cursor_made_of_it() {
    let mut model = Model::new(TIMED);
    let first = run(&few(3), anchor("u3"), |request| model.answer(request));
    assert_eq!(first.end(), "a4@41/a4");
    model.remove("a4");
    model.remove("u4");
    let second = run(&few(3), first.next().unwrap(), |request| model.answer(request));
    assert_eq!((second.ids().as_str(), second.end().as_str()), ("u3 a3", "complete"));
}

#[test]
fn a_row_that_its_own_cursor_still_shows_is_not_sent_again() {
    // The time that u4 claims is too new, and still in order.
    let mut model = Model::new("u1@10 a1@11 u3@30 a3@31 u5@50 a5@51");
    model.add("u4", 40, 45);
    let runs = round(&few(3), "u3", |request| model.answer(request));
    assert_eq!(ends(&runs), ["u4 u5 a5 u4@45/u4", "u3 a3 complete"]);
}

#[test]
fn an_anchor_that_is_deleted_once_found_ends_in_a_reset_with_history() {
    let mut model = Model::new(TIMED);
    let first = run(&few(1), anchor("u4"), |request| model.answer(request));
    assert_eq!(first.end(), "a5@51/a5!");
    model.remove("u4");
    let mut runs = vec![first];
    while let Some(next) = runs.last().unwrap().next() {
        runs.push(run(&few(1), next, |request| model.answer(request)));
    }
    let last = runs.pop().unwrap();
    assert_eq!((last.end().as_str(), last.page().anchor_found), ("reset", false));
    assert!(runs.len() <= 10);
}

#[test]
fn rows_that_are_gone_with_all_older_ones_end_the_round() {
    let mut model = Model::new(TIMED);
    let first = run(&few(4), anchor("u1"), |request| model.answer(request));
    assert_eq!(first.end(), "u4@40/u4");
    for id in ["u1", "a1", "u2", "a2", "u3", "a3"] {
        model.remove(id);
    }
    let second = run(&few(4), first.next().unwrap(), |request| model.answer(request));
    expect(&second, "u4@40", "", "reset", 4);
}

#[test]
fn a_cursor_that_the_source_loses_is_found_out() {
    let model = Model::new(TIMED);
    let losing = |request: &PageRequest| match model.answer(request) {
        Answer::Page(mut page) if request.before.is_none() => {
            page.next = None;
            Answer::Page(page)
        }
        answer => answer,
    };
    let on_time = run(&few(100), anchor("u3"), losing);
    expect(&on_time, "newest probe:u4@40 u4@40 head", "u3 a3 u4 a4 u5 a5", "complete", 8);
    let full = run(&few(4), anchor("u3"), losing);
    expect(&full, "newest probe:u4@40", "u4 a4 u5 a5", "u4@40/u4", 4);
    let nothing_to_learn = run(&few(100), anchor("u4"), losing);
    assert_eq!(nothing_to_learn.calls(), "newest head");
}

#[test]
fn a_cut_that_cannot_be_ruled_out_is_no_reason_to_start_over() {
    let model = Model::new(TIMED);
    let refusing = |request: &PageRequest| match (request.purpose, model.answer(request)) {
        (Purpose::Probe, _) => Answer::Failed,
        (_, Answer::Page(mut page)) if request.before.is_none() => {
            page.next = None;
            Answer::Page(page)
        }
        (_, answer) => answer,
    };
    let first = run(&few(100), anchor("u3"), refusing);
    expect(&first, "newest probe:u4@40", "u4 a4 u5 a5", "u4@40/u4", 4);
    let second = run(&few(100), first.next().unwrap(), refusing);
    assert_eq!((second.ids().as_str(), second.end().as_str()), ("u3 a3", "complete"));

    // Without times the page can only be read again. While the cut lasts there is nothing to send.
    let rows = Indexed::new("u1 a1 u2 a2 u3 a3");
    let cut = |request: &PageRequest| match rows.answer(request) {
        Answer::Page(mut page) if request.before.is_none() => {
            page.next = None;
            Answer::Page(page)
        }
        answer => answer,
    };
    let first = run(&few(100), anchor("u1"), cut);
    expect(&first, "newest", "u2 a2 u3 a3", "newest/u2", 4);
    let second = run(&few(100), first.next().unwrap(), cut);
    assert_eq!(second.error(), TurnPageError::Upstream.into());
    let mended = run(&few(100), first.next().unwrap(), |request| rows.answer(request));
    expect(&mended, "newest 2 head", "u1 a1", "complete", 6);
}

#[test]
fn overlapping_pages_send_nothing_twice() {
    let pages = |request: &PageRequest| match request.before.as_deref() {
        None => page(&[record("a1", None), record("u2", None)], Some("older".to_owned())),
        _ => page(&[record("u1", None), record("a1", None)], None),
    };
    let run = run(&few(100), anchor("u1"), pages);
    expect(&run, "newest older head", "u1 a1 u2", "complete", 3);
}

#[test]
fn cursors_that_name_other_rows_are_cursors_all_the_same() {
    // What comes with a page stands for the end of that page, whatever it looks like.
    let odd = at("x", 1);
    let pages = |request: &PageRequest| match request.before.as_deref().and_then(Position::decode) {
        None => page(&[record("a1", None), record("u2", None)], Some(odd.clone())),
        Some(_) => page(&[record("u0", None), record("u1", None)], None),
    };
    let first = run(&few(2), anchor("u0"), pages);
    assert_eq!(first.end(), "x@1/-");
    let second = run(&few(2), first.next().unwrap(), pages);
    assert_eq!((second.ids().as_str(), second.end().as_str()), ("u0 u1", "complete"));
}
