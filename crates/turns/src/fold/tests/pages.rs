use serde_json::json;
use turnkeep_log::{Event, Seq, SessionId, Text};

use super::{Fold, Log, text};

fn seqs(fold: &Fold, before: Option<u64>, limit: usize) -> (Vec<u64>, bool) {
    let page = fold.page(before.map(Seq), limit);
    (page.rows.iter().map(|(seq, _)| seq.0).collect(), page.more)
}

fn talk() -> Log {
    Log::new()
        .prompt("u0", "a")
        .raw("todo/write", "{}")
        .prompt("u2", "b")
        .answer(&json!([text("c")]))
        .prompt("u4", "d")
}

#[test]
fn a_page_holds_the_newest_records_before_a_seq_oldest_first() {
    let fold = talk().fold();
    assert_eq!(seqs(&fold, None, 10), (vec![0, 2, 3, 4], false));
    assert_eq!(seqs(&fold, None, 4), (vec![0, 2, 3, 4], false));
    assert_eq!(seqs(&fold, None, 3), (vec![2, 3, 4], true));
    assert_eq!(seqs(&fold, Some(4), 2), (vec![2, 3], true));
    assert_eq!(seqs(&fold, Some(2), 2), (vec![0], false));
    // Between two records, and past the end.
    assert_eq!(seqs(&fold, Some(1), 1), (vec![0], false));
    assert_eq!(seqs(&fold, Some(99), 1), (vec![4], true));
    assert_eq!(seqs(&fold, Some(0), 1), (vec![], false));
    assert_eq!(seqs(&fold, None, 0), (vec![], true));
    assert_eq!(seqs(&Log::new().fold(), None, 0), (vec![], false));
}

#[test]
fn records_that_are_not_shown_are_on_no_page() {
    let log = Log::new()
        .add("compaction/start", &json!({"compactionId": "z"}))
        .turn()
        .prompt("u2", "a")
        .fail("busy")
        .fail("busy");
    let fold = log.fold();
    assert_eq!(seqs(&fold, None, 1), (vec![2], false));
    assert_eq!((fold.len(), fold.is_empty()), (1, false));
    assert_eq!(fold.record("asst:3"), None);
    assert_eq!(fold.record("nobody"), None);
}

#[test]
fn order_is_by_seq_though_time_goes_back() {
    let mut fold = Fold::new(&SessionId::new("s").unwrap());
    for (seq, time) in [(0, 900), (1, 500), (2, -1)] {
        let data = json!({"id": format!("u{seq}"), "content": [], "source": {"kind": "user"}});
        let event = json!({"type": "user/message", "seq": seq, "time": time, "data": data});
        fold.push(&Event::parse(&Text::from(event.to_string())).unwrap());
    }
    assert_eq!(seqs(&fold, None, 3).0, [0, 1, 2]);
    assert_eq!(fold.last_prompt_at(), Some(-1));
    let oldest: serde_json::Value =
        serde_json::from_str(fold.record("u2").unwrap().text()).unwrap();
    assert_eq!(oldest["info"]["time"]["created"], -1);
}

#[test]
fn it_wants_the_events_in_order_and_takes_each_once() {
    let log = talk();
    let mut fold = Fold::new(&SessionId::new("s").unwrap());
    assert_eq!(fold.next_seq(), Seq(0));
    for event in &log.events {
        fold.push(event);
        fold.push(event);
        assert_eq!(fold.next_seq(), event.seq().plus(1));
    }
    log.events.iter().for_each(|event| fold.push(event));
    assert_eq!(fold.page(None, 9), log.fold().page(None, 9));
}

#[test]
fn a_fold_may_start_in_the_middle_of_a_log() {
    let log = talk().turn().prompt("u6", "e").answer(&json!([text("f")]));
    let mut fold = Fold::new(&SessionId::new("s").unwrap());
    log.events[5..].iter().for_each(|event| fold.push(event));
    assert_eq!(fold.next_seq(), Seq(8));
    let whole = log.fold().page(None, 2);
    assert_eq!(fold.page(None, 2).rows, whole.rows);
}

#[test]
fn a_fold_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Fold>();
}
