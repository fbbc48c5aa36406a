use super::{ListCursor, Position, Served};

#[test]
fn a_cursor_reads_back_as_what_was_written() {
    let served = Served { updated: 1_796_030_227_333, ids: vec!["ses_1".to_owned()] };
    for cursor in [
        ListCursor::default(),
        ListCursor { store: Position::End, upstream: Position::After(served) },
        ListCursor { store: Position::After("a:b".to_owned()), upstream: Position::End },
    ] {
        assert_eq!(ListCursor::decode(&cursor.encode()), Some(cursor));
    }
}

#[test]
fn what_is_no_cursor_is_refused() {
    for text in ["", "x", "e30", "bnVsbA", "!!"] {
        assert_eq!(ListCursor::decode(text), None, "{text}");
    }
}

#[test]
fn sessions_of_one_time_are_told_apart_by_id() {
    let first = Served::next(Position::Start, 7, "a");
    let both = Served::next(Position::After(first.clone()), 7, "b");
    assert!(first.covers(8, "z") && first.covers(7, "a"));
    assert!(!first.covers(7, "b") && !first.covers(6, "a"));
    assert!(both.covers(7, "a") && both.covers(7, "b"));
    let older = Served::next(Position::After(both), 6, "c");
    assert_eq!(older.ids, ["c"]);
    assert!(older.covers(7, "anything"));
}
