use proptest::prelude::*;

use super::{Problem, RecordError, RecordScan, decode, decode_lossy, end_of_lines};
use crate::{
    event::{Event, EventDraft, EventError},
    header::SessionHeader,
    id::Seq,
    packed,
    text::Text,
};

fn line(event_type: &str, seq: u64) -> String {
    format!("{{\"type\":\"{event_type}\",\"seq\":{seq},\"time\":5,\"data\":{{}}}}\n")
}

fn row(seq: u64) -> String {
    format!(
        "{{\"type\":\"text-chunks\",\"seq0\":{seq},\"time0\":1,\"data\":{{\"turn\":1,\"step\":1,\"index\":0,\"dt\":[0,0],\"texts\":[\"a\",\"b\",\"c\"]}}}}\n"
    )
}

fn scan(log: impl Into<Text>) -> (Vec<Event>, RecordScan) {
    let mut scan = RecordScan::new(Seq(0));
    scan.feed(&log.into());
    (scan.take_events(), scan)
}

fn seqs(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.seq().0).collect()
}

#[test]
fn reads_events_and_rows_as_one_sequence() {
    let log = line("turn/start", 0) + &row(1) + &line("turn/end", 4);
    let (events, scan) = scan(log.as_str());
    assert_eq!(seqs(&events), [0, 1, 2, 3, 4]);
    assert_eq!((scan.next_seq(), scan.problem()), (Seq(5), None));
    assert_eq!(scan.accepted_bytes(), log.len() as u64);
    assert_eq!(scan.accepted_lines(), 3);
    assert_eq!(events[0].text().as_str(), log.lines().next().unwrap());
}

#[test]
fn an_empty_log_ends_where_it_starts() {
    let (events, scan) = scan("");
    assert!(events.is_empty() && scan.problem().is_none());
    assert_eq!((scan.accepted_bytes(), scan.next_seq()), (0, Seq(0)));
}

#[test]
fn goes_on_from_part_to_part() {
    let mut scan = RecordScan::new(Seq(7));
    scan.feed(&line("a", 7).into());
    assert_eq!(seqs(&scan.take_events()), [7]);
    assert!(scan.take_events().is_empty());
    scan.feed(&(row(8) + &line("b", 11)).into());
    scan.feed(&(line("c", 13)).into());
    assert_eq!(seqs(&scan.take_events()), [8, 9, 10, 11]);
    assert_eq!(scan.accepted_lines(), 3);
    assert_eq!(scan.accepted_bytes(), (line("a", 7) + &row(8) + &line("b", 11)).len() as u64);
    let gap = Problem::SeqGap { line: 4, expected: Seq(12), got: Seq(13) };
    assert_eq!(scan.problem(), Some(&gap));
}

#[test]
fn white_space_around_a_record_is_no_part_of_it() {
    let (events, scan) = scan(" {\"type\":\"a\",\"seq\":0,\r\"time\":5,\"data\":1}\t\r\n");
    assert_eq!(scan.problem(), None);
    assert_eq!(events[0].text().as_str(), "{\"type\":\"a\",\"seq\":0,\r\"time\":5,\"data\":1}");
}

#[test]
fn what_is_no_record_ends_the_log() {
    let cases = [
        "\n",
        "  \n",
        "\0\0\0\n",
        "\u{feff}{\"type\":\"a\",\"seq\":1,\"time\":5,\"data\":{}}\n",
        "null\n",
        "[]\n",
        "{}\n",
        "{\"seq\":1,\"time\":5,\"data\":{}}\n",
        "{\"type\":1,\"seq\":1,\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":\"1\",\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":1.5,\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":-1,\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":9007199254740993,\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":1e99,\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":1,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":1,\"time\":5.5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":1,\"time\":5}\n",
        "{\"type\":\"a\",\"seq\":1,\"time\":5,\"data\":{}}}\n",
        "{\"type\":\"a\",\"seq\":1,\"time\":5,\"data\":{}\n",
        "{\"type\":\"text-chunks\",\"seq\":1,\"time\":5,\"data\":{}}\n",
        "{\"type\":\"a\",\"seq\":1,\"time\":5,\"data\":{},\"sourceEventSeqs\":0}\n",
        "{\"type\":\"a\",\"seq\":1,\"time\":5,\"data\":{},\"sourceEventSeqs\":[0,0]}\n",
        "{\"type\":\"a\",\"seq\":1,\"time\":5,\"data\":{},\"sourceEventSeqs\":[[1,0]]}\n",
    ];
    for bad in cases {
        let (events, scan) = scan(line("a", 0) + bad + &line("b", 1));
        assert_eq!(seqs(&events), [0], "{bad}");
        assert!(matches!(scan.problem(), Some(Problem::Unparsable { line: 2, .. })), "{bad}");
        assert_eq!(scan.committed(), Ok(()), "{bad}");
        assert_eq!(scan.accepted_bytes(), line("a", 0).len() as u64, "{bad}");
    }
}

#[test]
fn numbers_are_read_as_javascript_reads_them() {
    for seq in ["1.0", "1e0", "10e-1", "1.000000000000000000000000001"] {
        let (events, _) = scan(
            line("a", 0) + &format!("{{\"type\":\"a\",\"seq\":{seq},\"time\":-0,\"data\":{{}}}}\n"),
        );
        assert_eq!(seqs(&events), [0, 1], "{seq}");
    }
}

#[test]
fn the_last_of_equal_keys_counts() {
    let log =
        r#"{"type":"a","seq":9,"data":1,"seq":0,"time":5,"type":"b","data":2}"#.to_owned() + "\n";
    let (events, _) = scan(log);
    assert_eq!((events[0].event_type(), events[0].data().text()), ("b", "2"));
    let log = r#"{"\u0074ype":"\u0061","seq":0,"time":5,"data":"\ud83d"}"#.to_owned() + "\n";
    let (events, _) = scan(log.as_str());
    assert_eq!((events[0].event_type(), events[0].data().text()), ("a", r#""\ud83d""#));
    assert_eq!(events[0].text().as_str(), log.trim_end());
}

#[test]
fn depth_is_bounded_by_memory_alone() {
    let depth = 200_000;
    for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
        let data = open.repeat(depth) + "1" + &close.repeat(depth);
        let log = format!("{{\"type\":\"a\",\"seq\":0,\"time\":5,\"data\":{data}}}\n");
        let (events, scan) = scan(log);
        assert_eq!(scan.problem(), None);
        assert_eq!(events[0].data().text(), data);
    }
}

#[test]
fn damage_before_the_end_of_a_turn_is_corruption() {
    let start = || line("turn/start", 0);
    let broken = "{\"type\":\"tu\n".to_owned();
    let committed = [
        (start() + &broken + &line("turn/end", 2), "unparsable committed event at line 2"),
        (
            start() + &broken + &line("x", 7) + &line("turn/end", 0),
            "unparsable committed event at line 2",
        ),
        (
            start() + &line("turn/end", 2),
            "seq gap in committed region at line 2 (expected 1, got 2)",
        ),
        (
            start() + &line("turn/end", 0),
            "seq gap in committed region at line 2 (expected 1, got 0)",
        ),
        (
            start() + &row(2) + &line("turn/end", 5),
            "seq gap in committed region at line 2 (expected 1, got 2)",
        ),
        (
            start() + &broken + &line("x", 9) + &broken + &line("turn\\/end", 1),
            "unparsable committed event at line 2",
        ),
    ];
    for (log, words) in committed {
        let (events, scan) = scan(log.as_str());
        assert_eq!(seqs(&events), [0]);
        let problem = scan.committed().unwrap_err();
        assert!(problem.to_string().starts_with(words), "{log}: {problem}");
        assert_eq!(scan.problem(), Some(problem));
    }
    let tails = [
        start() + &line("turn/end", 1) + &broken,
        start() + &line("turn/end", 1) + &line("turn/start", 3) + &row(4),
        start() + &broken + &broken,
        // Only complete lines are records.
        start() + &broken + line("turn/end", 2).trim_end(),
        // A type inside a payload is none.
        start()
            + &broken
            + "{\"type\":\"x\",\"seq\":1,\"time\":5,\"data\":{\"type\":\"turn/end\"}}\n",
        start() + &broken + "{\"type\":\"turn/end\",\"seq\":1,\"time\":5}\n",
    ];
    for log in tails {
        let (_, scan) = scan(log.as_str());
        assert!(scan.problem().is_some(), "{log}");
        assert_eq!(scan.committed(), Ok(()), "{log}");
    }
}

#[test]
fn an_unterminated_line_is_never_accepted() {
    let log = line("a", 0) + line("turn/end", 1).trim_end();
    let (events, mut scan) = scan(log.as_str());
    assert_eq!(seqs(&events), [0]);
    assert_eq!(scan.problem(), Some(&Problem::Unterminated { line: 2 }));
    assert_eq!(scan.committed(), Ok(()));
    scan.feed(&line("turn/end", 1).into());
    assert!(scan.take_events().is_empty());
    assert_eq!(scan.committed(), Err(&Problem::Unterminated { line: 2 }));
}

#[test]
fn a_record_that_stands_for_too_much_is_refused_and_not_dropped() {
    let list = "[[0,99999999]]";
    let event = format!(
        "{{\"type\":\"a\",\"seq\":100000000,\"time\":5,\"data\":1,\"sourceEventSeqs\":{list}}}\n"
    );
    let mut scan = RecordScan::new(Seq(100_000_000));
    scan.feed(&event.as_str().into());
    assert_eq!(scan.committed(), Err(&Problem::TooLong { line: 1 }));
    assert!(scan.take_events().is_empty());
    assert_eq!(Event::parse(&event.as_str().into()), Err(EventError::TooLong));
    assert_eq!(decode(&event.into()), Err(EventError::TooLong.into()));
}

#[test]
fn the_bound_is_on_what_was_not_taken() {
    let id = "i".repeat(1000);
    let row = |seq: u64, members: usize| {
        let (args, dt) = (vec!["\"\""; members].join(","), vec!["0"; members - 1].join(","));
        format!(
            "{{\"type\":\"tool-call-chunks\",\"seq0\":{seq},\"time0\":1,\"data\":{{\"turn\":1,\"step\":1,\"index\":0,\"dt\":[{dt}],\"id\":\"{id}\",\"args\":[{args}]}}}}\n"
        )
    };
    // Each stands for about 140 KB.
    let rows = [row(0, 100), row(100, 100), row(200, 100)];
    let mut taken = RecordScan::new(Seq(0)).with_limit(320_000);
    let mut kept = RecordScan::new(Seq(0)).with_limit(320_000);
    for row in &rows {
        taken.feed(&row.as_str().into());
        kept.feed(&row.as_str().into());
        assert_eq!(taken.take_events().len(), 100);
    }
    assert_eq!(taken.problem(), None);
    assert_eq!(kept.problem(), Some(&Problem::TooLong { line: 3 }));
    assert_eq!(kept.accepted_lines(), 2);

    let mut alone = RecordScan::new(Seq(0)).with_limit(0);
    alone.feed(&rows[0].as_str().into());
    assert_eq!(alone.committed(), Err(&Problem::TooLong { line: 1 }));
}

#[test]
fn a_row_of_many_empty_members_is_refused_before_it_takes_memory() {
    // A few kilobytes once compressed, and more than two gigabytes of events.
    let members = 6_000_000;
    let mut row = String::from(
        r#"{"type":"text-chunks","seq0":0,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":["#,
    );
    row.push_str(&"0,".repeat(members - 2));
    row.push_str(r#"0],"texts":["#);
    row.push_str(&"\"\",".repeat(members - 1));
    row.push_str("\"\"]}}\n");
    let mut scan = RecordScan::new(Seq(0));
    scan.feed(&row.into());
    assert_eq!(scan.committed(), Err(&Problem::TooLong { line: 1 }));
}

#[test]
fn ranges_are_written_out_in_place() {
    let event = |seq: u64, list: &str| {
        format!(
            "{{\"sourceEventSeqs\":{list} ,\"type\":\"a\",\"seq\":{seq},\"time\":5,\"data\":[[3,5]]}}"
        )
    };
    let vectors = [
        (9, "[1,[3,5],7]", "[1,3,4,5,7]"),
        (9, "[ [0,0] , [2,2]]", "[0,2]"),
        (3, "[[0,2]]", "[0,1,2]"),
        (9, "[[1.0,3]]", "[1,2,3]"),
        (9, "[1,3,4,7]", "[1,3,4,7]"),
        (9, "[1, 3, 4.0, 7]", "[1, 3, 4.0, 7]"),
        (9, "[7,3,3]", "[7,3,3]"),
        (9, "[]", "[]"),
        (0, "[]", "[]"),
    ];
    for (seq, stored, shown) in vectors {
        let events = decode(&event(seq, stored).into()).unwrap();
        assert_eq!(events[0].text().as_str(), event(seq, shown));
        assert_eq!(events[0].source_event_seqs().unwrap().text(), shown);
        assert_eq!(events[0].data().text(), "[[3,5]]");
    }
    let refused = [
        (9, "[[3,5],4]"),
        (9, "[4,[3,5]]"),
        (9, "[5,[5,6]]"),
        (9, "[[5,3]]"),
        (9, "[[3]]"),
        (9, "[[3,4,5]]"),
        (9, "[[]]"),
        (9, "[null]"),
        (9, "[-1]"),
        (9, "[1.5]"),
        (9, "[\"1\"]"),
        (9, "[[0,9007199254740992]]"),
        (3, "[[0,3]]"),
        (3, "[0,0,0,0]"),
        (9, "{}"),
        (9, "null"),
    ];
    for (seq, stored) in refused {
        let error = decode(&event(seq, stored).into()).unwrap_err();
        assert!(
            matches!(
                error,
                RecordError::Event(EventError::Member { member: "sourceEventSeqs", .. })
            ),
            "{stored}"
        );
    }
}

#[test]
fn invalid_utf8_is_replaced_and_lines_stay_where_they_were() {
    let mut bytes =
        b"{\"type\":\"a\",\"seq\":0,\"time\":5,\"data\":\"\xff\xf0\x9f\x98\"}\n".to_vec();
    let first = bytes.len();
    bytes.extend_from_slice(
        b"{\"type\":\"b\",\"seq\":1,\"time\":5,\"data\":\"\xed\xa0\x80\"}\n\xe2\x82",
    );
    let text = decode_lossy(bytes.clone());
    let (events, scan) = scan(text);
    assert_eq!(events[0].data().text(), "\"\u{fffd}\u{fffd}\"");
    assert_eq!(scan.problem(), Some(&Problem::Unterminated { line: 3 }));
    assert_ne!(scan.accepted_bytes(), bytes.len() as u64 - 2);
    assert_eq!(end_of_lines(&bytes, scan.accepted_lines()), bytes.len() - 2);
    assert_eq!(end_of_lines(&bytes, 0), 0);
    assert_eq!(end_of_lines(&bytes, 1), first);
    assert_eq!(end_of_lines(&bytes, 9), bytes.len());
    let plain = b"{\"a\":1}\n".to_vec();
    assert_eq!(decode_lossy(plain).as_str(), "{\"a\":1}\n");
}

/// Lines that are right, wrong, or something in between, at seqs that mostly fit.
fn lines() -> impl Strategy<Value = Vec<(Option<u64>, String)>> {
    let kind = prop::sample::select(vec!["x", "turn/end", "row", "broken", "gap"]);
    prop::collection::vec(kind, 0..12).prop_map(|kinds| {
        let mut next = 0;
        let mut lines = Vec::new();
        for kind in kinds {
            let (first, text, length) = match kind {
                "row" => (Some(next), row(next), 3),
                "broken" => (None, "{\"type\":\n".to_owned(), 0),
                "gap" => (Some(next + 2), line("x", next + 2), 1),
                other => (Some(next), line(other, next), 1),
            };
            lines.push((first, text));
            next += length;
        }
        lines
    })
}

proptest! {
    #[test]
    fn the_prefix_is_what_stands_before_the_first_problem(lines in lines(), cut in any::<prop::sample::Index>()) {
        let log: String = lines.iter().map(|(_, text)| text.as_str()).collect();
        let (mut events, mut bytes, mut problem, mut corrupt) = (0_u64, 0, false, false);
        for (first, text) in &lines {
            problem |= *first != Some(events);
            if problem {
                corrupt |= text.contains("turn/end");
            } else {
                events += if text.contains("seq0") { 3 } else { 1 };
                bytes += text.len() as u64;
            }
        }
        let (read, scan_of_all) = scan(log.as_str());
        prop_assert_eq!(seqs(&read), (0..events).collect::<Vec<_>>());
        prop_assert_eq!(scan_of_all.next_seq(), Seq(events));
        prop_assert_eq!(scan_of_all.accepted_bytes(), bytes);
        prop_assert_eq!(scan_of_all.problem().is_some(), problem);
        prop_assert_eq!(scan_of_all.committed().is_err(), corrupt);

        // In two parts it is the same log.
        let cut = cut.index(lines.len() + 1);
        let mut scan = RecordScan::new(Seq(0));
        for part in [&lines[..cut], &lines[cut..]] {
            scan.feed(&part.iter().map(|(_, text)| text.as_str()).collect::<String>().into());
        }
        prop_assert_eq!(scan.take_events(), read);
        prop_assert_eq!(scan.problem(), scan_of_all.problem());
        prop_assert_eq!(scan.committed(), scan_of_all.committed());
        prop_assert_eq!(scan.accepted_bytes(), bytes);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survive(bytes);
    }

    #[test]
    fn no_change_to_a_log_makes_it_panic(
        at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let log = SessionHeader::new(crate::SessionId::new("s").unwrap(), 1).to_line()
            + "\n" + &line("turn/start", 0) + &row(1) + &line("turn/end", 4)
            + "{\"type\":\"user/message\",\"seq\":5,\"time\":1,\"data\":{\"id\":\"m\"},\"sourceEventSeqs\":[[0,2],4]}\n";
        let mut bytes = log.into_bytes();
        for (at, byte) in at {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        survive(bytes);
    }
}

/// Everything that looks at foreign bytes, and what must hold whatever they are.
fn survive(bytes: Vec<u8>) {
    let length = bytes.len();
    let text = decode_lossy(bytes);
    let (header, rest) = text.split_once('\n').unwrap_or((text.as_str(), ""));
    let _ = SessionHeader::parse(header, None);
    for log in [text.clone(), text.slice_of(rest)] {
        let (events, scan) = scan(log.clone());
        assert!(scan.accepted_bytes() <= log.len() as u64);
        assert!(scan.problem().is_some() || scan.accepted_bytes() == log.len() as u64);
        for event in &events {
            let session = crate::SessionId::new("s").unwrap();
            let _ = crate::gate::check_event(&session, event, &crate::Vocabulary::v0());
            assert_eq!(&Event::parse(event.text()).unwrap(), event);
        }
        let (again, _) = self::scan(packed::pack_batch(&events));
        assert_eq!(again, events);
    }
    for line in text.split_inclusive('\n') {
        let line = text.slice_of(line);
        let _ = packed::unpack(&line);
        if let Ok(draft) = EventDraft::parse(&line) {
            let _ = draft.complete(Seq(length as u64), -1);
        }
    }
}
