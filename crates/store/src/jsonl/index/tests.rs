use proptest::prelude::*;
use turnkeep_log::{Seq, SessionId, json::Json};

use super::{
    Head, Index, MAX_SAFE, TailSeal,
    form::{self, MAX_HEAD_BYTES},
};
use crate::{
    jsonl::{reader::Mark, tail::TailKind},
    outline::{Call, Calls, Outline, Turn},
};

fn literals() -> impl Strategy<Value = Box<str>> {
    prop_oneof![
        "[ -~é😀\n\"\\\\]{0,20}".prop_map(|text| serde_json::to_string(&text).unwrap().into()),
        Just(r#""half \ud83d""#.into()),
        Just(r#""\u0061""#.into()),
    ]
}

fn outlines() -> impl Strategy<Value = Outline> {
    let turns = prop::collection::vec((0u64..5, prop::option::of(0u64..5)), 0..6);
    let calls = prop::option::of(prop::collection::vec((literals(), 0u64..100), 0..4));
    let times = (prop::option::of(-5i64..1 << 50), prop::option::of(any::<i32>()));
    (prop::option::of(literals()), times, 0u64..1000, turns, calls).prop_map(
        |(title, (prompt, last), older_turns, turns, calls)| {
            let mut next = 0;
            let turn = |(gap, length): (u64, Option<u64>)| {
                let start = next + gap;
                let end = length.map(|length| start + length);
                next = end.unwrap_or(start) + 1;
                Turn { start: Seq(start), end: end.map(Seq) }
            };
            let turns = turns.into_iter().map(turn).collect();
            let call = |(id, start)| Call { id, start: Seq(start) };
            Outline {
                next: Seq(next + 7),
                title,
                last_prompt_at: prompt,
                last_event_at: last.map(i64::from),
                older_turns,
                turns,
                calls: calls.map_or(Calls::Uncounted, |calls| {
                    Calls::Open(calls.into_iter().map(call).collect())
                }),
            }
        },
    )
}

prop_compose! {
    fn indexes()(
        outline in outlines(),
        session in "[ -~é😀\n]{1,12}",
        rules in any::<u64>(),
        last in any::<u64>(),
        tail in prop::option::of((0usize..3, any::<u64>(), 1u64..5000)),
        gaps in prop::collection::vec(1u64..1 << 40, 0..20),
    ) -> Index {
        let mut marks = Vec::new();
        let (mut offset, events) = (0, outline.next.0);
        for (gap, seq) in gaps.into_iter().zip(0..events) {
            offset += gap;
            marks.push(Mark { offset, seq: Seq(seq) });
        }
        let end = offset + 1;
        let kinds = [TailKind::Torn, TailKind::Zeroed, TailKind::Uncommitted];
        let head = Head {
            session: SessionId::new(&session).unwrap(),
            rules,
            max_frame_bytes: MAX_SAFE,
            size: end + tail.map_or(0, |(_, _, bytes)| bytes),
            end,
            last,
            tail: tail.map(|(kind, last, _)| TailSeal { kind: kinds[kind], last }),
            hints: outline.hints(),
        };
        Index { head, marks: marks.into_iter().collect(), outline }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_is_read_as_it_was_spelled(index in indexes()) {
        let text = form::spell(&index).unwrap();
        prop_assert_eq!(text.lines().count(), 2);
        prop_assert_eq!(form::parse(&text), Some(index.clone()));
        prop_assert_eq!(form::head(text.lines().next().unwrap()), Some(index.head));
        for line in text.lines() {
            prop_assert!(Json::parse(line).is_ok());
        }
    }

    #[test]
    fn a_damaged_index_is_none(
        index in indexes(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = form::spell(&index).unwrap().into_bytes();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else if bytes[at] == byte {
            return Ok(());
        } else {
            bytes[at] = byte;
        }
        if let Ok(text) = String::from_utf8(bytes) {
            prop_assert_eq!(form::parse(&text), None);
        }
    }

    #[test]
    fn foreign_text_is_no_index(text in "[ -~\n]{0,200}") {
        prop_assert_eq!(form::parse(&text), None);
        prop_assert_eq!(form::head(&text), None);
    }
}

/// The index of a log of ten events in a hundred bytes, with other parts, spelled correctly.
fn spelled(marks: &[(u64, u64)], turns: &[(u64, Option<u64>)], title: Option<&str>) -> String {
    let turn = |(start, end): &(u64, Option<u64>)| Turn { start: Seq(*start), end: end.map(Seq) };
    let outline = Outline {
        next: Seq(10),
        title: title.map(Into::into),
        turns: turns.iter().map(turn).collect(),
        ..Outline::default()
    };
    let head = Head {
        session: SessionId::new("s").unwrap(),
        rules: 1,
        max_frame_bytes: 1,
        size: 100,
        end: 100,
        last: 2,
        tail: None,
        hints: outline.hints(),
    };
    let mark = |(offset, seq): &(u64, u64)| Mark { offset: *offset, seq: Seq(*seq) };
    let index = Index { head, marks: marks.iter().map(mark).collect(), outline };
    form::spell(&index).unwrap_or_default()
}

#[test]
fn what_cannot_be_true_of_a_log_is_no_index() {
    let is_one = |text: &str| form::parse(text).is_some();
    assert!(is_one(&spelled(&[(10, 0), (20, 5)], &[(0, Some(3)), (4, None)], None)));
    for marks in [[(20, 0), (10, 5)], [(10, 5), (20, 5)], [(10, 0), (100, 5)], [(10, 0), (20, 10)]]
    {
        assert!(!is_one(&spelled(&marks, &[], None)), "{marks:?}");
    }
    for turns in [[(0, Some(3)), (3, None)], [(4, Some(3)), (5, None)], [(0, None), (10, None)]] {
        assert!(!is_one(&spelled(&[], &turns, None)), "{turns:?}");
    }
}

#[test]
fn other_versions_and_long_ones_are_left_alone() {
    let text = spelled(&[], &[], None);
    assert!(form::parse(&text).is_some());
    for other in ["\"turnkeepIndex\":0", "\"turnkeepIndex\":2", "\"turnkeepIndex\":null"] {
        let line = text.lines().next().unwrap().replace("\"turnkeepIndex\":1", other);
        // With the checksum that goes with it.
        let rest = &line[..line.len() - 28];
        let check = xxhash_rust::xxh64::xxh64(rest.as_bytes(), 0);
        assert_eq!(form::head(&format!("{rest},\"check\":\"{check:016x}\"}}")), None, "{other}");
    }
    let long = format!("\"{}\"", "x".repeat(usize::try_from(MAX_HEAD_BYTES).unwrap()));
    assert_eq!(spelled(&[], &[], Some(&long)), "");
}
