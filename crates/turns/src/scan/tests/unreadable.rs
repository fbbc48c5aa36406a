//! Messages that their server cannot encode.

use turnkeep_log::Text;

use super::*;
use crate::testing::Model;

fn model(messages: usize) -> Model {
    let ids = (0..messages).map(|index| {
        let kind = if index % 3 == 0 { 'u' } else { 'a' };
        format!("{kind}{index:03}@{}", 1000 + index)
    });
    Model::new(&ids.collect::<Vec<_>>().join(" "))
}

fn run(model: &Model, turns: usize, width: usize, before: Option<&str>) -> Run {
    scan(&query(turns, width, before), |request| model.answer(request))
}

/// Answers as the model does, and the question for history as given.
fn run_with(model: &Model, history: &Answer, before: Option<&str>) -> Run {
    scan(&query(10, 10, before), |request| match request.purpose {
        Purpose::Identify => history.clone(),
        _ => model.answer(request),
    })
}

fn stub(id: &str, created: u64) -> String {
    format!(
        r#"{{"info":{{"id":"{id}","sessionID":"ses_1","role":"user","time":{{"created":{created}}},"error":{{"name":"TurnkeepUnreadable"}}}},"parts":[]}}"#
    )
}

#[test]
fn a_message_in_the_middle_is_read_from_a_page_that_has_a_cursor() {
    for poisoned in 1..7 {
        let mut model = model(7);
        let whole = run(&model, 10, 100, None);
        model.poison(&model.ids()[poisoned]);
        for width in [1, 2, 3, 7, 8, 100] {
            let run = run(&model, 10, width, None);
            assert_eq!(run.page(), whole.page(), "message {poisoned}, width {width}");
        }
    }
}

#[test]
fn the_steps_get_smaller_until_the_page_is_read() {
    let mut model = model(6);
    model.poison("a002");
    let run = run(&model, 10, 100, None);
    // 100 and 50, 25, 12, 6 hold the last row; 3 do not.
    let calls = "newest 50:newest 25:newest 12:newest 6:newest 3:newest 1:u003@1003 1:a002@1002 \
                 1:a001@1001 probe:u000@1000";
    assert_eq!(run.calls(), calls);
    assert_eq!(run.page().turn_count, 2);
}

#[test]
fn the_oldest_message_becomes_a_stub() {
    let mut model = model(6);
    model.poison("u000");
    for width in [1, 2, 4, 5, 6, 7, 100] {
        let run = run(&model, 10, width, None);
        assert_eq!(run.ids(), "u000 a001 a002 u003 a004 a005");
        assert_eq!(run.page().records[0], stub("u000", 1001), "the time of the next row");
        assert_eq!((run.page().turn_count, run.cursor().as_str()), (2, "-"), "width {width}");
    }
    let run = run(&model, 10, 5, None);
    assert_eq!(run.calls(), "newest a001@1001 2:a001@1001 1:a001@1001 identify");
}

#[test]
fn a_probe_that_cannot_be_encoded_has_found_the_oldest_message() {
    let mut model = model(4);
    model.poison("u000");
    let run = scan(&query(10, 3, None), |request| match model.answer(request) {
        Answer::Page(mut page) => {
            page.next = None;
            Answer::Page(page)
        }
        answer => answer,
    });
    assert_eq!(run.calls(), "newest probe:a001@1001 identify");
    assert_eq!(run.page().records[0], stub("u000", 1001));

    // With all turns wanted in hand it is enough to know that there is something older.
    let full = scan(&query(1, 1, None), |request| match request.purpose {
        Purpose::Scan => testing::page(&[record("u003", Some(1003))], None),
        _ => Answer::Unencodable,
    });
    assert_eq!(
        (full.calls().as_str(), full.cursor().as_str()),
        ("newest probe:u003@1003", "u003@1003/u003")
    );
}

#[test]
fn what_is_not_wanted_need_not_be_read() {
    let mut model = model(30);
    model.poison("u000");
    let run = run(&model, 2, 100, None);
    assert_eq!(run.ids(), "u024 a025 a026 u027 a028 a029");
    assert_eq!(run.calls(), "newest 50:newest 25:newest", "the last turns do not need the rest");
}

#[test]
fn a_page_may_go_on_into_unreadable_history() {
    let mut model = model(6);
    model.poison("u000");
    let before = token(Some(&at("a001", 1001)), "a001");
    let run = run(&model, 3, 100, Some(&before));
    assert_eq!(run.page().records, [stub("u000", 1001)]);
    assert!(run.page().complete);
}

#[test]
fn without_history_the_next_rows_parent_names_the_message() {
    let mut model = model(3);
    model.poison("u000");
    let parent = |id: &str| format!(r#""parentID":"{id}","role":"assistant""#);
    let mut with_parent = model.clone();
    for message in &mut with_parent.messages {
        message.record = message.record.replace(r#""role":"assistant""#, &parent("u_parent"));
    }
    let unknown: Answer = Answer::Failed;
    assert_eq!(run_with(&with_parent, &unknown, None).page().records[0], stub("u_parent", 1001));
    assert_eq!(run_with(&model, &unknown, None).page().records[0], stub("unreadable:ses_1", 1001));

    // A parent that has been read is another message.
    let mut read_parent = model.clone();
    for message in &mut read_parent.messages {
        message.record = message.record.replace(r#""role":"assistant""#, &parent("a002"));
    }
    let run = run_with(&read_parent, &unknown, None);
    assert_eq!(run.page().records[0], stub("unreadable:ses_1", 1001));
}

#[test]
fn history_outranks_the_parent_and_must_make_sense() {
    let mut model = model(3);
    model.poison("u000");
    let event = |name: &str, data: &str| {
        format!(r#"{{"id":"evt_1","aggregate_id":"ses_1","seq":1,"type":"{name}","data":{data}}}"#)
    };
    let updated = |session: &str, id: &str, created: u64| {
        event(
            "message.updated.1",
            &format!(
                r#"{{"sessionID":"{session}","info":{{"id":"{id}","time":{{"created":{created}}}}}}}"#
            ),
        )
    };
    let history =
        |events: &[String]| Answer::History(Text::from(format!("[{}]", events.join(","))));
    let id = |answer: &Answer| id_of(&run_with(&model, answer, None).page().records[0]);

    assert_eq!(id(&history(&[updated("ses_1", "u_real", 999)])), "u_real");
    let removed = event("message.removed.1", r#"{"sessionID":"ses_1","messageID":"u_gone"}"#);
    let gone = [updated("ses_1", "u_real", 9), updated("ses_1", "u_gone", 99), removed];
    assert_eq!(id(&history(&gone)), "u_real", "removed messages are no candidates");
    let others = [
        updated("ses_2", "u_foreign", 1),
        updated("ses_1", "a001", 1001),
        updated("ses_1", "u_newer", 2000),
        event("message.part.updated.1", r#"{"sessionID":"ses_1","part":{"id":"prt"}}"#),
        event("message.updated.1", r#"{"sessionID":"ses_1"}"#),
        "7".to_owned(),
        "null".to_owned(),
    ];
    assert_eq!(id(&history(&others)), "unreadable:ses_1");
    for body in ["", "{}", "[", "null"] {
        assert_eq!(id(&Answer::History(Text::from(body))), "unreadable:ses_1", "{body}");
    }
    let late = run_with(&model, &Answer::TimedOut, None);
    assert_eq!(late.error(), TurnPageError::TimedOut);
}

#[test]
fn without_times_a_message_that_was_read_is_not_the_unreadable_one() {
    let event = |id: &str, created: u64| {
        format!(
            r#"{{"type":"message.updated","data":{{"sessionID":"ses_1","info":{{"id":"{id}","time":{{"created":{created}}}}}}}}}"#
        )
    };
    let history = format!("[{},{}]", event("u1", 5), event("a2", 9));
    let run = scan(&query(3, 2, None), |request| match (request.purpose, &request.before) {
        (Purpose::Identify, _) => Answer::History(Text::from(history.as_str())),
        (Purpose::Narrow, None) => testing::page(&[record("a2", None)], Some("a2".to_owned())),
        _ => Answer::Unencodable,
    });
    assert_eq!(run.calls(), "newest 1:newest 1:a2 identify");
    assert_eq!((run.ids().as_str(), run.cursor().as_str()), ("u1 a2", "-"));
    assert_eq!(run.page().records[0], stub("u1", 5));
}

#[test]
fn a_session_of_one_unreadable_message_is_shown() {
    let mut model = model(1);
    model.poison("u000");
    let known = run(&model, 3, 100, None);
    assert_eq!(known.page().records, [stub("u000", 1000)], "history knows its time");
    let unknown = run_with(&model, &Answer::Failed, None);
    assert_eq!(unknown.page().records, [stub("unreadable:ses_1", 0)]);
}

#[test]
fn a_boundary_is_searched_through_the_steps() {
    let mut model = model(9);
    model.poison("u000");
    let found = run(&model, 1, 100, Some(&token(None, "u006")));
    assert_eq!(found.ids(), "u003 a004 a005");
    let missing = run(&model, 1, 100, Some(&token(None, "u_gone")));
    assert_eq!(missing.error(), TurnPageError::InvalidCursor);
}

#[test]
fn steps_are_no_pages_but_have_a_limit_of_their_own() {
    let mut model = model(40);
    model.poison("a002");
    let tight = Limits { pages: 1, ..LIMITS };
    let all = scan_within(tight, &query(99, 100, None), SourceKind::OpenCode, |request| {
        model.answer(request)
    });
    assert_eq!(all.page().records.len(), 40);
    let few = Limits { narrow: 3, ..LIMITS };
    let run = scan_within(few, &query(99, 100, None), SourceKind::OpenCode, |request| {
        model.answer(request)
    });
    assert_eq!((run.error(), run.calls.len()), (TurnPageError::Upstream, 4));
}

#[test]
fn even_the_widest_page_needs_few_steps() {
    let mut most = 0;
    for messages in 1..=200 {
        let mut model = model(messages);
        model.poison("u000");
        let run = run(&model, 99, 200, None);
        assert_eq!(run.page().records.len(), messages);
        most = most.max(run.calls.len());
    }
    assert!(most <= 13, "{most} requests");
}

#[test]
fn a_page_too_large_to_take_is_read_in_smaller_ones() {
    let model = model(40);
    let oversized = |most: usize| {
        let model = &model;
        move |request: &PageRequest| {
            if request.limit > most { Answer::Oversized } else { model.answer(request) }
        }
    };
    let whole = run(&model, 99, 100, None);
    for most in [1, 3, 10, 40] {
        let run = scan(&query(99, 20, None), oversized(most));
        assert_eq!(run.page(), whole.page(), "at most {most} rows");
    }
    let once = scan(&query(99, 10, None), |request| match request.purpose {
        Purpose::Scan if request.before.is_none() => Answer::Oversized,
        _ => model.answer(request),
    });
    assert_eq!(once.page(), whole.page());
    assert_eq!(
        once.calls(),
        "newest 5:newest 2:a035@1035 1:u033@1033 1:a032@1032 1:a031@1031 u030@1030 a020@1020 \
         a010@1010 probe:u000@1000",
        "full width again once the page that failed lies behind"
    );
    let hopeless = scan(&query(99, 20, None), |_| Answer::Oversized);
    assert_eq!(hopeless.error(), TurnPageError::Upstream);
    assert_eq!(hopeless.calls(), "newest 10:newest 5:newest 2:newest 1:newest");
}
