//! How a log is fed to the scan, and what ends it.

use super::{Problem, RecordScan};
use crate::id::Seq;

fn line(event_type: &str, seq: u64) -> String {
    format!("{{\"type\":\"{event_type}\",\"seq\":{seq},\"time\":5,\"data\":{{}}}}\n")
}

fn row(seq: u64, members: usize) -> String {
    let (dt, texts) = (vec!["0"; members - 1].join(","), vec!["\"a\""; members].join(","));
    format!(
        "{{\"type\":\"text-chunks\",\"seq0\":{seq},\"time0\":1,\"data\":{{\"turn\":1,\"step\":1,\"index\":0,\"dt\":[{dt}],\"texts\":[{texts}]}}}}\n"
    )
}

fn fed(parts: &[&str]) -> RecordScan {
    let mut scan = RecordScan::new(Seq(0));
    for part in parts {
        scan.feed(&(*part).into());
    }
    scan
}

fn seqs(scan: &mut RecordScan) -> Vec<u64> {
    scan.take_events().iter().map(|event| event.seq().0).collect()
}

#[test]
fn empty_parts_change_nothing() {
    let (first, second) = (line("a", 0), line("turn/end", 1));
    let whole = fed(&[&first, &second]);
    let mut scan = fed(&["", &first, "", "", &second, ""]);
    assert_eq!(scan.accepted_bytes(), whole.accepted_bytes());
    assert_eq!((scan.accepted_lines(), scan.next_seq()), (2, Seq(2)));
    assert_eq!((scan.problem(), scan.committed()), (None, Ok(())));
    assert_eq!(seqs(&mut scan), [0, 1]);
    // After a problem as before it.
    let broken = first.clone() + "{\n";
    let mut scan = fed(&[&broken, "", ""]);
    assert_eq!(scan.committed(), Ok(()));
    assert_eq!(seqs(&mut scan), [0]);
    let mut nothing = fed(&["", ""]);
    assert_eq!((nothing.accepted_bytes(), nothing.next_seq()), (0, Seq(0)));
    assert!(nothing.take_events().is_empty());
}

#[test]
fn a_torn_fragment_is_no_record_and_nothing_is_cut_for_it() {
    let (first, torn) = (line("a", 0), line("turn/end", 1));
    for length in 1..torn.len() {
        let mut scan = fed(&[&first, &torn[..length]]);
        assert_eq!(scan.problem(), Some(&Problem::Unterminated { line: 2 }), "{length}");
        assert_eq!(scan.committed(), Ok(()), "{length}");
        assert_eq!(scan.accepted_bytes(), first.len() as u64, "{length}");
        assert_eq!(seqs(&mut scan), [0], "{length}");
    }
}

#[test]
fn a_scan_that_met_a_problem_takes_no_more() {
    let problems = ["{\n".to_owned(), line("b", 7), line("b", 1).trim_end().to_owned()];
    for problem in problems {
        let start = line("a", 0);
        let mut scan = fed(&[&start, &problem]);
        let met = scan.problem().cloned();
        assert!(met.is_some());
        // Even what would have continued the log.
        for seq in 1..4 {
            scan.feed(&line("b", seq).into());
        }
        assert_eq!(seqs(&mut scan), [0], "{problem}");
        assert_eq!(scan.next_seq(), Seq(1));
        assert_eq!(scan.accepted_bytes(), start.len() as u64);
        assert_eq!(scan.problem().cloned(), met, "the first problem stands");
        assert_eq!(scan.committed(), Ok(()));
        // It only looks for the end of a turn, which says that the problem is damage.
        scan.feed(&line("turn/end", 4).into());
        assert_eq!(scan.committed().unwrap_err(), &met.unwrap());
    }
}

#[test]
fn a_gap_is_corruption_before_a_turn_ends_and_a_tail_after_it() {
    let turn = line("turn/start", 0) + &line("turn/end", 1);
    let gap = line("todo/write", 3);
    let expected = Problem::SeqGap { line: 3, expected: Seq(2), got: Seq(3) };
    let mut after = fed(&[&turn, &gap]);
    assert_eq!((after.problem(), after.committed()), (Some(&expected), Ok(())));
    assert_eq!((after.accepted_bytes(), seqs(&mut after)), (turn.len() as u64, vec![0, 1]));
    let before = fed(&[&turn, &gap, &line("turn/end", 4)]);
    assert_eq!(before.committed(), Err(&expected));
    assert_eq!(expected.to_string(), "seq gap in committed region at line 3 (expected 2, got 3)");
    // The event that makes the gap may be the end of the turn itself.
    let itself = fed(&[&turn, &line("turn/end", 3)]);
    assert_eq!(itself.committed(), Err(&expected));
    // Going back is a gap as well.
    let back = fed(&[&turn, &line("todo/write", 1), &line("turn/end", 2)]);
    let expected = Problem::SeqGap { line: 3, expected: Seq(2), got: Seq(1) };
    assert_eq!(back.committed(), Err(&expected));
}

#[test]
fn a_record_that_is_none_is_corruption_before_a_turn_ends_and_a_tail_after_it() {
    let turn = line("turn/start", 0) + &line("turn/end", 1);
    for broken in ["\n", "{\"type\":\n", "{}\n", "[]\n", "\u{feff}{}\n"] {
        assert_eq!(fed(&[&turn, broken]).committed(), Ok(()), "{broken}");
        let scan = fed(&[&turn, broken, &line("turn/end", 2)]);
        let problem = scan.committed().unwrap_err().to_string();
        assert!(problem.starts_with("unparsable committed event at line 3"), "{problem}");
    }
}

#[test]
fn a_row_moves_the_log_on_by_all_its_members() {
    for members in [1, 2, 3, 40] {
        let next = 1 + members as u64;
        let log = [line("turn/start", 0), row(1, members), line("turn/end", next)];
        let mut scan = fed(&[&log[0], &log[1], &log[2]]);
        assert_eq!(scan.problem(), None, "{members}");
        assert_eq!((scan.next_seq(), scan.accepted_lines()), (Seq(next + 1), 3));
        assert_eq!(seqs(&mut scan), (0..=next).collect::<Vec<_>>());
        // An event that counts it as one does not continue the log.
        if members > 1 {
            let gap = Problem::SeqGap { line: 3, expected: Seq(next), got: Seq(2) };
            assert_eq!(fed(&[&log[0], &log[1], &line("a", 2)]).problem(), Some(&gap));
        }
    }
}
