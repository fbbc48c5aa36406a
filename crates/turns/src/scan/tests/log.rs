//! Sessions of our own log.

use turnkeep_log::id::Seq;

use super::*;
use crate::{cursor::encode_seq, testing::Log};

impl Log {
    fn run(&self, limits: Limits, turns: usize, width: usize, before: Option<&str>) -> Run {
        let query = query(turns, width, before);
        scan_within(limits, &query, SourceKind::Log, |request| self.answer(request))
    }
}

const TIMELINE: &str = "u1 a1 u2 a2 u3 a3 u4 a4";

#[test]
fn a_log_goes_on_below_a_seq() {
    let log = Log::new(TIMELINE);
    let first = log.run(LIMITS, 2, 100, None);
    assert_eq!((first.ids().as_str(), first.cursor().as_str()), ("u3 a3 u4 a4", "#40/u3"));
    let rest = log.run(LIMITS, 2, 100, first.page().cursor.as_deref());
    assert_eq!((rest.calls().as_str(), rest.ids().as_str()), ("#40", "u1 a1 u2 a2"));
    assert_eq!(rest.cursor(), "-");
}

#[test]
fn a_log_is_believed_about_its_end() {
    let log = Log::new(TIMELINE);
    let run = log.run(LIMITS, 9, 4, None);
    assert_eq!((run.calls().as_str(), run.cursor().as_str()), ("newest #40", "-"));
}

#[test]
fn raw_cursors_of_a_log_are_seqs_and_nothing_else() {
    let log = Log::new(TIMELINE);
    let padded = format!("{}=", encode_seq(Seq(40)));
    let run = log.run(LIMITS, 1, 100, Some(&padded));
    assert_eq!((run.calls().as_str(), run.ids().as_str()), ("#40", "u2 a2"));
    assert_eq!(run.calls[0].before, Some(encode_seq(Seq(40))), "in the one spelling");
    for before in ["6", &*at("u1", 10), &*token(Some("6"), "u1"), &*token(Some(&at("u1", 1)), "u1")]
    {
        let run = log.run(LIMITS, 1, 100, Some(before));
        assert_eq!((run.error(), run.calls.len()), (TurnPageError::InvalidCursor, 0));
    }
}

#[test]
fn a_token_without_a_position_is_searched() {
    let log = Log::new(TIMELINE);
    let run = log.run(LIMITS, 1, 3, Some(&token(None, "u3")));
    assert_eq!((run.calls().as_str(), run.ids().as_str()), ("newest #50", "u2 a2"));
    let missing = log.run(LIMITS, 1, 3, Some(&token(None, "u9")));
    assert_eq!(missing.error(), TurnPageError::InvalidCursor);
    let too_far = log.run(Limits { rows: 4, ..LIMITS }, 1, 3, Some(&token(None, "u1")));
    assert_eq!(too_far.error(), TurnPageError::InvalidCursor);
}

#[test]
fn a_long_turn_leaves_the_page_open_instead_of_failing() {
    let log = Log::new("u1 a1 a2 a3 a4 a5 a6 a7 a8 a9");
    let limits = Limits { pages: 1, rows: 4, ..LIMITS };
    for width in [1, 3, 4, 100] {
        let first = log.run(limits, 1, width, None);
        assert_eq!((first.ids().as_str(), first.cursor().as_str()), ("a6 a7 a8 a9", "#60/a6"));
        let second = log.run(limits, 1, width, first.page().cursor.as_deref());
        assert_eq!((second.ids().as_str(), second.cursor().as_str()), ("a2 a3 a4 a5", "#20/a2"));
        let last = log.run(limits, 1, width, second.page().cursor.as_deref());
        assert_eq!((last.ids().as_str(), last.cursor().as_str()), ("u1 a1", "-"));
    }
}

#[test]
fn an_open_page_starts_with_a_turn_if_it_holds_one() {
    let log = Log::new("u1 a1 a2 a3 u2 a4 a5");
    let limits = Limits { rows: 5, ..LIMITS };
    let first = log.run(limits, 5, 2, None);
    assert_eq!((first.ids().as_str(), first.cursor().as_str()), ("u2 a4 a5", "#40/u2"));
    let rest = log.run(limits, 5, 2, first.page().cursor.as_deref());
    assert_eq!((rest.ids().as_str(), rest.cursor().as_str()), ("u1 a1 a2 a3", "-"));
}

#[test]
fn exactly_the_limit_is_the_whole_log() {
    let log = Log::new(TIMELINE);
    let run = log.run(Limits { rows: 8, ..LIMITS }, 9, 3, None);
    assert_eq!((run.ids().as_str(), run.cursor().as_str()), (TIMELINE, "-"));
    assert_eq!(run.calls.last().map(|call| call.limit), Some(2), "never more than the limit");
}

#[test]
fn five_thousand_records_are_shipped_at_most() {
    let ids: Vec<String> = (0..5100).map(|index| format!("a{index}")).collect();
    let log = Log::new(&ids.join(" "));
    for width in [10, 64, 200] {
        let run = log.run(LIMITS, 1, width, None);
        assert_eq!((run.page().records.len(), run.cursor().as_str()), (5000, "#1000/a100"));
    }
}

#[test]
fn a_log_has_no_trouble_with_encoding() {
    for answer in [Answer::Unencodable, Answer::Failed] {
        let run = scan_within(LIMITS, &query(1, 100, None), SourceKind::Log, |_| answer.clone());
        assert_eq!(run.error(), TurnPageError::Upstream);
    }
}
