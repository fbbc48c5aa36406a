use super::*;
use crate::testing::{Indexed, page};

const TIMELINE: &str = "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5";

/// Answers the first request and then the second one as given.
fn twice(first: Answer, second: Answer) -> Run {
    let mut answers = [first, second].into_iter();
    scan(&query(10, 2, None), move |_| answers.next().expect("two requests are enough"))
}

fn rows(ids: &str, next: Option<&str>) -> Answer {
    page(&Indexed::new(ids).0, next.map(str::to_owned))
}

fn start(cursor: &str, kind: SourceKind) -> Result<TurnScan, TurnPageError> {
    TurnScan::new(SESSION, &query(3, 100, Some(cursor)), kind, WHOLE)
}

#[test]
fn unsound_cursors_never_reach_the_source() {
    for cursor in
        ["oc1.", "oc1.!!", "oc1.bm8", &"x".repeat(8193), &format!("oc1.{}", "A".repeat(8190))]
    {
        let refused = start(cursor, SourceKind::OpenCode).map(|scan| scan.want().cloned());
        assert_eq!(refused, Err(TurnPageError::InvalidCursor));
    }
    for cursor in ["x".repeat(8192), "\u{e9}".repeat(8192), "OC1.x".to_owned()] {
        let scan = start(&cursor, SourceKind::OpenCode).expect("it is for the source to judge");
        assert_eq!(scan.want().and_then(|request| request.before.as_ref()), Some(&cursor));
    }
}

#[test]
fn an_empty_cursor_is_none() {
    let scan = start("", SourceKind::OpenCode).expect("it counts as absent");
    assert_eq!(scan.want().map(|request| &request.before), Some(&None));
}

#[test]
fn a_cursor_that_comes_back_would_never_end() {
    for (before, next) in [("X", "X"), (&*token(Some("6"), "u3"), "6")] {
        let run = scan(&query(10, 2, Some(before)), |_| rows("u1 a1", Some(next)));
        assert_eq!(run.error(), TurnPageError::DuplicateCursor);
    }
    let host_token = token(Some("6"), "u3");
    let run = scan(&query(10, 2, Some(&host_token)), |_| rows("u1 a1", Some(&host_token)));
    assert_eq!((run.error(), run.calls.len()), (TurnPageError::DuplicateCursor, 1));
    let mut asked = 0;
    let run = scan(&query(10, 2, None), |_| {
        asked += 1;
        rows(&format!("u{asked} a{asked}"), Some(["A", "B", "A"][asked - 1]))
    });
    assert_eq!((run.error(), asked), (TurnPageError::DuplicateCursor, 3));
}

#[test]
fn a_page_of_known_rows_that_promises_more_is_a_stall() {
    let run = twice(rows("u1 a1", Some("A")), rows("u1 a1", Some("B")));
    assert_eq!(run.error(), TurnPageError::DuplicateCursor);
    let run = twice(rows("u1 a1", Some("A")), rows("u1", None));
    assert_eq!(run.ids(), "u1 a1", "without more to come it is just the end");
}

#[test]
fn an_empty_page_with_a_cursor_makes_no_sense() {
    let run = twice(rows("u1 a1", Some("A")), rows("", Some("B")));
    assert_eq!(run.error(), TurnPageError::EmptyPageWithCursor);
    let run = scan(&query(1, 2, Some(&token(None, "u9"))), |_| rows("", Some("B")));
    assert_eq!(run.error(), TurnPageError::EmptyPageWithCursor);
}

#[test]
fn limits_end_a_scan_without_a_page() {
    let source = Indexed::new(TIMELINE);
    let within = |pages, rows, width| {
        let limits = Limits { pages, rows, ..LIMITS };
        scan_within(limits, &query(10, width, None), SourceKind::OpenCode, |request| {
            source.answer(request)
        })
    };
    let pages = within(2, 5000, 2);
    assert_eq!((pages.error(), pages.calls()), (TurnPageError::MaxScanPages, "newest 8".into()));
    let pages = within(3, 5000, 2);
    assert_eq!((pages.error(), pages.calls.len()), (TurnPageError::MaxScanPages, 3));
    let rows = within(50, 5, 3);
    assert_eq!((rows.error(), rows.calls.len()), (TurnPageError::MaxScanMessages, 2));
    let just = scan_within(
        Limits { rows: 6, ..LIMITS },
        &query(2, 3, None),
        SourceKind::OpenCode,
        |request| Indexed::new("u1 a1 a2 u2 a3 a4").answer(request),
    );
    assert_eq!(just.page().turn_count, 2, "as many rows as the limit are fine");
}

#[test]
fn the_shipped_limits_are_fifty_pages_and_five_thousand_rows() {
    let endless = |width: usize| {
        let mut asked = 0;
        let run = scan(&query(1, width, None), |_| {
            asked += 1;
            let ids: Vec<String> = (0..width).map(|row| format!("a{asked}_{row}")).collect();
            rows(&ids.join(" "), Some(&format!("c{asked}")))
        });
        (run.error(), run.calls.len())
    };
    assert_eq!(endless(10), (TurnPageError::MaxScanPages, 50));
    assert_eq!(endless(100), (TurnPageError::MaxScanPages, 50));
    assert_eq!(endless(101), (TurnPageError::MaxScanMessages, 50));
    assert_eq!(endless(200), (TurnPageError::MaxScanMessages, 26));
}

#[test]
fn a_failing_source_fails_the_scan() {
    let table = [
        (Answer::NotFound, TurnPageError::SessionNotFound),
        (Answer::Unavailable, TurnPageError::Unavailable),
        (Answer::TimedOut, TurnPageError::TimedOut),
        (Answer::Failed, TurnPageError::Upstream),
        (Answer::BadCursor, TurnPageError::Upstream),
        (Answer::History("[]".into()), TurnPageError::Upstream),
    ];
    for (answer, error) in table {
        let at_once = scan(&query(1, 2, None), |_| answer.clone());
        assert_eq!(at_once.error(), error, "{answer:?}");
        let later = twice(rows("a1 a2", Some("A")), answer.clone());
        assert_eq!(later.error(), error, "{answer:?}");
    }
}

#[test]
fn only_a_clients_cursor_is_the_clients_fault() {
    for before in ["garbage", &*token(Some("gone"), "u1"), &*token(Some(&at("u1", 10)), "u1")] {
        let run = scan(&query(1, 2, Some(before)), |_| Answer::BadCursor);
        assert_eq!(run.error(), TurnPageError::InvalidCursor);
    }
    let mut asked = 0;
    let run = scan(&query(9, 2, Some("mine")), |_| {
        asked += 1;
        if asked == 1 { rows("a1 a2", Some("theirs")) } else { Answer::BadCursor }
    });
    assert_eq!(run.error(), TurnPageError::Upstream);
}

#[test]
fn a_scan_driven_out_of_order_says_so() {
    let scan = || TurnScan::new(SESSION, &query(1, 2, None), SourceKind::OpenCode, WHOLE).unwrap();
    assert_eq!(scan().finish(), Err(TurnPageError::Internal), "it wants a page first");
    let mut done = scan();
    done.feed(rows("u1", None)).unwrap();
    assert_eq!(done.want(), None);
    assert_eq!(done.feed(rows("u1", None)), Err(TurnPageError::Internal));
    let mut failed = scan();
    assert_eq!(failed.feed(Answer::Failed), Err(TurnPageError::Upstream));
    assert_eq!(failed.want(), None);
    assert_eq!(failed.finish(), Err(TurnPageError::Internal));
}
