//! Rows without times, so that pages go on in the form that existing hosts use: the source cursor
//! of the page that the boundary was found on.

use super::*;
use crate::testing::Indexed;

const TIMELINE: &str = "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5";

fn run(rows: &str, turns: usize, width: usize, before: Option<&str>) -> Run {
    let source = Indexed::new(rows);
    scan(&query(turns, width, before), |request| source.answer(request))
}

/// Checks requests, records, number of turns and cursor.
#[track_caller]
fn expect(run: &Run, calls: &str, ids: &str, turns: usize, cursor: &str) {
    assert_eq!(
        (run.calls(), run.ids(), run.page().turn_count, run.cursor()),
        (calls.to_owned(), ids.to_owned(), turns, cursor.to_owned())
    );
}

#[test]
fn the_newest_turns_at_any_width() {
    let wide = run(TIMELINE, 2, 100, None);
    expect(&wide, "newest", "u4 a4 u5 a5", 2, "newest/u4");
    let exact = run(TIMELINE, 2, 4, None);
    expect(&exact, "newest", "u4 a4 u5 a5", 2, "newest/u4");
    let narrow = run(TIMELINE, 3, 4, None);
    expect(&narrow, "newest 6", "u3 a3 u4 a4 u5 a5", 3, "6/u3");
    assert_eq!(narrow.page().records, run(TIMELINE, 3, 100, None).page().records);
}

#[test]
fn fewer_turns_than_wanted_is_the_whole_session() {
    expect(&run(TIMELINE, 10, 4, None), "newest 6 2", TIMELINE, 5, "-");
    expect(&run("u1 a1 u2 a2", 3, 100, None), "newest", "u1 a1 u2 a2", 2, "-");
}

#[test]
fn as_many_turns_as_wanted_and_nothing_older_is_complete() {
    expect(&run("u1 a1 u2 a2", 2, 100, None), "newest", "u1 a1 u2 a2", 2, "-");
    expect(&run("u1 a1 u2 a2 u3", 3, 4, None), "newest 1", "u1 a1 u2 a2 u3", 3, "-");
}

#[test]
fn a_token_goes_on_below_its_boundary() {
    let newest = run(TIMELINE, 2, 4, Some(&token(None, "u4")));
    expect(&newest, "newest 6", "u2 a2 u3 a3", 2, "6/u2");
    let older = run(TIMELINE, 1, 4, Some(&token(Some("6"), "u3")));
    expect(&older, "6", "u2 a2", 1, "6/u2");
}

#[test]
fn a_raw_cursor_goes_to_the_source_as_it_is() {
    expect(&run(TIMELINE, 1, 4, Some("6")), "6", "u3 a3", 1, "6/u3");
}

#[test]
fn a_boundary_that_left_its_page_is_found_further_back() {
    let first = run(TIMELINE, 3, 4, Some(&token(None, "u1")));
    expect(&first, "newest 6 2", "", 0, "-");
    let second = run(TIMELINE, 1, 4, Some(&token(None, "u2")));
    expect(&second, "newest 6 2", "u1 a1", 1, "-");
}

#[test]
fn an_empty_session_is_complete() {
    expect(&run("", 3, 100, None), "newest", "", 0, "-");
}

#[test]
fn rows_that_start_no_turn_come_along() {
    expect(&run("a1 s1 a2", 3, 100, None), "newest", "a1 s1 a2", 0, "-");
    let mixed = "u1 a1 u2 s1 a2 d1 t1 c1 u3 a3";
    expect(&run(mixed, 2, 100, None), "newest", "u2 s1 a2 d1 t1 c1 u3 a3", 2, "newest/u2");
    expect(&run(mixed, 10, 100, None), "newest", mixed, 3, "-");
}

#[test]
fn a_turn_may_be_longer_than_a_page() {
    let rows = "a0 u1 a1 a11 a12";
    let first = run(rows, 1, 2, None);
    expect(&first, "newest 3", "u1 a1 a11 a12", 1, "3/u1");
    let rest = run(rows, 1, 2, first.page().cursor.as_deref());
    expect(&rest, "3 1", "a0", 0, "-");
}

#[test]
fn rows_before_the_first_turn_are_there_only_when_turns_are_left() {
    expect(&run("a0 u1 a1 u2", 2, 100, None), "newest", "u1 a1 u2", 2, "newest/u1");
    expect(&run("a0 u1 a1 u2", 3, 100, None), "newest", "a0 u1 a1 u2", 2, "-");
}

#[test]
fn below_the_first_row_is_an_empty_and_complete_page() {
    expect(&run(TIMELINE, 3, 100, Some(&token(None, "u1"))), "newest", "", 0, "-");
}

#[test]
fn the_last_page_may_be_empty() {
    // Widths that divide the session would be doubted; here the source says more than it has.
    let source = Indexed::new("u1 a1");
    let run = scan(&query(3, 2, None), |request| match request.before.as_deref() {
        None => testing::page(&source.0, Some("0".to_owned())),
        _ => source.answer(request),
    });
    expect(&run, "newest 0", "u1 a1", 1, "-");
}

#[test]
fn overlapping_pages_give_each_row_once_as_the_newer_page_had_it() {
    let newer = Indexed::new("u2 a2 u3 a3");
    let mut older = Indexed::new("u1 u2 a2");
    older.0[1] = older.0[1].replace("\"t\"}", "\"older copy\"}");
    let run = scan(&query(10, 4, None), |request| match request.before.as_deref() {
        None => testing::page(&newer.0, Some("older".to_owned())),
        _ => testing::page(&older.0, None),
    });
    assert_eq!(run.ids(), "u1 u2 a2 u3 a3");
    assert_eq!(run.page().records[1], record("u2", None));
}

#[test]
fn a_message_without_parts_is_kept_byte_for_byte() {
    let row = "{\"extra\" : 1.50,\n \"info\":{\"id\":\"a\\u0031\",\"role\":\"assistant\"} }";
    let run = scan(&query(1, 100, None), |_| testing::page(&[row.to_owned()], None));
    assert_eq!(run.page().records, [row]);
}

#[test]
fn what_is_wanted_says_how_much_and_why() {
    let run = run(TIMELINE, 3, 4, None);
    let request = |before: Option<&str>| PageRequest {
        before: before.map(str::to_owned),
        limit: 4,
        purpose: Purpose::Scan,
    };
    assert_eq!(run.calls, [request(None), request(Some("6"))]);
}
