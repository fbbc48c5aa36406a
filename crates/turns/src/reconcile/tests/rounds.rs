//! What a page holds and what a continuation is good for.

use super::*;
use crate::testing::{Model, page};

const TIMED: &str = "u1@10 a1@11 u2@20 a2@21 u3@30 a3@31";

fn with(budgets: Budgets) -> ReconcileConfig {
    ReconcileConfig { budgets, ..host() }
}

/// A session of these rows, old to new, given as JSON.
fn of(rows: &[String]) -> impl FnMut(&PageRequest) -> Answer + '_ {
    |request| {
        let end = request.before.as_ref().map_or(rows.len(), |before| before.parse().unwrap());
        let start = end.saturating_sub(request.limit);
        page(&rows[start..end], (start > 0).then(|| start.to_string()))
    }
}

#[test]
fn the_turn_of_the_anchor_is_sent_again_as_it_is_now() {
    let mut model = Model::new(TIMED);
    model.messages[3].record =
        r#"{"info":{"id":"a2","role":"assistant","time":{"created":21,"completed":29}},"parts":[]}"#
            .to_owned();
    let runs = round(&host(), "u2", |request| model.answer(request));
    expect(&runs[0], "newest head", "u2 a2 u3 a3", "complete", 4);
    assert_eq!(runs[0].page().records[1], model.messages[3].record, "byte for byte");
    assert_eq!(runs[0].heads(), [Some("a3"), Some("a3")]);
}

#[test]
fn the_head_is_asked_for_last_and_may_stay_unknown() {
    let model = Model::new(TIMED);
    for answer in [
        Answer::BadCursor,
        Answer::Failed,
        Answer::NotFound,
        Answer::Unavailable,
        Answer::TimedOut,
        Answer::Unencodable,
        Answer::Oversized,
        page(&[], None),
    ] {
        let run = run(&host(), anchor("u2"), |request| match request.purpose {
            Purpose::Probe => {
                assert_eq!((request.before.as_ref(), request.limit), (None, 1));
                answer.clone()
            }
            _ => model.answer(request),
        });
        assert_eq!(run.end(), "complete");
        assert_eq!(run.heads(), [Some("a3"), Some("a3")]);
    }
}

#[test]
fn diffs_are_reduced_before_a_page_is_measured_and_parts_are_whole() {
    let patch = "+".repeat(200_000);
    let user = |summary: &str| {
        format!(
            r#"{{"info":{{"id":"u1","role":"user","summary":{summary}}},"parts":[{{"type":"file","url":"data:,x"}}]}}"#
        )
    };
    let sent = user(r#"{"diffs":[{"file":"a","additions":1}],"diffCount":1,"hasDiffs":true}"#);
    let read = user(&format!(r#"{{"diffs":[{{"file":"a","additions":1,"patch":"{patch}"}}]}}"#));
    let answer = r#"{"info":{"id":"a1","role":"assistant"},"parts":[{"type":"tool","state":{"output":"O"}}]}"#;
    let rows = [read, answer.to_owned()];
    let budgets = Budgets { page_bytes: 1024, ..Budgets::default() };
    let run = run(&with(budgets), anchor("u1"), of(&rows));
    assert_eq!(run.page().records, [sent.clone(), answer.to_owned()]);
    assert_eq!(run.page().response_bytes(), sent.len() + answer.len());
    assert!(!run.page().to_json().contains("partsProjection"));
}

#[test]
fn reasoning_that_is_not_sent_is_not_measured() {
    let rows: Vec<String> = (1..4)
        .map(|index| {
            let text = "t".repeat(1000);
            format!(
                r#"{{"info":{{"id":"a{index}"}},"parts":[{{"type":"reasoning","text":"{text}"}}]}}"#
            )
        })
        .collect();
    let budgets = Budgets { page_bytes: 1500, ..Budgets::default() };
    let config = with(budgets);
    let with_reasoning = run(&config, anchor("a1"), of(&rows));
    assert_eq!(
        (with_reasoning.ids().as_str(), with_reasoning.end().as_str()),
        ("a3", "newest/a3!")
    );
    let request = ReconcileRequest { reasoning: false, ..request(anchor("a1")) };
    let mut scan = ReconcileScan::new(&config, request, SourceKind::OpenCode, NOW).unwrap();
    let mut source = of(&rows);
    while let Some(request) = scan.want().cloned() {
        scan.feed(source(&request)).unwrap();
    }
    let page = scan.finish(NOW).unwrap();
    assert_eq!(page.records[0], r#"{"info":{"id":"a1"},"parts":[]}"#);
    assert_eq!((page.records.len(), page.complete()), (3, true));
}

#[test]
fn a_page_keeps_to_its_budgets() {
    let ids: Vec<String> = (1..=20).map(|index| format!("a{index:02}@{index}")).collect();
    let model = Model::new(&ids.join(" "));
    let wide = ReconcileConfig { width: 100, ..host() };
    let few = Budgets { records: 4, ..Budgets::default() };
    let first = run(&ReconcileConfig { budgets: few, ..wide.clone() }, anchor("a01"), |request| {
        model.answer(request)
    });
    assert_eq!((first.ids().as_str(), first.end().as_str()), ("a17 a18 a19 a20", "a17@17/a17!"));
    let small = Budgets { page_bytes: 500, ..Budgets::default() };
    let first = run(&ReconcileConfig { budgets: small, ..wide }, anchor("a01"), |request| {
        model.answer(request)
    });
    assert_eq!(first.page().records.len(), 5);
    assert!(first.page().response_bytes() <= 500 && first.page().continuation.is_some());
}

#[test]
fn a_round_ends_with_its_bytes() {
    let model = Model::new(TIMED);
    let row = model.messages[0].record.len() as u64;
    let answer = model.messages[1].record.len() as u64;
    assert_eq!((row, answer), (93, 98));
    let ends = |total_bytes| {
        let budgets = Budgets { records: 2, total_bytes, ..Budgets::default() };
        let runs = round(&ReconcileConfig { width: 2, ..with(budgets) }, "u1", |request| {
            model.answer(request)
        });
        runs.iter().map(Run::end).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ends(191), "reset");
    assert_eq!(ends(192), "u3@30/u3 reset");
    assert_eq!(ends(382), "u3@30/u3 reset");
    assert_eq!(ends(383), "u3@30/u3 u2@20/u2 complete", "the anchor is there before it is spent");
}

#[test]
fn reading_stops_when_the_page_is_full_or_the_bytes_are_spent() {
    let model = Model::new(TIMED);
    let first = |budgets| {
        let run = run(&with(budgets), anchor("u1"), |request| model.answer(request));
        (run.calls(), run.end())
    };
    let page = |calls: &str, end: &str| (calls.to_owned(), end.to_owned());
    // There are two bytes left on the page, which no record fits in.
    let small = Budgets { page_bytes: 100, ..Budgets::default() };
    assert_eq!(first(small), page("newest", "a3@31/a3"));
    let spent = Budgets { total_bytes: 382, ..Budgets::default() };
    assert_eq!(first(spent), page("newest", "reset"));
    let more = Budgets { total_bytes: 383, ..Budgets::default() };
    assert_eq!(first(more), page("newest u2@20 head", "complete"));
}

#[test]
fn rows_that_had_no_room_spend_nothing() {
    let model = Model::new(TIMED);
    let budgets = Budgets { records: 1, total_bytes: 150, ..Budgets::default() };
    let runs = round(&with(budgets), "u1", |request| model.answer(request));
    let ends: Vec<String> = runs.iter().map(Run::end).collect();
    assert_eq!(ends, ["a3@31/a3", "reset"]);
}

#[test]
fn bytes_are_counted_as_they_are_read_once_for_each_row() {
    let model = Model::new(TIMED);
    let budgets = Budgets { records: 1, ..Budgets::default() };
    let runs = round(&with(budgets), "u1", |request| model.answer(request));
    let scanned: Vec<(u64, u64)> = runs[..5]
        .iter()
        .map(|run| progress(run.page().continuation.as_ref().unwrap()).scanned)
        .map(|scanned| (scanned.records, scanned.bytes))
        .collect();
    // With the second page all rows have been read and the anchor is among them.
    assert_eq!(scanned, [(1, 98), (2, 191), (6, 573), (6, 573), (6, 573)]);
    assert_eq!(runs[5].page().scanned_records, 6);
}

#[test]
fn a_continuation_is_good_for_its_own_request_only() {
    let model = Model::new(TIMED);
    let few = Budgets { records: 4, ..Budgets::default() };
    let config = with(few);
    let first = run(&config, anchor("u1"), |request| model.answer(request));
    let start = first.next().unwrap();
    let refused = Some(ReconcileError::InvalidContinuation);
    let error = |config: &ReconcileConfig, request: ReconcileRequest, now_ms| {
        ReconcileScan::new(config, request, SourceKind::OpenCode, now_ms).err()
    };
    let same = request(start.clone());
    assert_eq!(error(&config, same.clone(), NOW), None);
    assert_eq!(error(&config, same.clone(), NOW + 900_999), None);
    assert_eq!(error(&config, same.clone(), NOW + 901_000), refused);
    for other in [
        ReconcileRequest { session: "ses_2".to_owned(), ..same.clone() },
        ReconcileRequest { directory: Some("/repo".to_owned()), ..same.clone() },
        ReconcileRequest { reasoning: false, ..same.clone() },
        request(ReconcileStart::Continuation("ocr2.x.y".to_owned())),
    ] {
        assert_eq!(error(&config, other, NOW), refused);
    }
    let desktop = ReconcileConfig { runtime: "desktop".to_owned(), ..config.clone() };
    assert_eq!(error(&desktop, same.clone(), NOW), refused);
    let restarted = ReconcileConfig { keys: KeyRing::new(&[8; 32]).unwrap(), ..config };
    assert_eq!(error(&restarted, same, NOW), refused);
}

#[test]
fn a_log_takes_no_cursor_of_a_server() {
    let model = Model::new(TIMED);
    let config = with(Budgets { records: 4, ..Budgets::default() });
    let first = run(&config, anchor("u1"), |request| model.answer(request));
    let second = run_on(SourceKind::Log, &config, first.next().unwrap(), |_| Answer::Failed);
    assert_eq!((second.error(), second.calls.len()), (ReconcileError::InvalidContinuation, 0));
}

#[test]
fn the_page_of_a_known_anchor_asks_for_what_fits() {
    let ids: Vec<String> = (1..=60).map(|index| format!("a{index:02}@{index}")).collect();
    let mut model = Model::new(&ids.join(" "));
    // 59 rows of about a hundred bytes in front of one that spoils the average.
    let padding = "x".repeat(20_000);
    model.messages[59].record =
        model.messages[59].record.replace(r#""t""#, &format!("{padding:?}"));
    let budgets = Budgets { page_bytes: 4200, ..Budgets::default() };
    let config = ReconcileConfig { width: 100, ..with(budgets) };
    let runs = round(&config, "a01", |request| model.answer(request));
    let calls: Vec<String> = runs.iter().map(Run::calls).collect();
    assert_eq!(calls[0], "100:newest");
    assert_eq!(calls[1], "10:a60@60 10:a50@50 20:a40@40 40:a20@20", "some 430 bytes a row");
    let sent: Vec<String> = runs.iter().rev().flat_map(Run::id_list).collect();
    assert_eq!(sent, model.ids());
}
