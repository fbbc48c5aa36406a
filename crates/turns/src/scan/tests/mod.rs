mod captures;
mod errors;
mod live;
mod log;
mod random;
mod real;
mod resume;
mod truncation;
mod unreadable;
mod vectors;

use super::*;
use crate::{
    cursor::Token,
    page::{Purpose, SourcePage},
    projection::Parts,
    testing::{self, SESSION, at, id_of, record, shown},
};

const WHOLE: Projection = Projection { parts: Parts::Full, reasoning: true };

/// What a scan asked for, and what came of it.
struct Run {
    calls: Vec<PageRequest>,
    result: Result<TurnPage, TurnPageError>,
}

/// A query; `before` as a client would send it.
fn query(turns: usize, width: usize, before: Option<&str>) -> TurnQuery {
    TurnQuery { turns, width, before: before.map(str::to_owned) }
}

fn token(before: Option<&str>, boundary: &str) -> String {
    Token { before: before.map(str::to_owned), boundary: boundary.to_owned() }.encode()
}

fn scan(query: &TurnQuery, answer: impl FnMut(&PageRequest) -> Answer) -> Run {
    scan_within(LIMITS, query, SourceKind::OpenCode, answer)
}

fn scan_within(
    limits: Limits,
    query: &TurnQuery,
    kind: SourceKind,
    answer: impl FnMut(&PageRequest) -> Answer,
) -> Run {
    let mut calls = Vec::new();
    let result = TurnScan::limited(SESSION, query, kind, WHOLE, limits)
        .and_then(|scan| drive(scan, &mut calls, answer));
    Run { calls, result }
}

fn drive(
    mut scan: TurnScan,
    calls: &mut Vec<PageRequest>,
    mut answer: impl FnMut(&PageRequest) -> Answer,
) -> Result<TurnPage, TurnPageError> {
    while let Some(request) = scan.want().cloned() {
        assert!(calls.len() < 1000, "the scan does not end");
        calls.push(request.clone());
        scan.feed(answer(&request))?;
    }
    scan.finish()
}

impl Run {
    fn page(&self) -> &TurnPage {
        self.result.as_ref().expect("the scan makes a page")
    }

    fn error(&self) -> TurnPageError {
        *self.result.as_ref().expect_err("the scan fails")
    }

    /// The ids of the records, in one line.
    fn ids(&self) -> String {
        ids(self.page()).join(" ")
    }

    /// The requests in one line: the source cursor of each, with what sets it apart in front.
    fn calls(&self) -> String {
        let call = |request: &PageRequest| match request.purpose {
            Purpose::Scan => shown(request.before.as_deref()),
            Purpose::Probe => format!("probe:{}", shown(request.before.as_deref())),
            Purpose::Narrow => format!("{}:{}", request.limit, shown(request.before.as_deref())),
            Purpose::Identify => "identify".to_owned(),
        };
        self.calls.iter().map(call).collect::<Vec<_>>().join(" ")
    }

    /// The cursor of the page as `source cursor/boundary`, `-` when there is none.
    fn cursor(&self) -> String {
        let page = self.page();
        assert_eq!(page.cursor.is_none(), page.complete);
        match &page.cursor {
            None => "-".to_owned(),
            Some(cursor) => {
                let token = Token::decode(cursor).expect("a page's cursor is a token");
                format!("{}/{}", shown(token.before.as_deref()), token.boundary)
            }
        }
    }
}

fn ids(page: &TurnPage) -> Vec<String> {
    page.records.iter().map(|record| id_of(record)).collect()
}
