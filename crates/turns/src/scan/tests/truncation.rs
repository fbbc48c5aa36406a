//! Full pages without a cursor.

use super::*;
use crate::testing::{Indexed, Model};

const TIMELINE: &str = "u1@10 a1@11 u2@20 a2@21 u3@30 a3@31 u4@40 a4@41";

/// Answers as the model does, but loses the cursor of the page asked for with `lossy`.
fn losing(model: &Model, lossy: Option<&str>) -> impl FnMut(&PageRequest) -> Answer {
    let lossy = lossy.map(str::to_owned);
    move |request| match model.answer(request) {
        Answer::Page(mut page) if request.before == lossy && request.purpose == Purpose::Scan => {
            page.next = None;
            Answer::Page(page)
        }
        answer => answer,
    }
}

#[test]
fn a_lost_cursor_is_found_out_and_made_up_for() {
    let model = Model::new(TIMELINE);
    let newest = scan(&query(10, 4, None), losing(&model, None));
    assert_eq!(newest.ids(), "u1 a1 u2 a2 u3 a3 u4 a4");
    assert!(newest.page().complete);
    assert_eq!(newest.calls(), "newest probe:u3@30 u3@30 probe:u1@10");
    assert_eq!(newest.calls[1].limit, 1);

    let second = scan(&query(10, 3, None), losing(&model, Some(&at("a3", 31))));
    assert_eq!(second.ids(), "u1 a1 u2 a2 u3 a3 u4 a4");
    assert_eq!(second.calls(), "newest a3@31 probe:u2@20 u2@20");
}

#[test]
fn a_session_that_ends_with_a_full_page_is_complete() {
    let model = Model::new(TIMELINE);
    for width in [1, 2, 4, 8] {
        let run = scan(&query(10, width, None), |request| model.answer(request));
        assert_eq!((run.ids().len(), run.cursor().as_str()), (23, "-"), "width {width}");
        assert_eq!(run.calls.len(), 8 / width + 1, "one probe more than pages");
    }
    let exactly = scan(&query(4, 8, None), |request| model.answer(request));
    assert_eq!((exactly.cursor().as_str(), exactly.calls.len()), ("-", 2));
}

#[test]
fn nothing_is_asked_when_the_answer_changes_nothing() {
    let model = Model::new(TIMELINE);
    // Rows were cut off, so the page is not complete whatever a probe would say.
    let trimmed = scan(&query(3, 8, None), |request| model.answer(request));
    assert_eq!((trimmed.calls().as_str(), trimmed.cursor().as_str()), ("newest", "u2@20/u2"));
    // A short page says itself that it is the last one.
    let short = scan(&query(10, 9, None), |request| model.answer(request));
    assert_eq!((short.calls().as_str(), short.cursor().as_str()), ("newest", "-"));
}

#[test]
fn turns_that_just_fit_a_page_without_a_cursor_are_complete_only_if_nothing_is_older() {
    let model = Model::new(TIMELINE);
    let run = scan(&query(2, 4, None), losing(&model, None));
    assert_eq!((run.calls().as_str(), run.ids().as_str()), ("newest probe:u3@30", "u3 a3 u4 a4"));
    assert_eq!(run.cursor(), "u3@30/u3");
}

#[test]
fn without_times_there_is_no_probe_and_the_page_stays_open() {
    let rows = Indexed::new("u1 a1 u2 a2 u3 a3 u4 a4 u5 a5");
    let lossy = |lossy: Option<&'static str>| {
        let rows = &rows;
        move |request: &PageRequest| match rows.answer(request) {
            Answer::Page(mut page) if request.before.as_deref() == lossy => {
                page.next = None;
                Answer::Page(page)
            }
            answer => answer,
        }
    };
    let second = scan(&query(10, 4, None), lossy(Some("6")));
    assert_eq!(second.calls(), "newest 6");
    assert_eq!(
        (second.ids().as_str(), second.cursor().as_str()),
        ("u2 a2 u3 a3 u4 a4 u5 a5", "6/u2")
    );
    let newest = scan(&query(10, 4, None), lossy(None));
    assert_eq!((newest.ids().as_str(), newest.cursor().as_str()), ("u4 a4 u5 a5", "newest/u4"));
    // Going on while the cut lasts would be an empty page that is not complete.
    let again = scan(&query(10, 4, newest.page().cursor.as_deref()), lossy(None));
    assert_eq!(again.error(), TurnPageError::Upstream);
    // A session of exactly the width cannot be told from a cut one.
    let exact = scan(&query(10, 10, None), lossy(None));
    assert_eq!((exact.page().records.len(), exact.cursor().as_str()), (10, "newest/u1"));
}

#[test]
fn a_probe_that_gets_no_page_leaves_the_page_open() {
    let model = Model::new(TIMELINE);
    for answer in [Answer::BadCursor, Answer::Failed, Answer::NotFound, Answer::Unavailable] {
        let run = scan(&query(10, 4, None), |request| match request.purpose {
            Purpose::Probe => answer.clone(),
            _ => losing(&model, None)(request),
        });
        assert_eq!((run.ids().as_str(), run.cursor().as_str()), ("u3 a3 u4 a4", "u3@30/u3"));
    }
    let late = scan(&query(10, 4, None), |request| match request.purpose {
        Purpose::Probe => Answer::TimedOut,
        _ => losing(&model, None)(request),
    });
    assert_eq!(late.error(), TurnPageError::TimedOut);
}

#[test]
fn a_row_too_large_to_take_is_a_row() {
    let model = Model::new(TIMELINE);
    let run = scan(&query(3, 4, None), |request| match request.purpose {
        Purpose::Probe => Answer::Oversized,
        _ => losing(&model, None)(request),
    });
    assert_eq!(run.calls(), "newest probe:u3@30 u3@30");
    assert_eq!(run.ids(), "u2 a2 u3 a3 u4 a4");
}

#[test]
fn a_probe_that_only_shows_what_is_known_proves_nothing() {
    let model = Model::new(TIMELINE);
    for next in [None, Some("more".to_owned())] {
        let run = scan(&query(10, 4, None), |request| match request.purpose {
            Purpose::Probe => testing::page(&[record("a4", Some(41))], next.clone()),
            _ => losing(&model, None)(request),
        });
        assert_eq!(run.cursor(), "u3@30/u3");
        let run = scan(&query(10, 4, None), |request| match request.purpose {
            Purpose::Probe if next.is_some() => testing::page(&[], next.clone()),
            _ => losing(&model, None)(request),
        });
        assert_eq!(run.page().complete, next.is_none());
    }
}

#[test]
fn an_open_page_starts_with_a_turn_if_it_holds_one() {
    let model = Model::new("a1@1 a2@2 u3@3 a4@4");
    let refusing = |request: &PageRequest| match request.purpose {
        Purpose::Probe => Answer::Failed,
        _ => losing(&model, None)(request),
    };
    let run = scan(&query(10, 3, None), refusing);
    assert_eq!((run.ids().as_str(), run.cursor().as_str()), ("u3 a4", "u3@3/u3"));
    let rest = scan(&query(10, 3, run.page().cursor.as_deref()), |request| model.answer(request));
    assert_eq!(rest.ids(), "a1 a2");

    let no_turn = Model::new("u0@0 a1@1 a2@2 a3@3");
    let refusing = |request: &PageRequest| match request.purpose {
        Purpose::Probe => Answer::Failed,
        _ => losing(&no_turn, None)(request),
    };
    let run = scan(&query(10, 3, None), refusing);
    assert_eq!((run.ids().as_str(), run.cursor().as_str()), ("a1 a2 a3", "a1@1/a1"));
    let rest = scan(&query(10, 3, run.page().cursor.as_deref()), |request| no_turn.answer(request));
    assert_eq!(rest.ids(), "u0");
}

#[test]
fn probes_are_no_pages_and_no_rows() {
    let model = Model::new(TIMELINE);
    let tight = Limits { pages: 2, rows: 8, ..LIMITS };
    let run = scan_within(tight, &query(10, 4, None), SourceKind::OpenCode, losing(&model, None));
    assert_eq!(run.page().records.len(), 8);
    assert_eq!(run.calls.iter().filter(|call| call.purpose == Purpose::Probe).count(), 2);
}

#[test]
fn a_page_out_of_order_is_not_probed() {
    // A cursor made of a1 would skip u0 and call history complete.
    let mut model = Model::new("u0@10 u2@30");
    model.add("a1", 20, 5);
    model.add("u1", 21, 4);
    let run = scan(&query(10, 3, None), losing(&model, None));
    assert_eq!(run.calls(), "newest");
    assert_eq!((run.ids().as_str(), run.cursor().as_str()), ("u1 u2", "newest/u1"));
}

#[test]
fn a_boundary_is_searched_across_a_lost_cursor() {
    let model = Model::new(TIMELINE);
    let run = scan(&query(1, 4, Some(&token(None, "u2"))), losing(&model, None));
    assert_eq!(
        (run.calls().as_str(), run.ids().as_str()),
        ("newest probe:u3@30 u3@30 probe:u1@10", "u1 a1")
    );
    let lost = scan(&query(1, 4, Some(&token(None, "u2"))), |request| match request.purpose {
        Purpose::Probe => Answer::Failed,
        _ => losing(&model, None)(request),
    });
    assert_eq!(lost.error(), TurnPageError::Upstream, "it may well be there");
}
