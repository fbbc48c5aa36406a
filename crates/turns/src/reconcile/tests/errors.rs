use super::*;
use crate::testing::{Indexed, Model, page, record};

fn fails_with(answer: &Answer) -> ReconcileError {
    run(&host(), anchor("u1"), |_| answer.clone()).error()
}

fn rows(ids: &str, next: Option<&str>) -> Answer {
    page(&Indexed::new(ids).0, next.map(str::to_owned))
}

#[test]
fn a_source_that_fails_fails_the_page() {
    let expected = [
        (Answer::NotFound, TurnPageError::SessionNotFound),
        (Answer::Unavailable, TurnPageError::Unavailable),
        (Answer::TimedOut, TurnPageError::TimedOut),
        (Answer::Failed, TurnPageError::Upstream),
        (Answer::BadCursor, TurnPageError::Upstream),
        (Answer::Oversized, TurnPageError::Upstream),
        (rows("", Some("more")), TurnPageError::EmptyPageWithCursor),
    ];
    for (answer, error) in expected {
        assert_eq!(fails_with(&answer), ReconcileError::Rows(error));
    }
}

#[test]
fn a_cursor_that_comes_back_would_never_end() {
    let mut asked = 0;
    let run = run(&host(), anchor("u9"), |_| {
        asked += 1;
        rows(&format!("u{asked} a{asked}"), Some(["A", "B", "A"][asked - 1]))
    });
    assert_eq!((run.error(), asked), (TurnPageError::DuplicateCursor.into(), 3));
    assert_eq!(fails_with(&rows("u2 a2", Some("A"))), TurnPageError::DuplicateCursor.into());
}

#[test]
fn a_cursor_of_a_continuation_that_is_refused_ends_the_round() {
    let model = Model::new("u1@1 a1@2 u2@3 a2@4");
    let budgets = Budgets { records: 2, ..Budgets::default() };
    let config = ReconcileConfig { width: 2, budgets, ..host() };
    let first = run(&config, anchor("u1"), |request| model.answer(request));
    let second = run(&config, first.next().unwrap(), |_| Answer::BadCursor);
    assert_eq!((second.error(), second.calls.len()), (ReconcileError::InvalidContinuation, 1));
}

#[test]
fn a_failure_later_on_leaves_nothing_to_send() {
    let source = Indexed::new("u1 a1 u2 a2 u3 a3");
    let run = run(&host(), anchor("u1"), |request| match request.before {
        None => source.answer(request),
        Some(_) => Answer::Unavailable,
    });
    assert_eq!(run.error(), TurnPageError::Unavailable.into());
}

#[test]
fn many_small_pages_are_read_up_to_a_limit() {
    let all: Vec<String> = (0..60).map(|index| format!("a{index}")).collect();
    let source = Indexed::new(&all.join(" "));
    let config = ReconcileConfig { width: 1, ..host() };
    let run = run(&config, anchor("u1"), |request| source.answer(request));
    assert_eq!((run.error(), run.calls.len()), (TurnPageError::MaxScanPages.into(), 50));
}

#[test]
fn a_scan_out_of_step_is_a_bug() {
    let config = host();
    let scan =
        || ReconcileScan::new(&config, request(anchor("u1")), SourceKind::OpenCode, NOW).unwrap();
    let internal = ReconcileError::Rows(TurnPageError::Internal);
    assert_eq!(scan().finish(NOW), Err(internal));

    let mut unprobed = scan();
    unprobed.feed(page(&[record("u1", None)], None)).unwrap();
    assert!(unprobed.want().is_some());
    assert_eq!(unprobed.finish(NOW), Err(internal));

    let mut failed = scan();
    assert_eq!(failed.feed(Answer::Failed), Err(TurnPageError::Upstream.into()));
    assert_eq!(failed.want(), None);
    assert_eq!(failed.feed(Answer::Failed), Err(internal));
    assert_eq!(failed.finish(NOW), Err(internal));

    let mut done = scan();
    done.feed(page(&[], None)).unwrap();
    assert_eq!(done.feed(page(&[], None)), Err(internal));
}
