//! Pages as a real OpenCode server sent them.

use std::{fs, path::Path};

use turnkeep_log::Text;

use super::*;

/// The `x-next-cursor` that came with `b-long/page-limit100-00.json`.
const LONG_NEXT: &str =
    "eyJpZCI6Im1zZ18yMmJjMWMwNzkwMDF1OWxzVng4U2NpdW9GQSIsInRpbWUiOjE3OTYwMzA0NDc3Mzd9";
/// The one that came with `c-poison/page-limit50.json`.
const POISON_NEXT: &str =
    "eyJpZCI6Im1zZ18yMmJjMmNjMjAwMDE1b0lnald3TUFmak9WUSIsInRpbWUiOjE3OTYwMzA1MTYyNTZ9";
/// A message of that page whose id was used again in another session, later: it claims the time of
/// that.
const REUSED: &str = "msg_zzz0000000000000000000fix1";

fn page(file: &str, next: Option<&str>) -> SourcePage {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/opencode");
    let body = Text::from(fs::read_to_string(root.join(file)).expect("the fixture is there"));
    SourcePage::from_opencode(&body, next.map(str::to_owned)).expect("the body is a page")
}

#[test]
fn the_cursor_made_of_a_row_is_the_one_that_the_server_sent() {
    let long = page("b-long/page-limit100-00.json", Some(LONG_NEXT));
    assert!(long.is_ordered(None));
    assert_eq!(long.rows[0].cursor().as_deref(), Some(LONG_NEXT));
    let poison = page("c-poison/page-limit50.json", Some(POISON_NEXT));
    assert_eq!(poison.rows[0].cursor().as_deref(), Some(POISON_NEXT));
}

#[test]
fn the_last_turns_of_a_long_session_go_on_at_their_own_cursor() {
    let run = scan(&query(3, 100, None), |_| {
        Answer::Page(page("b-long/page-limit100-00.json", Some(LONG_NEXT)))
    });
    let page = run.page();
    assert_eq!((run.calls.len(), page.turn_count), (1, 3));
    let oldest: serde_json::Value = serde_json::from_str(&page.records[0]).unwrap();
    let id = oldest["info"]["id"].as_str().unwrap();
    let created = oldest["info"]["time"]["created"].as_u64().unwrap();
    assert_eq!(page.cursor, Some(token(Some(&at(id, created)), id)));
}

#[test]
fn a_message_whose_id_was_used_again_puts_its_page_out_of_order() {
    let poison = page("c-poison/page-limit50.json", Some(POISON_NEXT));
    assert!(poison.records().any(|record| record.text().contains(REUSED)));
    assert!(!poison.is_ordered(None));
    let run = scan(&query(3, 50, None), |_| Answer::Page(poison.clone()));
    assert!(run.cursor().starts_with("newest/msg_"), "{}", run.cursor());
}

#[test]
fn a_session_that_the_server_cannot_list_is_read_whole() {
    let run = scan(&query(99, 100, None), |request| match (&request.before, request.limit) {
        (None, ..=50) => Answer::Page(page("c-poison/page-limit50.json", Some(POISON_NEXT))),
        (Some(_), 11..) => Answer::Page(page("c-poison/page-limit50-2.json", None)),
        _ => Answer::Unencodable,
    });
    assert_eq!(run.calls.iter().map(|call| call.limit).collect::<Vec<_>>(), [100, 50, 25]);
    let page = run.page();
    assert_eq!((page.records.len(), page.turn_count, page.complete), (61, 16, true));
}
