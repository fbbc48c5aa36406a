//! Bodies that no server would send, for a while: pages of rows, and single messages. Nothing may
//! panic, nothing may take more memory than its size allows for, and what comes of them must be
//! what plain code over values makes of them.
//!
//! The inputs come from what a real server sent, changed as text, and from the generator of odd
//! records that the unit tests have. `just fuzz SECONDS` tries each target for longer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test code")]

/// The engine is the store's.
#[path = "../../store/tests/fuzzing/engine.rs"]
#[allow(dead_code, unreachable_pub, reason = "nothing of a test program can be reached")]
mod engine;
mod fuzzing;
/// The projections over values, which the unit tests have too.
#[path = "../src/oracle/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "the crate uses all of it")]
mod oracle;

use engine::{Outcome, fuzz, within};
use fuzzing::{
    mutants,
    reference::{self, Refusal},
};
use oracle::{Js, slim};
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use serde_json::value::RawValue;
use turnkeep_log::{Text, json::Json};
use turnkeep_turns::{
    Answer, Parts, Projection, SourceKind, SourcePage, TurnPage, TurnPageError, TurnQuery,
    TurnScan, changes, events::LiveText, is_boundary, message::exact,
};

/// Counts what is allocated by everything written in Rust.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What reading may take besides what depends on the input.
const BASE: usize = 64 << 10;

/// How many bytes of memory each byte of a page may take. Rows of nothing but an id are the worst
/// case: a dozen bytes become a row, an entry among the ids, and a record.
const PER_PAGE_BYTE: usize = 64;

/// The same for one record: what it becomes, grown by doubling.
const PER_RECORD_BYTE: usize = 8;

const PROJECTIONS: [Projection; 4] = [
    Projection { parts: Parts::Slim, reasoning: true },
    Projection { parts: Parts::Slim, reasoning: false },
    Projection { parts: Parts::Full, reasoning: true },
    Projection { parts: Parts::Full, reasoning: false },
];

/// The page of all turns there are, of a source that has these rows and no others.
fn page_of(body: &Text, turns: usize) -> Result<TurnPage, TurnPageError> {
    let source = SourcePage::from_opencode(body, None)?;
    let query = TurnQuery { turns, width: 1 << 20, before: None };
    let mut scan = TurnScan::new("ses_1", &query, SourceKind::OpenCode, PROJECTIONS[0])?;
    assert!(scan.want().is_some());
    scan.feed(Answer::Page(source))?;
    assert!(scan.want().is_none(), "a short page without a cursor is the last one");
    scan.finish()
}

/// Whether it is JSON, as another reader has it.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<Box<RawValue>>(text).is_ok()
}

#[test]
fn pages() {
    fuzz(
        "pages",
        || (mutants::page(), 1_usize..5),
        |(body, _)| body.clone(),
        |(_, turns), bytes| {
            // As the host has it: what is not UTF-8 is replaced.
            let body = Text::from(String::from_utf8_lossy(bytes).into_owned());
            let ceiling = BASE + PER_PAGE_BYTE * body.len();
            let page = within(ceiling, || page_of(&body, *turns))?;
            if !is_json(&body) {
                prop_assert_eq!(page, Err(TurnPageError::Upstream));
                return Ok(Outcome::Refused);
            }
            let (page, expected) = match (page, reference::rows(&Js::parse(&body))) {
                (Err(error), Err(refusal)) => {
                    let expected = match refusal {
                        Refusal::NoList => TurnPageError::Upstream,
                        Refusal::NoId => TurnPageError::MissingId,
                    };
                    prop_assert_eq!(error, expected);
                    return Ok(Outcome::Refused);
                }
                (page, expected) => {
                    let page = page.map_err(|error| TestCaseError::fail(error.to_string()))?;
                    (page, expected.map_err(|_| TestCaseError::fail("accepted"))?)
                }
            };
            let expected = reference::last_turns(expected, *turns);
            prop_assert_eq!(page.turn_count, expected.starts);
            prop_assert_eq!(page.complete, expected.is_all);
            prop_assert_eq!(page.cursor.is_none(), page.complete);
            // As printed, for a number beyond the doubles is printed as null.
            let found = page.records.iter().map(|text| Js::parse(text).stringify());
            let plain = expected.rows.iter().map(|row| slim::project(PROJECTIONS[0], row).record);
            let plain = plain.map(|row| row.stringify());
            prop_assert_eq!(found.collect::<Vec<_>>(), plain.collect::<Vec<_>>());
            Ok(Outcome::Accepted)
        },
    );
}

#[test]
fn records() {
    fuzz("records", mutants::record, Clone::clone, |_, bytes| {
        let text = String::from_utf8_lossy(bytes);
        let ceiling = BASE + PER_RECORD_BYTE * text.len();
        if !is_json(&text) {
            prop_assert!(within(ceiling, || exact(&text, true, &LiveText::default()))?.is_err());
            return Ok(Outcome::Refused);
        }
        let (json, value) = (Json::parse(&text).unwrap(), Js::parse(&text));
        prop_assert_eq!(is_boundary(json), reference::starts_turn(&value));
        let printed = value.stringify();
        for projection in PROJECTIONS {
            let out = within(ceiling, || {
                let mut out = String::new();
                projection.write(json, &mut out);
                out
            })?;
            prop_assert!(is_json(&out), "{}", out);
            let plain = slim::project(projection, &value).record.stringify();
            prop_assert_eq!(Js::parse(&out).stringify(), &*plain);
            if plain == printed {
                prop_assert_eq!(&*out, json.text(), "nothing is taken from it");
            }
            // What came as JavaScript prints it leaves in no more bytes than that either.
            prop_assert!(text != *printed || out.len() <= plain.len());
        }
        // None of it may be a message, and still there is an answer.
        let _ = within(ceiling, || changes::files(json))?;
        let _ = within(ceiling, || changes::diff(json, "a.ts"))?;
        let whole = within(ceiling, || exact(&text, true, &LiveText::default()))?;
        prop_assert_eq!(whole.is_ok(), matches!(value, Js::Object(_)));
        Ok(Outcome::Accepted)
    });
}
