//! What pages and projections take besides the text they are made of: nothing that is only looked at
//! is copied, and nothing that is left out is decoded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use peak_alloc::PeakAlloc;
use turnkeep_log::{Text, json::Json};
use turnkeep_turns::{
    Answer, Parts, Projection, SourceKind, SourcePage, TurnPage, TurnQuery, TurnScan,
};

/// Counts what is allocated by everything written in Rust.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// One test at a time, or one would be taken for another.
static ALONE: Mutex<()> = Mutex::new(());

const SLIM: Projection = Projection { parts: Parts::Slim, reasoning: true };

/// Runs something; the most memory it had at a time, besides what there was.
fn peak_of<T>(run: impl FnOnce() -> T) -> (T, usize) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = run();
    (result, MEMORY.peak_usage() - before)
}

/// A session of so many rows, every tenth of them a prompt, the others tools with so many bytes of
/// output.
fn rows(count: usize, output: usize) -> Vec<String> {
    let output = "x".repeat(output);
    let row = |number: usize| {
        let (role, part) = if number.is_multiple_of(10) {
            ("user", r#"{"type":"text","text":"t"}"#.to_owned())
        } else {
            let state = format!(
                r#"{{"status":"completed","input":{{"command":"ls"}},"output":"{output}"}}"#
            );
            ("assistant", format!(r#"{{"type":"tool","tool":"bash","state":{state}}}"#))
        };
        format!(
            r#"{{"info":{{"id":"m{number:06}","role":"{role}","time":{{"created":{number}}}}},"parts":[{part}]}}"#
        )
    };
    (0..count).map(row).collect()
}

/// Scans for so many turns over pages that are parsed already, newest first.
fn page_of(pages: Vec<SourcePage>, turns: usize, width: usize) -> TurnPage {
    let query = TurnQuery { turns, width, before: None };
    let mut scan = TurnScan::new("ses_1", &query, SourceKind::OpenCode, SLIM).unwrap();
    let mut pages = pages.into_iter();
    while scan.want().is_some() {
        scan.feed(Answer::Page(pages.next().unwrap())).unwrap();
    }
    scan.finish().unwrap()
}

/// The rows as a server pages them, newest first.
fn paged(rows: &[String], width: usize) -> Vec<SourcePage> {
    let mut pages = Vec::new();
    let mut end = rows.len();
    while end > 0 {
        let start = end.saturating_sub(width);
        let body = Text::from(format!("[{}]", rows[start..end].join(",")));
        let next = (start > 0).then(|| format!("opaque{start}"));
        pages.push(SourcePage::from_opencode(&body, next).unwrap());
        end = start;
    }
    pages
}

#[test]
fn a_large_image_is_measured_without_being_decoded() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // A PNG of 640 by 480, and then four megabytes.
    let header = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHg";
    let record = format!(
        r#"{{"info":{{"role":"user"}},"parts":[{{"type":"file","mime":"image/png","url":"data:image/png;base64,{header}{}"}}]}}"#,
        "AAAA".repeat(1 << 20)
    );
    let json = Json::parse(&record).unwrap();
    let (slim, peak) = peak_of(|| {
        let mut out = String::new();
        SLIM.write(json, &mut out);
        out
    });
    let size = 24 + 3 * (1 << 20);
    assert!(
        slim.ends_with(&format!(r#""byteSize":{size},"width":640,"height":480,"slim":true}}]}}"#))
    );
    assert!(peak < 4 << 10, "{peak} bytes for a description of {}", slim.len());
}

#[test]
fn a_page_takes_no_more_than_what_it_sends() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Megabytes of output that nobody is sent.
    let body = Text::from(format!("[{}]", rows(100, 50_000).join(",")));
    let (page, peak) = peak_of(|| {
        let source = SourcePage::from_opencode(&body, Some("older".to_owned())).unwrap();
        page_of(vec![source], 3, 100)
    });
    let sent = page.to_json().len();
    assert_eq!((page.turn_count, page.records.len()), (3, 30));
    assert!(sent < 10_000 && body.len() > 4_000_000, "{sent} of {}", body.len());
    assert!(peak < sent + (64 << 10), "{peak} bytes of memory for {sent} sent");
}

#[test]
fn a_page_costs_as_much_after_many_pages_as_after_few() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // No turn starts anywhere, so that all rows are gone through.
    let rows: Vec<_> = rows(4890, 10)
        .iter()
        .map(|row| row.replacen(r#""role":"user""#, r#""role":"system""#, 1))
        .collect();
    let fastest = |width: usize| {
        let once = |_| {
            let pages = paged(&rows, width);
            let start = Instant::now();
            let page = page_of(pages, 10, width);
            assert_eq!(page.records.len(), 4890);
            start.elapsed()
        };
        (0..5).map(once).min().unwrap()
    };
    let (wide, narrow) = (fastest(4891), fastest(100));
    // Going through all that came before with each of the 49 pages would be 25 times the work.
    assert!(narrow < 6 * wide + Duration::from_millis(5), "{narrow:?} for {wide:?}");
}
