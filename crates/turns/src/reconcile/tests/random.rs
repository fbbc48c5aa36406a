//! Random sessions, budgets and widths against the plainest oracle: the list of ids.

use proptest::prelude::*;

use super::*;
use crate::testing::{
    Indexed, Log,
    drafts::{drafts, kind, truthful, with_claims},
    record,
    shifting::{Shifting, changes},
};

fn budgets() -> impl Strategy<Value = Budgets> {
    let page_bytes = prop_oneof![Just(usize::MAX), 1_usize..1000];
    let total_bytes = prop_oneof![3 => Just(usize::MAX), 1 => 1_usize..6000];
    let pages = prop_oneof![3 => Just(1000), 1 => 1_usize..12];
    (1_usize..9, page_bytes, pages, total_bytes).prop_map(
        |(records, page_bytes, pages, total_bytes)| Budgets {
            records,
            page_bytes,
            pages,
            total_bytes,
        },
    )
}

/// Widths to take turns with, one page after the other.
fn widths() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..14, 1..4)
}

/// A round on a source that may change with every answer.
struct Round {
    runs: Vec<Run>,
    /// Old to new, all pages put together.
    ids: Vec<String>,
}

fn go(
    kind: SourceKind,
    budgets: Budgets,
    widths: &[usize],
    anchor_id: &str,
    mut answer: impl FnMut(&PageRequest) -> Answer,
) -> Round {
    let mut round = Round { runs: Vec::new(), ids: Vec::new() };
    let mut start = anchor(anchor_id);
    for &width in widths.iter().cycle() {
        assert!(round.runs.len() < 200, "the round does not end");
        let config = ReconcileConfig { width, budgets, ..host() };
        let run = run_on(kind, &config, start.clone(), &mut answer);
        match &run.result {
            Ok(page) => {
                assert!(page.records.len() <= budgets.records);
                assert!(page.response_bytes() <= budgets.page_bytes || page.records.len() == 1);
                assert!(page.records.is_empty() == page.reset_required);
                round.ids.splice(0..0, run.id_list());
            }
            // The cut cannot be ruled out at this width. It can at another.
            Err(ReconcileError::Rows(TurnPageError::Upstream)) if !round.runs.is_empty() => {
                continue;
            }
            Err(error) => panic!("{error:?} after {}", run.calls()),
        }
        let next = run.next();
        round.runs.push(run);
        match next {
            Some(next) => start = next,
            None => break,
        }
    }
    round
}

impl Round {
    fn last(&self) -> &ReconcilePage {
        self.runs.last().expect("a round has a page").page()
    }

    fn is_reset(&self) -> bool {
        self.last().reset_required
    }

    /// Checks the whole round against the session as it was when it began.
    fn check(&self, session: &[String], anchor_id: &str, budgets: Budgets) {
        let head = session.last().map(String::as_str);
        for run in &self.runs {
            assert_eq!(run.page().captured_head.as_deref(), head);
        }
        let gap = session.iter().position(|id| id == anchor_id).map(|from| &session[from..]);
        let found: Vec<bool> = self.runs.iter().map(|run| run.page().anchor_found).collect();
        if !self.is_reset() {
            assert_eq!(Some(&self.ids[..]), gap);
            assert!(found.is_sorted(), "once found, the anchor stays found");
            return;
        }
        assert!(session.ends_with(&self.ids), "what was sent was the newest rows");
        assert!(!found.contains(&true), "an anchor that was found is not given up");
        let pages = self.runs.len() >= budgets.pages;
        let read =
            self.runs.iter().flat_map(|run| &run.calls).map(|call| call.limit).sum::<usize>();
        let bytes = read * 110 >= budgets.total_bytes;
        assert!(gap.is_none() || pages || bytes, "there is no reason to start over");
    }

    /// How many rows were asked for at most.
    fn asked(&self) -> usize {
        let scans = self.runs.iter().flat_map(|run| &run.calls);
        scans.filter(|call| call.purpose != Purpose::Probe).map(|call| call.limit).sum()
    }
}

/// The id at this place, or one that is nowhere.
fn pick(ids: &[String], index: usize) -> String {
    ids.get(index).cloned().unwrap_or_else(|| "u_nowhere".to_owned())
}

proptest! {
    #[test]
    fn a_round_is_the_gap_or_a_reset_with_a_reason(
        drafts in drafts(), at in 0_usize..44, budgets in budgets(), widths in widths(),
        poisoned in prop_oneof![Just(0_u64), any::<u64>()],
    ) {
        let mut model = truthful(&drafts);
        let ids = model.ids();
        for (index, id) in ids.iter().enumerate() {
            if poisoned >> (index % 64) & 3 == 3 {
                model.poison(id);
            }
        }
        let anchor_id = pick(&ids, at);
        let answer = |request: &PageRequest| model.answer(request);
        go(SourceKind::OpenCode, budgets, &widths, &anchor_id, answer)
            .check(&ids, &anchor_id, budgets);
    }

    #[test]
    fn rows_that_arrive_disturb_no_round(
        drafts in drafts(), at in 0_usize..44, budgets in budgets(), widths in widths(),
        claims in any::<bool>(),
    ) {
        let mut model = if claims { with_claims(&drafts) } else { truthful(&drafts) };
        let ids = model.ids();
        let anchor_id = pick(&ids, at);
        let mut widths = widths;
        widths.push(50);
        let mut answered = 0;
        let round = go(SourceKind::OpenCode, budgets, &widths, &anchor_id, |request| {
            let answer = model.answer(request);
            answered += 1;
            model.add(&format!("u{}", 1000 + answered), 1000 + answered, 1000 + answered);
            answer
        });
        round.check(&ids, &anchor_id, budgets);
        if !round.is_reset() {
            let before_last = format!("u{}", 1000 + answered - 1);
            prop_assert_eq!(round.last().latest_head.clone(), Some(before_last));
        }
    }

    #[test]
    fn rows_that_were_sent_may_go(
        drafts in drafts(), at in 0_usize..40, budgets in budgets(), widths in widths(),
    ) {
        let mut model = truthful(&drafts);
        let ids = model.ids();
        let anchor_id = pick(&ids, at);
        let mut start = anchor(&anchor_id);
        let mut sent: Vec<String> = Vec::new();
        for &width in widths.iter().cycle() {
            let config = ReconcileConfig { width, budgets, ..host() };
            let run = run(&config, start, |request| model.answer(request));
            prop_assert_eq!(run.page().records.is_empty(), run.page().reset_required);
            sent.splice(0..0, run.id_list());
            if let Some(oldest) = run.id_list().first() {
                model.remove(oldest);
            }
            if let Some(next) = run.next() {
                start = next;
                continue;
            }
            prop_assert!(ids.ends_with(&sent));
            prop_assert!(run.page().reset_required || Some(&anchor_id) == sent.first());
            break;
        }
    }

    #[test]
    fn without_times_a_round_is_the_gap_just_as_well(
        drafts in drafts(), at in 0_usize..44, records in 1_usize..9, widths in widths(),
    ) {
        // Cursors that say nothing about rows, and rows that say nothing about their time.
        let rows = drafts.iter().enumerate().map(|(index, (which, ..))| {
            record(&format!("{}{index}", kind(*which)), None)
        });
        let source = Indexed(rows.collect());
        let ids: Vec<String> = source.0.iter().map(|record| id_of(record)).collect();
        let anchor_id = pick(&ids, at);
        let budgets = Budgets { records, pages: 1000, ..Budgets::default() };
        let mut widths = widths;
        widths.push(50);
        go(SourceKind::OpenCode, budgets, &widths, &anchor_id, |request| source.answer(request))
            .check(&ids, &anchor_id, budgets);
    }

    #[test]
    fn logs_are_reconciled_by_seq_alone(
        drafts in drafts(), at in 0_usize..44, budgets in budgets(), widths in widths(),
    ) {
        let records = drafts.iter().enumerate().map(|(index, (which, gap, rank, claim))| {
            let id = format!("{}{rank:03}_{index}", kind(*which));
            (index as u64 * 3 + gap, record(&id, *claim))
        });
        let mut log = Log(records.collect());
        let ids: Vec<String> = log.0.iter().map(|(_, record)| id_of(record)).collect();
        let anchor_id = pick(&ids, at);
        let mut seq = 1000;
        let round = go(SourceKind::Log, budgets, &widths, &anchor_id, |request| {
            let answer = log.answer(request);
            seq += 1;
            log.0.push((seq, record(&format!("u{seq}"), None)));
            answer
        });
        round.check(&ids, &anchor_id, budgets);
    }

    #[test]
    fn a_row_with_room_is_read_once(
        drafts in drafts(), at in 0_usize..40, records in 1_usize..9, factor in 1_usize..4,
    ) {
        // Pages that divide those of the source exactly leave nothing over.
        let model = truthful(&drafts);
        let ids = model.ids();
        let anchor_id = pick(&ids, at);
        let budgets = Budgets { records: records * factor, pages: 1000, ..Budgets::default() };
        let round = go(SourceKind::OpenCode, budgets, &[records], &anchor_id, |request| {
            model.answer(request)
        });
        round.check(&ids, &anchor_id, budgets);
        let gap = ids.iter().position(|id| *id == anchor_id).map_or(ids.len(), |at| ids.len() - at);
        prop_assert!(round.asked() < gap + records + 1);
        let scanned = ids.len().min(gap.div_ceil(records) * records);
        prop_assert_eq!(round.last().scanned_records, scanned as u64);
    }

    #[test]
    fn rows_that_come_and_go_leave_a_gap_or_a_reason(
        drafts in drafts(), at in 0_usize..40, budgets in budgets(), widths in widths(),
        changes in changes(),
        kind in prop::sample::select(vec![SourceKind::OpenCode, SourceKind::Log]),
    ) {
        let mut session = Shifting::new(&drafts, kind, changes);
        let anchor_id = pick(&session.at_first, at);
        let round = go(kind, budgets, &widths, &anchor_id, |request| session.answer(request));
        let head = session.at_first.last();
        prop_assert!(round.runs.iter().all(|run| run.page().captured_head.as_ref() == head));
        if round.is_reset() {
            let pages = round.runs.len() >= budgets.pages;
            let bytes = round.asked() * 110 >= budgets.total_bytes;
            let is_there = session.at_first.contains(&anchor_id) && !session.is_gone(&anchor_id);
            prop_assert!(!is_there || pages || bytes, "there is no reason to start over");
            prop_assert!(round.last().records.is_empty());
        } else {
            session.check(&round.ids, Some(&anchor_id));
            prop_assert_eq!(round.ids.first(), Some(&anchor_id), "the turn that it starts comes too");
            prop_assert!(round.last().anchor_found);
        }
    }
}
