//! Random sessions, widths and turns against the plainest oracle: the list of ids.

use super::*;
use crate::testing::{
    Log,
    drafts::{drafts, kind, truthful, with_claims},
    shifting::{Shifting, changes},
};
use proptest::prelude::*;

/// All turn pages from the newest to the oldest, `width` rows at a time, which may differ from page
/// to page.
fn pages(
    turns: usize,
    widths: &[usize],
    mut answer: impl FnMut(&PageRequest) -> Answer,
) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut before = None;
    let mut widths = widths.iter().cycle();
    loop {
        assert!(runs.len() < 200, "the pages do not end");
        let width = *widths.next().unwrap_or(&1);
        let run = scan(&query(turns, width, before.as_deref()), &mut answer);
        before = match &run.result {
            Ok(page) => page.cursor.clone(),
            // The cut cannot be ruled out at this width. It can at another.
            Err(TurnPageError::Upstream) if !runs.is_empty() => before,
            Err(error) => panic!("{error:?} after {}", run.calls()),
        };
        let failed = run.result.is_err();
        runs.push(run);
        if before.is_none() && !failed {
            return runs;
        }
    }
}

/// The ids of all pages put together, old to new.
fn together(runs: &[Run]) -> Vec<String> {
    let pages = runs.iter().rev().filter_map(|run| run.result.as_ref().ok());
    pages.flat_map(ids).collect()
}

fn starts(ids: &[String]) -> usize {
    ids.iter().filter(|id| id.starts_with('u')).count()
}

/// How many pages of `width` rows it takes, and whether it takes a probe after them.
fn least_calls(ids: &[String], turns: usize, width: usize) -> (usize, bool) {
    let mut read = 0;
    for pages in 1.. {
        let end = ids.len() - read;
        read += end.min(width);
        let left = ids.len() - read;
        let have = starts(&ids[left..]);
        if left == 0 {
            let trimmed = have > turns || (have == turns && !ids[0].starts_with('u'));
            return (pages, end == width && !trimmed);
        }
        if have >= turns {
            return (pages, false);
        }
    }
    unreachable!("reading ends");
}

proptest! {
    #[test]
    fn pages_put_together_are_the_session(
        drafts in drafts(), turns in 1_usize..6, widths in prop::collection::vec(1_usize..14, 1..4),
    ) {
        let model = truthful(&drafts);
        let runs = pages(turns, &widths, |request| model.answer(request));
        prop_assert_eq!(together(&runs), model.ids());
        for (index, run) in runs.iter().enumerate() {
            let page = run.page();
            prop_assert_eq!(page.turn_count, starts(&ids(page)));
            let last = index + 1 == runs.len();
            prop_assert_eq!(page.complete, last);
            prop_assert!(last || page.turn_count == turns && ids(page)[0].starts_with('u'));
        }
    }

    #[test]
    fn the_width_changes_nothing(
        drafts in drafts(), turns in 1_usize..6, width in 1_usize..14, poisoned in any::<u64>(),
    ) {
        let mut model = truthful(&drafts);
        for (index, id) in model.ids().into_iter().enumerate() {
            if poisoned >> (index % 64) & 3 == 3 {
                model.poison(&id);
            }
        }
        let wide = pages(turns, &[1000], |request| model.answer(request));
        let narrow = pages(turns, &[width], |request| model.answer(request));
        let results = |runs: &[Run]| runs.iter().map(|run| run.page().clone()).collect::<Vec<_>>();
        prop_assert_eq!(results(&narrow), results(&wide));
    }

    #[test]
    fn no_page_is_read_in_vain(drafts in drafts(), turns in 1_usize..6, width in 1_usize..14) {
        let model = truthful(&drafts);
        let run = scan(&query(turns, width, None), |request| model.answer(request));
        let probes = run.calls.iter().filter(|call| call.purpose == Purpose::Probe).count();
        let (scans, probe) = match model.ids().len() {
            0 => (1, false),
            _ => least_calls(&model.ids(), turns, width),
        };
        prop_assert_eq!((run.calls.len() - probes, probes), (scans, usize::from(probe)));
    }

    #[test]
    fn claimed_times_lose_and_double_nothing(
        drafts in drafts(), turns in 1_usize..6, widths in prop::collection::vec(1_usize..14, 2..4),
    ) {
        let model = with_claims(&drafts);
        let mut widths = widths;
        widths.push(50);
        let runs = pages(turns, &widths, |request| model.answer(request));
        prop_assert_eq!(together(&runs), model.ids());
    }

    #[test]
    fn new_rows_disturb_no_page(
        drafts in drafts(), turns in 1_usize..6, width in 1_usize..14, claims in any::<bool>(),
    ) {
        let mut model = if claims { with_claims(&drafts) } else { truthful(&drafts) };
        let at_first = model.ids();
        let mut answered = 0;
        let runs = pages(turns, &[width, 50], |request| {
            let answer = model.answer(request);
            answered += 1;
            let newest = 1000 + answered;
            model.add(&format!("u{newest}"), newest, newest);
            answer
        });
        prop_assert_eq!(together(&runs), at_first);
    }

    #[test]
    fn a_deleted_boundary_loses_nothing(
        drafts in drafts(), turns in 1_usize..4, width in 1_usize..14,
    ) {
        let mut model = truthful(&drafts);
        let all = model.ids();
        let mut before = None;
        let mut got: Vec<String> = Vec::new();
        loop {
            let run = scan(&query(turns, width, before.as_deref()), |request| model.answer(request));
            got.splice(0..0, ids(run.page()));
            let Some(cursor) = run.page().cursor.clone() else { break };
            model.remove(&Token::decode(&cursor).unwrap().boundary);
            before = Some(cursor);
        }
        prop_assert_eq!(got, all);
    }

    #[test]
    fn unreadable_messages_hide_nothing(
        drafts in drafts(), turns in 1_usize..6, width in 1_usize..14, poisoned in any::<u64>(),
    ) {
        let mut model = truthful(&drafts);
        for (index, id) in model.ids().into_iter().enumerate() {
            if poisoned >> (index % 64) & 1 == 1 {
                model.poison(&id);
            }
        }
        let runs = pages(turns, &[width], |request| model.answer(request));
        prop_assert_eq!(together(&runs), model.ids());
        let oldest = model.messages.first();
        let stub = oldest.is_some_and(|message| !message.encodable);
        let last = runs.last().unwrap().page();
        let shown = last.records.first().is_some_and(|record| record.contains("TurnkeepUnreadable"));
        prop_assert_eq!(shown, stub);
        for run in &runs {
            let steps = run.calls.iter().filter(|call| call.purpose == Purpose::Narrow).count();
            prop_assert!(steps <= 8, "{}", run.calls());
        }
    }

    #[test]
    fn logs_are_paged_by_seq_alone(
        drafts in drafts(), turns in 1_usize..6, width in 1_usize..14, rows in 1_usize..60,
    ) {
        let records = drafts.iter().enumerate().map(|(index, (which, gap, rank, claim))| {
            let id = format!("{}{rank:03}_{index}", kind(*which));
            (index as u64 * 3 + gap, record(&id, *claim))
        });
        let log = Log(records.collect());
        let limits = Limits { rows, ..LIMITS };
        let mut before = None;
        let mut got: Vec<String> = Vec::new();
        loop {
            let query_at = |width| query(turns, width, before.as_deref());
            let run = scan_within(limits, &query_at(width), SourceKind::Log, |request| log.answer(request));
            let wide = scan_within(limits, &query_at(1000), SourceKind::Log, |request| log.answer(request));
            prop_assert_eq!(run.page(), wide.page());
            got.splice(0..0, ids(run.page()));
            let Some(cursor) = run.page().cursor.clone() else { break };
            before = Some(cursor);
        }
        prop_assert_eq!(got, log.0.iter().map(|(_, record)| id_of(record)).collect::<Vec<_>>());
    }

    #[test]
    fn rows_that_come_and_go_lose_and_double_nothing(
        drafts in drafts(), turns in 1_usize..6, changes in changes(),
        widths in prop::collection::vec(1_usize..14, 1..4),
        kind in prop::sample::select(vec![SourceKind::OpenCode, SourceKind::Log]),
    ) {
        let mut session = Shifting::new(&drafts, kind, changes);
        let mut widths = widths.iter().cycle();
        let mut before = None;
        let mut read: Vec<String> = Vec::new();
        for pages in 0.. {
            prop_assert!(pages < 500, "the pages do not end");
            let query = query(turns, *widths.next().unwrap(), before.as_deref());
            let run = scan_within(LIMITS, &query, kind, |request| session.answer(request));
            read.splice(0..0, ids(run.page()));
            prop_assert!(run.page().turn_count <= turns);
            before = run.page().cursor.clone();
            if before.is_none() {
                break;
            }
        }
        session.check(&read, None);
    }
}
