//! Every list that a real OpenCode server sent: the page made of it is what the plain projection
//! makes of the same rows, in no more bytes.

use std::{fs, path::Path};

use serde_json::Value;
use turnkeep_log::{
    Text,
    json::{Json, JsonText},
};

use super::*;
use crate::{
    cursor::Position,
    oracle::{Js, slim},
    testing::{Message, Model},
};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/opencode");

fn slim(reasoning: bool) -> Projection {
    Projection { parts: Parts::Slim, reasoning }
}

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(FIXTURES).join(file)).expect("the fixture is there")
}

/// The texts of the records of a list; `None` for another kind of body.
fn records(body: &str) -> Option<Vec<String>> {
    let json = JsonText::parse(&Text::from(body)).expect("a capture is JSON");
    let records: Vec<_> = json.json().elements()?.map(|record| record.text().to_owned()).collect();
    let is_record = |text: &String| Json::parse(text).unwrap().path(&["info", "id"]).is_some();
    (!records.is_empty() && records.iter().all(is_record)).then_some(records)
}

/// The lists among the captures, each with its name.
fn lists() -> Vec<(String, Vec<String>)> {
    let mut lists = Vec::new();
    for directory in fs::read_dir(FIXTURES).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(&directory).into_iter().flatten() {
            let file = file.unwrap().path();
            let list = records(&fs::read_to_string(&file).unwrap());
            lists.extend(list.map(|list| (file.display().to_string(), list)));
        }
    }
    lists
}

/// Whether a person wrote it, said as plainly as the captures allow.
fn is_authored(record: &str) -> bool {
    let record: Value = serde_json::from_str(record).unwrap();
    let parts = record["parts"].as_array().unwrap();
    let has = |kind: &str| parts.iter().any(|part| part["type"] == kind);
    record["info"]["role"] == "user"
        && !has("subtask")
        && !has("compaction")
        && (parts.is_empty() || parts.iter().any(|part| part["synthetic"] != true))
}

/// The rows of the last so many turns, and whether these are all rows.
fn last_turns(rows: &[String], turns: usize) -> (&[String], bool) {
    let starts: Vec<_> = (0..rows.len()).filter(|&at| is_authored(&rows[at])).collect();
    let start = if starts.len() < turns { 0 } else { starts[starts.len() - turns] };
    (&rows[start..], start == 0)
}

/// A body as the plain projection has it, with the members that are no records taken from `page`.
fn plain_body(rows: &[String], projection: Projection, page: &TurnPage) -> String {
    let plain = |row: &String| slim::project(projection, &Js::parse(row)).record.stringify();
    TurnPage { records: rows.iter().map(plain).collect(), ..page.clone() }.to_json()
}

/// Compares as values in their order, and counts bytes; how many were saved.
fn check(page: &TurnPage, rows: &[String], projection: Projection, name: &str) -> usize {
    let (body, plain) = (page.to_json(), plain_body(rows, projection, page));
    assert!(body.len() <= plain.len(), "{name}: {} bytes for {}", body.len(), plain.len());
    assert_eq!(Js::parse(&body).stringify(), plain, "{name}");
    assert_eq!(page.turn_count, rows.iter().filter(|row| is_authored(row)).count(), "{name}");
    plain.len() - body.len()
}

#[test]
fn a_page_of_any_capture_is_the_plain_one_of_its_rows() {
    let lists = lists();
    let mut pages = 0;
    for (name, rows) in &lists {
        let body = Text::from(format!("[{}]", rows.join(",")));
        let source = SourcePage::from_opencode(&body, None).unwrap();
        for (turns, reasoning) in [(1, true), (3, false), (10, true)] {
            let query = query(turns, rows.len() + 1, None);
            let kind = SourceKind::OpenCode;
            let scan = TurnScan::new(SESSION, &query, kind, slim(reasoning)).unwrap();
            let page = drive(scan, &mut Vec::new(), |_| Answer::Page(source.clone())).expect(name);
            let (expected, is_all) = last_turns(rows, turns);
            assert_eq!(page.complete, is_all, "{name}");
            check(&page, expected, slim(reasoning), name);
            pages += 1;
        }
    }
    assert!(lists.len() >= 30 && pages >= 90, "{} lists, {pages} pages", lists.len());
}

#[test]
fn a_long_session_is_the_same_from_its_pages_and_from_its_list() {
    let mut model = Model::default();
    for number in (0..10).rev() {
        for record in records(&read(&format!("b-long/page-limit100-0{number}.json"))).unwrap() {
            let info: Value = serde_json::from_str(&record).unwrap();
            let id = info["info"]["id"].as_str().unwrap().to_owned();
            let time = info["info"]["time"]["created"].as_u64().unwrap();
            let place = Position { time, id };
            model.messages.push(Message { place, record, encodable: true });
        }
    }
    assert!(model.messages.is_sorted_by(|one, other| one.place < other.place));
    let rows: Vec<_> = model.messages.iter().map(|message| message.record.clone()).collect();
    // The server encodes its list and sends most pages as they are stored: the same values.
    let values = |rows: &[String]| -> Vec<Value> {
        rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
    };
    let full = records(&read("b-long/messages-full.json")).unwrap();
    assert_eq!((rows.len(), values(&rows) == values(&full)), (1000, true));

    for (turns, width) in [(10, 100), (3, 40)] {
        let (mut end, mut before, mut got) = (rows.len(), None, Vec::new());
        loop {
            let query = query(turns, width, before.as_deref());
            let kind = SourceKind::OpenCode;
            let scan = TurnScan::new(SESSION, &query, kind, slim(true)).unwrap();
            let page = drive(scan, &mut Vec::new(), |request| model.answer(request)).unwrap();
            let start = end - page.records.len();
            check(&page, &rows[start..end], slim(true), "b-long");
            end = start;
            got.splice(0..0, page.records);
            match page.cursor {
                Some(cursor) => before = Some(cursor),
                None => break,
            }
        }
        assert_eq!(end, 0);
        let slim = |row: &String| {
            let mut out = String::new();
            slim(true).write(Json::parse(row).unwrap(), &mut out);
            out
        };
        let from_list: Vec<_> = full.iter().map(slim).collect();
        assert!(values(&got) == values(&from_list), "{turns} turns of {width} rows at a time");
    }
}
